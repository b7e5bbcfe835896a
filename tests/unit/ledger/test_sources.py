"""Which copy a new term begins from, and its number."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alineod.ledger.places import LocalTerm
from alineod.ledger.sources import Found, FromBucket, FromVolume, New, Source, compute_epoch, decide_sources

OPENED, UNOPENED = True, False


@pytest.mark.parametrize(
    ("local", "remote", "sources"),
    [
        # without a bucket
        ({}, None, [New()]),
        ({3: OPENED}, None, [FromVolume(3)]),
        ({2: OPENED, 3: OPENED}, None, [FromVolume(3)]),
        ({2: OPENED, 3: UNOPENED}, None, [FromVolume(2)]),
        ({1: UNOPENED}, None, [New()]),
        # the bucket has answered that nothing was ever there
        ({}, [], [New()]),
        ({1: UNOPENED}, [], [New()]),
        ({4: OPENED}, [], [FromVolume(4)]),
        # a new pod, a new cluster
        ({}, [1, 12, 3], [FromBucket(12)]),
        # the same pod again: what it had not replicated is kept, and the bucket helps when its file is damaged
        ({5: OPENED}, [5], [FromVolume(5), FromBucket(5)]),
        ({4: OPENED, 5: OPENED}, [4, 5], [FromVolume(5), FromBucket(5)]),
        # another process led since
        ({5: OPENED}, [5, 6], [FromBucket(6)]),
        # a start that was cut off before its first confirmation, here and there
        ({5: OPENED, 6: UNOPENED}, [5], [FromVolume(5), FromBucket(5)]),
        ({5: OPENED, 6: UNOPENED}, [5, 6], [FromBucket(6)]),
        ({6: UNOPENED}, [5], [FromBucket(5)]),
        # the bucket was emptied or changed; an earlier term there lacks what was acknowledged since
        ({6: OPENED}, [5], [FromVolume(6)]),
    ],
)
@pytest.mark.behaviour("9.9")
def test_sources(local: dict[int, bool], remote: list[int] | None, sources: list[Source]) -> None:
    found = Found([LocalTerm(epoch, opened) for epoch, opened in local.items()], remote)
    assert decide_sources(found) == sources


FOUND = st.builds(
    Found,
    st.dictionaries(st.integers(1, 9), st.booleans()).map(lambda d: [LocalTerm(*item) for item in sorted(d.items())]),
    st.none() | st.lists(st.integers(1, 9), unique=True),
)


@given(FOUND)
def test_an_empty_ledger_begins_only_where_nothing_was_acknowledged(found: Found) -> None:
    sources = decide_sources(found)
    nothing = not found.remote and not any(term.opened for term in found.local)
    assert (sources == [New()]) == nothing
    assert nothing or New() not in sources


@given(FOUND, st.integers(0, 12))
def test_a_number_is_never_used_twice(found: Found, asked: int) -> None:
    epoch = compute_epoch(asked, found)
    assert epoch >= asked
    assert all(epoch > term.epoch for term in found.local)
    assert all(epoch > remote for remote in found.remote or ())
