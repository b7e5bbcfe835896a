"""A ledger on a new file, with an acknowledger that does what a test says."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from alineod.clock import Clock, SystemClock
from alineod.errors import AlineoError, Unavailable
from alineod.ledger.build import Making, build_new
from alineod.ledger.port import Acknowledger
from alineod.ledger.sqlite import Limits, SqliteLedger

SYSTEM = SystemClock()
MAKING = Making("default", 1, 0, lambda: b"s" * 32)
LIMITS = Limits(append=20.0, failing=20.0, close=0.2)
AWAY = Unavailable("BucketUnreachable", "The bucket is away.")


class Gate:
    """An acknowledger that confirms what it is let to, one by one or all, or fails as it is told."""

    configured = True

    def __init__(self, *, silent: bool = False) -> None:
        self.calls = 0
        self.report: Callable[[AlineoError], None]
        self.silent = silent
        self.failure: AlineoError | None = None
        self._turn = threading.Semaphore(0)
        self._stopped = False

    def confirm(self, report: Callable[[AlineoError], None]) -> None:
        self.calls += 1
        self.report = report
        if not self.silent:
            report(AWAY)
        self._turn.acquire()
        if self.failure or self._stopped:
            raise self.failure or Unavailable("LedgerClosed", "closed")

    def let(self, count: int = 1) -> None:
        self._turn.release(count)

    def fail(self, failure: AlineoError) -> None:
        self.failure = failure
        self.let()

    def stop(self) -> None:
        self._stopped = True
        self.let(1000)


class SteppingClock(SystemClock):
    """The machine's clock, and how far somebody set it."""

    step = timedelta()

    def now(self) -> datetime:
        return super().now() + self.step


Open = Callable[..., SqliteLedger]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
async def open_file(path: Path) -> AsyncIterator[Open]:
    built = build_new(path, MAKING)
    opened: list[SqliteLedger] = []

    def start(
        acknowledger: Acknowledger, limits: Limits = LIMITS, clock: Clock = SYSTEM, **options: object
    ) -> SqliteLedger:
        ledger = SqliteLedger(
            path, built.identity, built.state, acknowledger, clock, limits=limits, **options  # type: ignore[arg-type]
        )  # fmt: skip
        opened.append(ledger)
        return ledger

    yield start
    for ledger in opened:
        await ledger.close()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110  (it waits for another thread)
            await asyncio.sleep(0.005)


async def settle(*awaitables: Awaitable[object]) -> list[object]:
    async with asyncio.timeout(20):
        return await asyncio.gather(*awaitables, return_exceptions=True)
