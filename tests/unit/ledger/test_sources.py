"""Which copy a new term begins from, and its number."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alineod.ledger.places import LocalTerm
from alineod.ledger.sources import Found, FromBucket, FromVolume, New, Source, compute_epoch, decide_sources

OPENED, UNOPENED = True, False


@pytest.mark.parametrize(
    ("local", "published", "sources"),
    [
        # without a bucket, or with one that has answered that nothing was ever there
        ({}, 0, [New()]),
        ({3: OPENED}, 0, [FromVolume(3)]),
        ({2: OPENED, 3: OPENED}, 0, [FromVolume(3)]),
        ({2: OPENED, 3: UNOPENED}, 0, [FromVolume(2)]),
        ({1: UNOPENED}, 0, [New()]),
        # a new pod, a new cluster
        ({}, 12, [FromBucket(12)]),
        # the same pod again: what it had not replicated is kept, and the bucket helps when its file is damaged
        ({5: OPENED}, 5, [FromVolume(5), FromBucket(5)]),
        ({4: OPENED, 5: OPENED}, 5, [FromVolume(5), FromBucket(5)]),
        # another process led since
        ({5: OPENED}, 6, [FromBucket(6)]),
        # a start that was cut off before it was published, and after
        ({5: OPENED, 6: UNOPENED}, 5, [FromVolume(5), FromBucket(5)]),
        ({5: OPENED, 6: UNOPENED}, 6, [FromBucket(6)]),
        ({6: UNOPENED}, 5, [FromBucket(5)]),
        # the bucket was emptied or changed; an earlier term there lacks what was acknowledged since
        ({6: OPENED}, 5, [FromVolume(6)]),
    ],
)
@pytest.mark.behaviour("9.9")
def test_sources(local: dict[int, bool], published: int, sources: list[Source]) -> None:
    found = Found([LocalTerm(epoch, opened) for epoch, opened in local.items()], published)
    assert decide_sources(found) == sources


@st.composite
def draw_found(draw: st.DrawFn) -> Found:
    local = draw(st.dictionaries(st.integers(1, 9), st.booleans()))
    published = draw(st.integers(0, 9))
    return Found([LocalTerm(*item) for item in sorted(local.items())], published, draw(st.integers(published, 12)))


@given(draw_found())
def test_an_empty_ledger_begins_only_where_nothing_was_acknowledged(found: Found) -> None:
    sources = decide_sources(found)
    nothing = not found.published and not any(term.opened for term in found.local)
    assert (sources == [New()]) == nothing
    assert nothing or New() not in sources


@given(draw_found(), st.integers(0, 12))
def test_a_number_is_never_used_twice(found: Found, asked: int) -> None:
    epoch = compute_epoch(asked, found)
    assert epoch >= asked
    assert epoch > found.begun
    assert all(epoch > term.epoch for term in found.local)
