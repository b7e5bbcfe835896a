"""The fold kept beside the events: what it spares a start, and what finds it out when it is not theirs."""

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given

from alineod.clock import SystemClock
from alineod.domain import events as ev
from alineod.domain.events import Entry, Row
from alineod.domain.fold import fold
from alineod.domain.state import State
from alineod.errors import AlineoError, Damaged
from alineod.ledger import sql, sqlite
from alineod.ledger.audit import audit_ledger
from alineod.ledger.audit import main as audit_main
from alineod.ledger.build import Making, check_restored, verify_file
from alineod.ledger.open import open_ledger
from alineod.ledger.places import Volume
from alineod.ledger.saved import build_saved, compute_version, parse_saved
from alineod.ledger.sqlite import SqliteLedger
from alineod.ledger.start import Opening
from tests.unit.domain.rows import ROWS
from tests.unit.ledger.entries import build_entry

CLOCK = SystemClock()
MAKING = Making("default", 9, 0, lambda: b"", whole=False)


async def open_volume(root: Path, **options: object) -> SqliteLedger:
    return await open_ledger(Opening(root, "default", 1), CLOCK, **options)  # type: ignore[arg-type]


async def fill(root: Path, numbers: range) -> Path:
    """Two starts, so that the second one keeps the fold of what the first one appended."""
    ledger = await open_volume(root)
    await ledger.append([build_entry(number) for number in numbers])
    await ledger.close()
    again = await open_volume(root)
    await again.close()
    return Volume(root).file(again.epoch)


def change(path: Path, statement: str, *parameters: object) -> None:
    """Someone with a SQLite of their own changes the file."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for (trigger,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {trigger}")
        connection.execute(statement, parameters)


@given(ROWS)
def test_a_fold_comes_back_as_it_was(rows: list[Row]) -> None:
    saved = build_saved(fold(State(), rows), "ab" * 32)
    assert saved is not None
    state = parse_saved(saved)
    assert state is not None
    assert build_saved(state, "ab" * 32) == saved
    assert state.seq == len(rows)


def test_another_version_or_other_bytes_are_passed_over() -> None:
    saved = build_saved(State(), "ab" * 32)
    assert saved is not None
    assert saved.version == compute_version()
    assert parse_saved(replace(saved, version="another")) is None
    assert parse_saved(replace(saved, body=b"\xc1")) is None


async def test_a_number_that_no_encoding_holds_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sandbox may report what it likes: the fold is not kept, and everything goes on."""
    monkeypatch.setattr(sqlite, "KEEP_EVERY", 1)
    body = ev.AgentSpawned(uid="u", alias="a", spec={"n": 2**64})
    spawned = Entry(id="s", run="n/s", agent="n/a", body=body)
    ledger = await open_volume(tmp_path)
    await ledger.append([spawned])
    assert build_saved(ledger.state, "00" * 32) is None
    await ledger.append([build_entry(1)])
    await ledger.close()
    again = await open_volume(tmp_path)
    assert again.acknowledged_seq == 2
    await again.close()


async def test_a_start_goes_on_from_the_fold_and_checks_what_came_after(tmp_path: Path) -> None:
    path = await fill(tmp_path, range(1, 4))
    change(path, "UPDATE events SET time = 0 WHERE seq = 2")  # before the fold
    built = check_restored(path, replace(MAKING, epoch=2))
    assert (built.state.seq, built.whole) == (3, False)

    ledger = await open_volume(tmp_path)
    await ledger.append([build_entry(4)])
    await ledger.close()
    path = Volume(tmp_path).file(ledger.epoch)
    change(path, "UPDATE events SET time = 0 WHERE seq = 4")
    with pytest.raises(Damaged) as caught:
        check_restored(path, replace(MAKING, epoch=99))
    assert caught.value.message.startswith("Row 4 ")


@pytest.mark.parametrize(
    "statement",
    ["DELETE FROM saved", "UPDATE saved SET version = 'another'", "UPDATE saved SET hash = zeroblob(32)",
     "UPDATE saved SET body = x'c1'"],
)  # fmt: skip
async def test_without_a_fold_of_its_own_every_row_is_checked(tmp_path: Path, statement: str) -> None:
    path = await fill(tmp_path, range(1, 4))
    change(path, statement)
    assert check_restored(path, MAKING).whole
    change(path, "UPDATE events SET time = 0 WHERE seq = 2")
    change(path, "DELETE FROM saved")
    with pytest.raises(Damaged):
        check_restored(path, replace(MAKING, epoch=99))


async def test_the_writer_keeps_a_fold_from_time_to_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "KEEP_EVERY", 10)
    ledger = await open_volume(tmp_path)
    for number in range(1, 26):
        await ledger.append([build_entry(number)])
    state = ledger.state
    await ledger.close()
    assert state.seq == 25
    with closing(sql.open_reader(Volume(tmp_path).file(ledger.epoch))) as connection:
        saved = sql.read_saved(connection)
    assert saved is not None
    assert saved.head.seq == 20
    again = await open_volume(tmp_path)
    assert again.state == state
    await again.close()


async def test_an_audit_finds_what_the_start_did_not_look_at(tmp_path: Path) -> None:
    """The process ends; whoever begins on this volume next checks everything first, and does not begin."""
    path = await fill(tmp_path, range(1, 4))
    ended: list[AlineoError] = []
    await audit_ledger(Volume(tmp_path), path, ended.append, delay=0.0)
    assert ended == []
    change(path, "UPDATE events SET time = 0 WHERE seq = 2")
    await audit_ledger(Volume(tmp_path), path, ended.append, delay=0.0)
    [error] = ended
    assert (type(error), error.reason) == (Damaged, "LedgerDamaged")
    assert error.message.startswith("Row 2 (harness.message, id default/survey-lead/1/2) was changed after")
    for _ in range(2):
        with pytest.raises(Damaged):
            await open_volume(tmp_path)


async def test_a_volume_is_trusted_again_once_a_copy_was_checked_whole(tmp_path: Path) -> None:
    await fill(tmp_path, range(1, 4))
    Volume(tmp_path).write_doubt()
    await (await open_volume(tmp_path)).close()
    assert not Volume(tmp_path).in_doubt


async def test_a_ledger_that_went_on_from_a_fold_audits_itself(tmp_path: Path) -> None:
    await fill(tmp_path, range(1, 4))
    ledger = await open_volume(tmp_path)
    [audit] = [task for task in asyncio.all_tasks() if task.get_name() == "ledger chore"]
    await ledger.close()
    await asyncio.wait([audit])
    assert audit.cancelled()


async def test_a_fold_that_is_not_that_of_the_rows_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = await fill(tmp_path, range(1, 4))
    change(path, "UPDATE saved SET body = x'c1'")
    verify_file(path)  # not readable as a fold: nobody uses it
    other = build_saved(State(seq=2), "00" * 32)
    assert other is not None
    change(path, "UPDATE saved SET body = ?", other.body)
    with pytest.raises(Damaged) as caught:
        verify_file(path)
    assert caught.value.message == "The fold kept in the ledger is not that of its rows 1 to 3."
    assert audit_main(str(path)) == 3
    assert capsys.readouterr().out == caught.value.message
