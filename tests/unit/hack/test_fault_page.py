"""The report of the fault matrix and the page that is made of it: what it may claim, and what `--check` refuses."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from hack.faults.claims import CRASHES, LAYERS, claim
from hack.faults.invariants import INVARIANTS
from hack.faults.page import PAGE, REPORT, ROOT, build_page, check
from hack.faults.report import Cell, Result, RowReport, choose_rows, describe, find_cell, parse, render
from hack.faults.strike import STRIKES
from hack.faults.table import COLUMN_WORDS, ROW_WORDS, Column, Row, find_cells, list_rows

HELD = Cell(Result.HELD, "Restore", tuple(INVARIANTS))
FAILED = Cell(Result.FAILED, "Restore", tuple(INVARIANTS), ("files: the files lack what the turns [1] wrote",))


def run(row: Row, *, commit: str = "c1", **cells: Cell) -> RowReport:
    found: Mapping[Column, Cell] = {
        column: cells.get(column.replace("-", "_"), HELD) for column in find_cells(row)
    }  # fmt: skip
    return RowReport(commit, {"operator": "abc"}, "2026-11-30", 100, found)


ALL = {row: run(row) for row in list_rows()}
PODS = next(crash for crash in CRASHES if Row.POD_DELETED in crash.rows)
CONVERSATION, FILES = LAYERS[0], LAYERS[1]


def test_the_report_is_read_as_it_was_written_and_keeps_its_order() -> None:
    text = render(ALL)
    assert parse(text) == ALL
    assert render(dict(reversed(ALL.items()))) == text
    assert text.index('"operator-killed"') < text.index('"pod-deleted"') < text.index('"cluster-lost"')


def test_cells_that_cannot_be_or_come_later_say_why_and_the_rest_is_not_run() -> None:
    assert find_cell({}, Row.HARNESS_KILLED, Column.IDLE).words == ("Pi runs only while a turn runs",)
    assert find_cell({}, Row.POD_DELETED, Column.BLOCKED).words == ("joins with step 4",)
    assert find_cell({}, Row.CLUSTER_LOST, Column.IDLE).result is Result.LATER
    assert find_cell({}, Row.POD_DELETED, Column.IDLE).result is Result.NOT_RUN


def test_every_row_has_a_strike_and_every_row_and_column_has_words() -> None:
    assert set(STRIKES) == set(list_rows())
    assert set(ROW_WORDS) == set(Row)
    assert set(COLUMN_WORDS) == set(Column)
    assert sorted(row for crash in CRASHES for row in crash.rows) == sorted(Row)
    assert {name for layer in LAYERS for name in layer.invariants} == set(INVARIANTS)


@pytest.mark.parametrize(
    ("commit", "rows"),
    [("c1", [Row.BRIDGE_KILLED, Row.POD_EVICTED]), (None, [Row.BRIDGE_KILLED])],
)
def test_a_run_that_goes_on_skips_what_held(commit: str | None, rows: list[Row]) -> None:
    found = {**ALL, Row.BRIDGE_KILLED: run(Row.BRIDGE_KILLED, idle=FAILED)}
    found[Row.POD_EVICTED] = run(Row.POD_EVICTED, commit="c0")
    assert choose_rows(found, [], resume=True, commit=commit) == rows
    assert choose_rows(found, [Row.POD_DELETED], resume=False, commit=commit) == [Row.POD_DELETED]
    assert choose_rows({}, [], resume=True, commit=None) == list(list_rows())


def test_a_row_is_told_in_a_line() -> None:
    assert describe({Row.POD_DELETED: run(Row.POD_DELETED, idle=FAILED)})[0].endswith("100 s  FAILED: idle")
    assert describe({Row.POD_DELETED: run(Row.POD_DELETED)})[0].endswith("100 s  held")


def test_what_every_cell_has_held_is_claimed() -> None:
    assert claim(ALL, PODS, FILES) == "yes, those of the same turn"
    assert "yes, those of the same turn" in build_page(ALL)


def test_one_cell_that_failed_takes_the_claim_away_and_no_other() -> None:
    failed = {**ALL, Row.POD_DELETED: run(Row.POD_DELETED, idle=FAILED)}
    assert claim(failed, PODS, FILES) == "**not always**: pod-deleted × idle"
    assert claim(failed, PODS, CONVERSATION) == CONVERSATION.claim
    assert "pod-deleted × idle: files: the files lack" in build_page(failed)


def test_a_row_that_was_not_played_to_its_end_shows_nothing() -> None:
    stuck = Cell(Result.FAILED, words=("the row was not played to its end: it stuck",))
    failed = {**ALL, Row.POD_DELETED: run(Row.POD_DELETED, idle=stuck)}
    assert all(claim(failed, PODS, layer) == "**not always**: pod-deleted × idle" for layer in LAYERS)


@pytest.mark.parametrize("change", [{"result": Result.HELD, "checked": ("back",)}, {"result": Result.NOT_RUN}])
def test_what_was_not_checked_is_not_claimed(change: dict[str, object]) -> None:
    cell = replace(HELD, **change)  # type: ignore[arg-type]
    less = {**ALL, Row.POD_DELETED: run(Row.POD_DELETED, idle=cell)}
    assert claim(less, PODS, FILES) == "not shown: pod-deleted"
    assert claim({}, PODS, FILES) == "not shown yet"


def test_a_lost_disk_is_claimed_by_nobody_yet() -> None:
    assert claim(ALL, CRASHES[-1], FILES) == "not yet (step 5)"


def test_the_check_is_content_with_what_was_generated() -> None:
    assert list(check(render(ALL), build_page(ALL))) == []


def test_the_check_refuses_a_page_that_claims_more_than_its_report() -> None:
    failed = {**ALL, Row.POD_DELETED: run(Row.POD_DELETED, idle=FAILED)}
    lines = list(check(render(failed), build_page(ALL)))
    assert any("**not always**: pod-deleted × idle" in line for line in lines if line.startswith("+"))


def test_the_check_refuses_a_page_that_was_changed_by_hand() -> None:
    assert list(check(render(ALL), build_page(ALL).replace("not yet (step 5)", "yes")))


def test_the_check_refuses_a_report_that_was_changed_by_hand() -> None:
    text = render(ALL).replace('"result": "impossible"', '"result": "held"', 1)
    assert "not as `make fault-matrix` writes it" in next(check(text, build_page(parse(text))))


def test_the_page_in_the_repository_is_the_one_of_its_report() -> None:
    assert list(check((ROOT / REPORT).read_text(), (ROOT / PAGE).read_text())) == [], "run `make generate`"
