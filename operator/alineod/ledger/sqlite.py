"""The ledger on a SQLite file: the writer's thread, the reader, and the fold of what is acknowledged.

Puts the parts together on the loop. Does not know how the file came to be where it is, nor what replicates it.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from alineod.clock import Clock
from alineod.domain.events import Entry, Row
from alineod.domain.state import State
from alineod.errors import AlineoError, Fenced, Unavailable
from alineod.ledger.folded import Folded
from alineod.ledger.port import READ_LIMIT, Acknowledger, Listener, Replication, Unsubscribe
from alineod.ledger.read import Reader
from alineod.ledger.records import prepare_entries
from alineod.ledger.sql import Identity
from alineod.ledger.writer import Answers, Request, Writer

Fatal = Callable[[AlineoError], None]


@dataclass(frozen=True)
class Limits:
    """Times in seconds. `queue` is how many entries may wait for the writer before more are turned away."""

    append: float = 20.0
    close: float = 5.0
    queue: int = 20_000


class SqliteLedger:
    """Implements `port.Ledger` on the file at `path`, which `open.open_ledger` prepared.

    Args:
        state: the fold of every row in the file, all of them acknowledged.
        fatal: called on the writer's thread when this process must write no more (Fenced, Damaged).
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
    ) -> None:
        self.secret = identity.secret
        self.epoch = identity.epoch
        self._folded = Folded(state)
        self._limits = limits
        self._fatal = fatal
        self._failure: AlineoError | None = None
        self._loop = asyncio.get_running_loop()
        self._reader = Reader(path)
        self._writer = Writer(path, identity.epoch, state.seq, acknowledger, clock, self._hand_over, self._end)
        self._writer.start()

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
        prepared = prepare_entries(entries)
        answer: asyncio.Future[Sequence[Row]] = self._loop.create_future()
        if self._writer.queued + len(prepared) > self._limits.queue:
            raise Unavailable("LedgerBusy", f"{self._writer.queued:,} events wait to be written. Ask again later.")
        if not self._writer.submit(Request(prepared, answer, answer.cancelled)):
            raise self._failure or Unavailable("LedgerClosed", "The ledger is closed; ask again once it is open.")
        try:
            return list(await asyncio.wait_for(answer, self._limits.append))
        except TimeoutError:
            raise self._explain_wait() from None

    def subscribe(self, listener: Listener) -> Unsubscribe:
        return self._folded.subscribe(listener)

    async def read(
        self, *, run: str | None = None, agent: str | None = None, after: int = 0, limit: int = READ_LIMIT
    ) -> list[Row]:
        return await self._reader.read(run, agent, after, self.acknowledged_seq, limit)

    async def close(self) -> None:
        await asyncio.to_thread(self._writer.close, self._limits.close)
        await asyncio.sleep(0)  # the last answers are on their way to the loop
        await self._reader.close()

    def _hand_over(self, answers: Answers) -> None:
        self._loop.call_soon_threadsafe(self._take, answers)

    def _take(self, answers: Answers) -> None:
        self._folded.publish(answers.rows)
        for answer, outcome in answers.outcomes:
            if answer.done():
                continue
            if isinstance(outcome, AlineoError):
                answer.set_exception(outcome)
            else:
                answer.set_result(outcome)

    def _end(self, failure: AlineoError) -> None:
        self._failure = failure
        if isinstance(failure, Fenced) or not isinstance(failure, Unavailable):
            self._fatal(failure)

    def _explain_wait(self) -> Unavailable:
        failure = self._writer.replication.failure
        why = failure.message if failure else "The writer is busy."
        return Unavailable(
            "NotAcknowledged",
            f"The event was not acknowledged within {self._limits.append:g} s: {why} It may still come to stand.",
        )
