"""Nobody but Litestream runs a checkpoint: every connection that the package opens, over the whole life of a ledger.

A checkpoint that Litestream did not see loses rows of the replica without a trace.
"""

import re
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from alineod.clock import SystemClock
from alineod.ledger.build import verify_file
from alineod.ledger.cli import main
from alineod.ledger.open import open_ledger
from alineod.ledger.places import Volume
from alineod.ledger.replicate import Remote
from alineod.ledger.sql import LOG_PAGES
from alineod.ledger.sqlite import SqliteLedger
from alineod.ledger.start import Opening
from tests.support.memory_bucket import MemoryBucket
from tests.unit.ledger.entries import build_entry

AUTOMATIC = 1000  # pages in the log after which SQLite runs a checkpoint by itself
PAGE = 4096
LONGEST = 200  # characters of a statement that runs one; what is written can be far longer
SWITCHED_OFF = "PRAGMA wal_autocheckpoint = 0"
RUNS_ONE = re.compile(r"wal_checkpoint|VACUUM|wal_autocheckpoint\s*=\s*[^0 ]|journal_mode\s*=\s*d", re.IGNORECASE)


opened = 0
"""Connections of this process, however they were made."""


def count(event: str, arguments: tuple[Any, ...]) -> None:
    global opened  # noqa: PLW0603  (a hook of the interpreter is there for good)
    opened += event == "sqlite3.connect"


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What every connection executes, from its making on, in whatever thread."""
    statements: list[list[str]] = []
    connect = sqlite3.connect

    def watch(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **options)
        statements.append([])
        connection.set_trace_callback(statements[-1].append)
        return connection

    monkeypatch.setattr(sqlite3, "connect", watch)
    return statements


class PatientReplicator:
    """Opens no connection of its own; what the volume holds is enough here."""

    def begin(self, epoch: int, database: Path) -> None:
        pass

    def sync(self, database: Path, stopped: Callable[[], bool]) -> None:
        pass

    async def restore(self, epoch: int, target: Path) -> None:
        raise AssertionError("the volume is there")


async def open_volume(root: Path, epoch: int, bucket: MemoryBucket | None) -> SqliteLedger:
    remote = Remote(bucket, "i/ledger/", PatientReplicator()) if bucket is not None else None
    return await open_ledger(Opening(root, "default", epoch), SystemClock(), remote)


async def fill(ledger: SqliteLedger, first: int) -> None:
    """Write twice the pages after which SQLite would run a checkpoint."""
    for start in range(first, first + 2 * AUTOMATIC, 100):
        await ledger.append([build_entry(number, text="x" * PAGE) for number in range(start, start + 100)])


async def live(root: Path) -> None:
    """A new ledger, a lot written to it, a look into it from outside, and a second term that begins from it."""
    bucket = MemoryBucket()
    for epoch in (1, 2):
        ledger = await open_volume(root, epoch, bucket)
        await fill(ledger, epoch * 10_000)
        await ledger.read(run="default/survey", limit=5)
        for command in (["verify"], ["stats"], ["dump", "--agent", "default/nobody"]):
            assert main(command, {"ALINEOD_LEDGER_DIR": str(root)}) == 0
        verify_file(Volume(root).file(epoch))
        await ledger.close()


async def test_every_connection_leaves_checkpoints_to_litestream(tmp_path: Path, connections: list[list[str]]) -> None:
    sys.addaudithook(count)
    before = opened
    await live(tmp_path)
    assert len(connections) == opened - before > 10
    for said in connections:
        assert SWITCHED_OFF in said
        first = said.index(SWITCHED_OFF)
        assert all(statement.startswith("PRAGMA ") for statement in said[:first])
        assert not [statement for statement in said if RUNS_ONE.search(statement[:LONGEST])]


async def test_the_log_is_whole_when_the_last_connection_is_closed(tmp_path: Path) -> None:
    """The last one to go runs a checkpoint if it may write."""
    ledger = await open_volume(tmp_path, 1, MemoryBucket())
    await fill(ledger, 1)
    await ledger.close()
    file = Volume(tmp_path).file(1)
    assert file.with_name("ledger.db-wal").stat().st_size > 2 * AUTOMATIC * PAGE
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro&immutable=1", uri=True)) as without_log:
        assert without_log.execute("SELECT count(*) FROM events").fetchone() == (0,)


async def test_without_a_replica_the_log_stays_short(tmp_path: Path) -> None:
    """Nobody else would ever shorten it: a volume of any size would be full one day."""
    ledger = await open_volume(tmp_path, 1, None)
    await fill(ledger, 1)
    await fill(ledger, 10_000)
    assert Volume(tmp_path).file(1).with_name("ledger.db-wal").stat().st_size < 3 * LOG_PAGES * PAGE
    assert ledger.acknowledged_seq == 4 * AUTOMATIC
    await ledger.close()
