"""The ledger on a SQLite file: the writer's thread, the reader, and the fold of what is acknowledged.

Puts the parts together on the loop. Does not know how the file came to be where it is, nor what replicates it.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from alineod.clock import Clock
from alineod.domain.events import Entry, Row
from alineod.domain.state import State
from alineod.errors import AlineoError, Unavailable
from alineod.ledger.failures import CLOSED, LOCAL_PATIENCE
from alineod.ledger.folded import Folded
from alineod.ledger.port import READ_LIMIT, Acknowledger, Listener, Observe, Replication, Unsubscribe
from alineod.ledger.queue import RETRY_AFTER, AppendQueue, Bounds, Request
from alineod.ledger.read import Reader
from alineod.ledger.records import prepare_entries
from alineod.ledger.saved import build_saved
from alineod.ledger.sql import Identity
from alineod.ledger.writer import Answers, Outcome, Told, Writer
from alineod.threads import run_apart

log = logging.getLogger(__name__)
Fatal = Callable[[AlineoError], None]
Chore = Callable[[], Coroutine[Any, Any, None]]
ANSWERS_AT_ONCE = 50
KEEP_EVERY = 5000
"""Events between two folds that are kept in the file."""


@dataclass(frozen=True)
class Limits:
    """Times in seconds.

    `append` is how long an append may wait, `failing` how long while acknowledging fails anyway. `volume` is how long a
    volume that cannot be written is tried again before the process ends; counted only where there is a replica, for
    without one nobody else could do better.
    """

    append: float = 20.0
    failing: float = 1.0
    close: float = 5.0
    volume: float = LOCAL_PATIENCE
    queue: Bounds = field(default_factory=Bounds)


class SqliteLedger:
    """Implements `port.Ledger` on the file at `path`, which `open.open_ledger` prepared.

    Args:
        state: the fold of every row in the file, all of them acknowledged.
        fatal: called on the writer's thread when this process can or must write no more.
        chores: go on beside it until it is closed.
    """

    def __init__(
        self,
        path: Path,
        identity: Identity,
        state: State,
        acknowledger: Acknowledger,
        clock: Clock,
        fatal: Fatal = lambda error: None,
        limits: Limits = Limits(),
        observe: Observe | None = None,
        chores: Sequence[Chore] = (),
    ) -> None:
        self.secret = identity.secret
        self.epoch = identity.epoch
        self._folded, self._kept = Folded(state), state.seq
        self._clock, self._limits, self._fatal, self._observe = clock, limits, fatal, observe or Observe()
        self._loop = asyncio.get_running_loop()
        self._waits: set[asyncio.Timeout] = set()
        self._reader = Reader(path)
        self._queue = AppendQueue(limits.queue)
        told = Told(self._hand_over, self._hear_failing, self._end, self._observe)
        patience = limits.volume if acknowledger.configured else None
        self._writer = Writer(path, identity.epoch, state.seq, self._queue, acknowledger, clock, told, patience)
        self._writer.start()
        self._chores = [self._loop.create_task(_run_chore(chore), name="ledger chore") for chore in chores]

    @property
    def state(self) -> State:
        return self._folded.state

    @property
    def acknowledged_seq(self) -> int:
        return self._folded.state.seq

    @property
    def replication(self) -> Replication:
        return self._writer.replication

    async def append(self, entries: Sequence[Entry]) -> list[Row]:
        self._queue.admit(len(entries))
        request = Request(prepare_entries(entries), self._loop.create_future())
        began = self._clock.monotonic()
        self._queue.put(request)
        try:
            rows = await self._wait(request.token)
        except TimeoutError:
            raise self._explain_wait(self._clock.monotonic() - began) from None
        finally:
            self._queue.withdraw(request)
        self._observe.append(self._clock.monotonic() - began)
        return list(rows)

    def subscribe(self, listener: Listener) -> Unsubscribe:
        return self._folded.subscribe(listener)

    async def read(
        self, *, run: str | None = None, agent: str | None = None, after: int = 0, limit: int = READ_LIMIT
    ) -> list[Row]:
        return await self._reader.read(run, agent, after, self.acknowledged_seq, limit)

    async def close(self) -> None:
        for chore in self._chores:
            chore.cancel()
        await run_apart(partial(self._writer.close, self._limits.close))
        await asyncio.sleep(0)  # the last answers are on their way to the loop
        await self._reader.close()

    async def _wait(self, answer: asyncio.Future[Sequence[Row]]) -> Sequence[Row]:
        """The answer, unless it takes too long; how long that is may change while it is waited for."""
        limit = self._limits.append if self.replication.failing is None else self._limits.failing
        async with asyncio.timeout(limit) as waiting:
            self._waits.add(waiting)
            try:
                return await answer
            finally:
                self._waits.discard(waiting)

    def _hear_failing(self) -> None:
        self._loop.call_soon_threadsafe(self._shorten_waits)

    def _shorten_waits(self) -> None:
        """Whoever waits since before it began to fail need not wait longer than who comes after."""
        if self.replication.failing is None:
            return
        soon = self._loop.time() + self._limits.failing
        for waiting in self._waits:
            due = waiting.when()
            if not waiting.expired() and due is not None and due > soon:
                waiting.reschedule(soon)

    def _hand_over(self, answers: Answers) -> None:
        self._loop.call_soon_threadsafe(self._take, answers)

    def _take(self, answers: Answers) -> None:
        self._folded.publish(answers.rows)
        if answers.rows and self.state.seq >= self._kept + KEEP_EVERY:
            self._kept = self.state.seq
            self._writer.keep(partial(build_saved, self.state, answers.rows[-1].hash))
        self._answer(answers.outcomes)

    def _answer(self, outcomes: Sequence[Outcome]) -> None:
        """Some at a time: all who are answered go on in one turn of the loop, and everything else waits for them."""
        for answer, outcome in outcomes[:ANSWERS_AT_ONCE]:
            if answer.done():
                continue
            if isinstance(outcome, AlineoError):
                answer.set_exception(outcome)
            else:
                answer.set_result(outcome)
        if rest := outcomes[ANSWERS_AT_ONCE:]:
            self._loop.call_soon(self._answer, rest)

    def _end(self, failure: AlineoError) -> None:
        if failure.reason != CLOSED:
            self._fatal(failure)

    def _explain_wait(self, waited: float) -> Unavailable:
        failing = self.replication.failing
        why = failing.failure.message if failing else f"The ledger took longer than {waited:.1f} s."
        return Unavailable(
            "NotAcknowledged",
            f"The event was not acknowledged in time and may still come to stand: ask again with the same id. {why}",
            RETRY_AFTER,
        )


async def _run_chore(chore: Chore) -> None:
    """The ledger goes on without a chore that failed."""
    try:
        await chore()
    except Exception:
        log.exception("a chore of the ledger failed")
