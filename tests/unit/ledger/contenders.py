"""Two processes that both believe they lead, on one bucket in memory, each held at every call it makes outside.

The ledger, its files, the fence and the writer's thread are the real ones; Litestream is a copy of the file. Whoever
drives the pair says who may make its next call, and who dies before or after it. No lease keeps them apart.
"""

import asyncio
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from alineod.clock import SystemClock
from alineod.domain.events import Row
from alineod.errors import AlineoError, Damaged
from alineod.ledger import sql
from alineod.ledger.open import open_ledger
from alineod.ledger.replicate import Remote
from alineod.ledger.start import Opening
from tests.support.memory_bucket import MemoryBucket
from tests.unit.ledger.entries import build_entry

T = TypeVar("T")
PREFIX = "i/ledger/"
PATIENCE = 20.0  # s until a contender that reaches no call any more is a broken test


class Died(Exception):
    """The process is gone."""


class Gate:
    """Holds the calls of one life of a process; `turn` lets the next one pass."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._held = self._allowed = 0
        self.ended = self._dead = self._dies_after = False

    def call(self, act: Callable[[], T]) -> T:
        """Made by the process, from any of its threads."""
        with self._changed:
            self._held += 1
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._dead or self._allowed > 0)
            self._held -= 1
            if self._dead:
                raise Died
            self._allowed -= 1
        result = act()
        if self._dies_after:
            self.kill()
            raise Died
        return result

    def turn(self) -> bool:
        """Let one call pass, and wait for the next one; False once the process has ended."""
        if not self.wait():
            return False
        with self._changed:
            self._allowed += 1
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._allowed == 0 or self.ended, PATIENCE)
        return self.wait()

    def wait(self) -> bool:
        """Until it is held at a call; False once the process has ended."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._held > 0 or self.ended, PATIENCE), "it reaches no call any more"
            return not self.ended

    def kill(self, *, after: bool = False) -> None:
        """Die now, before the call it is held at; or `after` it took effect."""
        if after:
            self._dies_after = True
            self.turn()
        with self._changed:
            self._dead = True
            self._changed.notify_all()

    def end(self) -> None:
        with self._changed:
            self.ended = True
            self._changed.notify_all()


class OpenGate(Gate):
    """Holds nobody."""

    def call(self, act: Callable[[], T]) -> T:
        return act()


def build_remote_in_memory(bucket: MemoryBucket) -> Remote:
    """A bucket that answers at once, with the copying replicator before it."""
    return Remote(bucket, PREFIX, CopyingReplicator(bucket, OpenGate()))


class HeldBucket:
    """The shared bucket as one process reaches it."""

    def __init__(self, bucket: MemoryBucket, gate: Gate) -> None:
        self._bucket, self._gate = bucket, gate

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._bucket, name)
        return lambda *given, **named: self._gate.call(lambda: method(*given, **named))

    def list(self, prefix: str) -> Iterator[Any]:
        return iter(self._gate.call(lambda: list(self._bucket.list(prefix))))


@dataclass
class CopyingReplicator:
    """In the place of Litestream: `sync` puts a copy of the whole file into the bucket."""

    bucket: MemoryBucket
    gate: Gate
    epoch: int = 0

    def begin(self, epoch: int, database: Path) -> None:
        self.epoch = epoch

    def sync(self, database: Path, stopped: Callable[[], bool]) -> None:
        self.gate.call(lambda: self.bucket.put(self._key(self.epoch), copy_file(database)))

    async def restore(self, epoch: int, target: Path) -> None:
        found = await asyncio.to_thread(self.gate.call, lambda: self.bucket.get(self._key(epoch)))
        if found is None:
            raise Damaged("ReplicaDamaged", f"There is nothing of term {epoch}.")
        await asyncio.to_thread(target.write_bytes, found.body)

    def _key(self, epoch: int) -> str:
        return f"{PREFIX}e{epoch:09d}/db"


def copy_file(database: Path) -> bytes:
    with (
        closing(sqlite3.connect(sql.build_reader_uri(database), uri=True)) as source,
        closing(sqlite3.connect(":memory:")) as copy,
    ):
        source.backup(copy)
        return copy.serialize()


@dataclass
class Contender:
    """One pod: its volume, its lives one after another, and what its clients were told."""

    name: str
    bucket: MemoryBucket
    volume: Path
    acknowledged: list[Row] = field(default_factory=list)
    served: int = 0
    ends: list[str] = field(default_factory=list)
    _life: int = 0
    _thread: threading.Thread | None = None
    gate: Gate = field(default_factory=Gate)

    def turn(self) -> bool:
        """One call further; a process that has ended is started again first."""
        if self._thread is None or self.gate.ended:
            self.start()
        return self.gate.turn()

    def start(self) -> None:
        self.gate, self._life = Gate(), self._life + 1
        self._thread = threading.Thread(target=self._run, args=(self.gate, self._life), daemon=True)
        self._thread.start()

    def kill(self, *, after: bool = False, wipe: bool = False) -> None:
        """The process is gone, and with `wipe` the pod with its volume."""
        if self._thread is None:
            return
        self.gate.kill(after=after)
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()
        if wipe:
            shutil.rmtree(self.volume, ignore_errors=True)

    def _run(self, gate: Gate, life: int) -> None:
        try:
            asyncio.run(self._work(gate, life))
        except (Died, AlineoError) as end:
            self.ends.append(end.reason if isinstance(end, AlineoError) else "Died")
        finally:
            gate.end()

    async def _work(self, gate: Gate, life: int) -> None:
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[AlineoError] = loop.create_future()

        def fail(error: AlineoError) -> None:
            # As a result: an append may have raised it first, and then nobody asks here any more.
            loop.call_soon_threadsafe(lambda: ended.done() or ended.set_result(error))

        held: Any = HeldBucket(self.bucket, gate)
        ledger = await open_ledger(
            Opening(self.volume, "i", 1, owner=f"{self.name}{life}"),
            SystemClock(),
            Remote(held, PREFIX, CopyingReplicator(self.bucket, gate)),
            fatal=fail,
            step=lambda step: gate.call(lambda: None),
        )
        self.served += 1
        try:
            for number in range(1, 1000):
                append = asyncio.ensure_future(ledger.append([build_entry(number, agent=f"n/{self.name}{life}")]))
                await asyncio.wait([append, ended], return_when=asyncio.FIRST_COMPLETED)
                if ended.done():
                    append.cancel()
                    await asyncio.gather(append, return_exceptions=True)
                    raise ended.result()
                self.acknowledged += append.result()
        finally:
            await ledger.close()
