"""What gets into the ledger, and what is refused in which words."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alineod.domain import events as ev
from alineod.domain.events import Entry
from alineod.errors import Refused
from alineod.ledger.records import DEPTH_LIMIT, NAME_LIMIT, RECORD_LIMIT, parse_payload, prepare_entries
from tests.unit.ledger.entries import build_entry, build_text

ANY_TEXT = st.text(st.characters(exclude_categories=()))
ANY_DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=12,
)


def nest(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


@given(st.dictionaries(ANY_TEXT, ANY_DATA, max_size=4))
@pytest.mark.behaviour("11.4")
def test_what_is_kept_is_what_is_read_again(data: dict[str, Any]) -> None:
    [prepared] = prepare_entries([build_entry(1, x=data)])
    assert parse_payload(prepared.payload) == prepared.body
    [again] = prepare_entries([Entry(id="x", run="a/b", agent=None, body=prepared.body)])
    assert again.payload == prepared.payload


@pytest.mark.parametrize(
    ("text", "kept"),
    [("a\x00b", "a\ufffdb"), ("\ud800", "\ufffd"), ("a\u2028b", "a\nb"), (r"\u0000 spelt out", r"\u0000 spelt out")],
)
@pytest.mark.behaviour("11.4")
def test_text_is_replaced_by_rule(text: str, kept: str) -> None:
    [prepared] = prepare_entries([build_text(text)])
    assert prepared.body.text == kept  # type: ignore[union-attr]
    assert prepared.event == "agent.steered"


def test_names_are_cleaned_too() -> None:
    entry = Entry(id="a\ud800", run="n/s", agent=None, body=ev.HarnessEvent(type="a\x00", turn=1, incarnation=1, seq=1))
    [prepared] = prepare_entries([entry])
    assert (prepared.id, prepared.event) == ("a\ufffd", "harness.a\ufffd")


@pytest.mark.behaviour("11.5")
def test_a_record_too_large_is_refused_with_field_and_limit() -> None:
    with pytest.raises(Refused) as caught:
        prepare_entries([build_text("x" * RECORD_LIMIT)])
    assert caught.value.reason == "RecordTooLarge"
    assert "agent.steered takes 1,048,6" in caught.value.message
    assert "in its field text; a record may take 1,048,576. Shorten the field" in caught.value.message


def test_the_largest_record_gets_in() -> None:
    overhead = len(prepare_entries([build_text("")])[0].payload)
    [prepared] = prepare_entries([build_text("x" * (RECORD_LIMIT - overhead))])
    assert len(prepared.payload) == RECORD_LIMIT
    with pytest.raises(Refused):
        prepare_entries([build_text("x" * (RECORD_LIMIT - overhead + 1))])


@pytest.mark.parametrize(
    ("change", "reason", "sentence"),
    [
        ({"id": ""}, "InvalidRecord", "agent.steered: id is empty."),
        ({"run": ""}, "InvalidRecord", "agent.steered: run is empty."),
        ({"agent": ""}, "InvalidRecord", "agent.steered: agent is empty."),
        ({"id": "x" * (NAME_LIMIT + 1)}, "RecordTooLarge", "agent.steered: id takes 1,025 bytes; it may take 1,024."),
    ],
)
def test_names_are_checked(change: dict[str, str], reason: str, sentence: str) -> None:
    with pytest.raises(Refused) as caught:
        prepare_entries([msgspec.structs.replace(build_text("x"), **change)])
    assert (caught.value.reason, caught.value.message) == (reason, sentence)


@pytest.mark.parametrize(
    "value",
    [object(), nest(DEPTH_LIMIT), nest(100_000)],
    ids=["object", "deep", "abyss"],
)
def test_what_is_no_json_is_refused(value: object) -> None:
    with pytest.raises(Refused) as caught:
        prepare_entries([build_entry(1, value=value)])
    assert caught.value.reason == "InvalidRecord"
    assert caught.value.message.startswith("harness.message cannot be written as JSON: ")


@pytest.mark.parametrize("value", [10**400, 2**63, -(2**70), [[]] * 300, nest(DEPTH_LIMIT - 5), "[" * 300])
def test_odd_json_is_kept(value: object) -> None:
    [prepared] = prepare_entries([build_entry(1, value=value)])
    assert prepared.body.data == {"value": value}  # type: ignore[union-attr]


def test_not_a_number_is_kept_as_it_will_be_read() -> None:
    [prepared] = prepare_entries([build_entry(1, value=float("nan"), when=float("inf"))])
    assert prepared.body.data == {"value": None, "when": None}  # type: ignore[union-attr]


def test_a_payload_of_a_later_version_is_named() -> None:
    with pytest.raises(Refused) as caught:
        parse_payload('{"event":"agent.dreamt"}')
    assert caught.value.reason == "UnknownEvent"
    assert "agent.dreamt" in caught.value.message
