"""What the ledger is compared with: plain SQLite with Litestream beside it, which uploads once a second.

Each append is a transaction of its own, and is answered when it is committed. What the bucket has of it nobody knows:
what was answered in the last second or so is lost with the disk. No ids that are asked for, no chain, no fold.
"""

import asyncio
import contextlib
import json
import os
import sqlite3
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from alineod.domain.events import Entry
from alineod.ledger.control import ControlSocket
from alineod.ledger.litestream import find_program
from hack.bench.ledger_world import World, running

_TABLE = "CREATE TABLE events (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, payload TEXT NOT NULL) STRICT"
_INSERT = "INSERT INTO events (id, payload) VALUES (?, ?)"
_PATIENCE = 60.0
Pair = tuple[str, str]


class RawLog:
    """A database that one thread writes."""

    def __init__(self, path: Path, control: ControlSocket) -> None:
        self._path = path
        self._control = control
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._connection = self._thread.submit(_open, path).result()

    async def append(self, entries: Sequence[Entry]) -> None:
        pairs = [(entry.id, msgspec.json.encode(entry.body).decode()) for entry in entries]
        await asyncio.get_running_loop().run_in_executor(self._thread, _write, self._connection, pairs)

    async def settle(self) -> None:
        """Wait until all of it is in the bucket, so that it does not disturb what is measured next."""
        await asyncio.to_thread(self._control.sync, self._path, _PATIENCE)

    def close(self) -> None:
        self._thread.submit(self._connection.close).result()
        self._thread.shutdown()


@contextlib.asynccontextmanager
async def open_raw(world: World) -> AsyncIterator[RawLog]:
    """The database and a Litestream that has begun to replicate it."""
    directory = world.directory / "raw"
    directory.mkdir()
    config, socket = directory / "litestream.json", directory / "litestream.sock"
    config.write_text(json.dumps(_build_config(world, directory / "raw.db", socket)))
    log = RawLog(directory / "raw.db", ControlSocket(socket, world.bucket))
    try:
        with running([find_program(os.environ), "replicate", "-config", config], world.env):
            while not socket.exists():  # noqa: ASYNC110  (it waits for another process)
                await asyncio.sleep(0.05)
            await log.settle()
            yield log
    finally:
        log.close()


def _build_config(world: World, database: Path, socket: Path) -> dict[str, object]:
    """Litestream's own levels, retentions and its sync once a second."""
    replica = {
        "type": "s3", "bucket": world.bucket.name, "path": "raw", "region": world.bucket.region,
        "endpoint": world.bucket.endpoint, "force-path-style": True, "sync-interval": "1s",
    }  # fmt: skip
    return {
        "socket": {"enabled": True, "path": str(socket)},
        "logging": {"level": "warn", "stderr": True},
        "dbs": [{"path": str(database), "replica": replica}],
    }


def _open(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    for pragma in ("journal_mode = wal", "synchronous = full", "wal_autocheckpoint = 0", "busy_timeout = 10000"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute(_TABLE)
    return connection


def _write(connection: sqlite3.Connection, pairs: Sequence[Pair]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany(_INSERT, pairs)
    connection.execute("COMMIT")
