"""Order, identity and hash chain."""

import hashlib
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from alineod.domain.events import Entry, Row
from alineod.errors import Conflict, Damaged, Refused
from alineod.ledger.chain import GENESIS, Head, Stored, compute_hash, decide_append, parse_row, verify_rows
from alineod.ledger.records import prepare_entries
from tests.unit.ledger.entries import RUN, build_entry, build_text

TIME = 1_700_000_000_123_456


def append(appends: Sequence[Sequence[Entry]]) -> tuple[list[Stored], list[list[Row]]]:
    """Everything stored and every answer, over a ledger that is only a dict."""
    standing: dict[str, Row] = {}
    head, stored, answers = Head(), list[Stored](), list[list[Row]]()
    for number, entries in enumerate(appends):
        plan = decide_append(prepare_entries(entries), standing, head, TIME + number)
        standing.update((row.id, row) for row in plan.added)
        head = plan.head
        stored.extend(plan.new)
        answers.append(list(plan.rows))
    return stored, answers


STORED, _ = append([[build_entry(1), build_entry(2)], [build_entry(3, text="ü")], [build_text("x")]])


@pytest.mark.behaviour("8.3", "8.4")
def test_rows_follow_each_other() -> None:
    assert [row.seq for row in STORED] == [1, 2, 3, 4]
    assert [row.prev for row in STORED] == [GENESIS, *(row.hash for row in STORED[:-1])]
    assert list(verify_rows(STORED)) == STORED


def test_the_hash_is_the_one_that_is_documented() -> None:
    """Written out once by hand, so that another program can check a dump, and so that it never changes."""
    row = Stored(7, 5, "i", "ns/run", None, "run.quiescent", '{"event":"run.quiescent"}', prev="ab", hash="")
    text = b'2:ab1:71:51:i6:ns/run0:13:run.quiescent25:{"event":"run.quiescent"}'
    assert compute_hash(row) == hashlib.sha256(text).hexdigest()


@pytest.mark.parametrize(
    "change",
    [
        {"time": TIME + 9}, {"id": "other"}, {"run": "other/run"}, {"agent": None}, {"event": "agent.ended"},
        {"payload": '{"event":"run.quiescent"}'}, {"prev": "f" * 64}, {"hash": "f" * 64}, {"seq": 9},
    ],
    ids=lambda change: next(iter(change)),
)  # fmt: skip
@pytest.mark.parametrize("index", range(4))
@pytest.mark.behaviour("8.4")
def test_a_changed_row_shows(change: dict[str, object], index: int) -> None:
    rows = [*STORED]
    rows[index] = replace(rows[index], **change)  # type: ignore[arg-type]
    with pytest.raises(Damaged):
        list(verify_rows(rows))


@pytest.mark.parametrize("index", range(3))
@pytest.mark.behaviour("8.4")
def test_a_row_cut_out_shows(index: int) -> None:
    with pytest.raises(Damaged) as caught:
        list(verify_rows(STORED[:index] + STORED[index + 1 :]))
    assert caught.value.reason == "SequenceBroken"
    assert caught.value.message == f"Row {index + 1} is missing: after row {index} comes row {index + 2}."


@pytest.mark.behaviour("8.4")
def test_a_row_cut_out_and_the_rest_renumbered_shows() -> None:
    moved = replace(STORED[2], seq=2)
    with pytest.raises(Damaged) as caught:
        list(verify_rows([STORED[0], replace(moved, hash=compute_hash(moved))]))
    assert caught.value.message.startswith("Row 2 does not follow the row before it")


@pytest.mark.behaviour("8.4")
def test_a_row_changed_with_a_new_hash_of_its_own_shows_at_the_next() -> None:
    forged = replace(STORED[1], payload='{"event":"run.quiescent"}')
    rows = [STORED[0], replace(forged, hash=compute_hash(forged)), *STORED[2:]]
    with pytest.raises(Damaged) as caught:
        list(verify_rows(rows))
    assert caught.value.message.startswith("Row 3 does not follow")


def test_two_fields_never_run_into_each_other() -> None:
    row = STORED[0]
    one = replace(row, id=row.id + "1", run=row.run)
    two = replace(row, id=row.id, run="1" + row.run)
    assert compute_hash(one) != compute_hash(two)


ENTRIES = [build_entry(n, agent=f"default/a{n % 3}") for n in range(6)]


@given(st.lists(st.lists(st.sampled_from(ENTRIES), max_size=4), max_size=12))
@pytest.mark.behaviour("8.3")
def test_any_retries_in_any_order_stand_once(appends: list[list[Entry]]) -> None:
    stored, answers = append(appends)
    assert len({row.id for row in stored}) == len(stored)
    assert {row.id for row in stored} == {entry.id for entries in appends for entry in entries}
    assert list(verify_rows(stored)) == stored
    by_id = {row.id: parse_row(row) for row in stored}
    for entries, rows in zip(appends, answers, strict=True):
        assert rows == [by_id[entry.id] for entry in entries]


def test_an_id_stands_for_one_thing() -> None:
    with pytest.raises(Conflict) as caught:
        append([[build_text("x", id="one")], [Entry(id="one", run=RUN, agent=None, body=build_entry(1).body)]])
    assert caught.value.reason == "IdTaken"
    assert caught.value.message == (
        "The id one stands in row 1 for agent.steered of default/survey-lead;"
        " harness.message of default/survey needs an id of its own."
    )


def test_the_first_body_under_an_id_stands() -> None:
    _, [[first], [second]] = append([[build_text("first")], [build_text("second")]])
    assert first == second
    assert first.body.text == "first"  # type: ignore[union-attr]


def test_the_row_at_fault_is_named() -> None:
    with pytest.raises(Refused) as caught:
        parse_row(replace(STORED[1], payload='{"event":"agent.dreamt"}'))
    assert caught.value.message.startswith("Row 2 (harness.message): A payload is no event this version knows")
