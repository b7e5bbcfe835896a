"""The one writer: a thread that turns queued appends into group commits and acknowledges them.

For each batch: one transaction, then the acknowledger, then the rows go to the loop. Nothing is handed on before it is
acknowledged. Knows nothing of folds, listeners or readers, and does not know what acknowledges.
"""

import logging
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from alineod.clock import Clock
from alineod.domain.events import Row
from alineod.errors import AlineoError, Conflict, Damaged, Fenced, Unavailable
from alineod.ledger import sql
from alineod.ledger.chain import parse_row
from alineod.ledger.failures import explain_sqlite
from alineod.ledger.port import Acknowledger, Replication
from alineod.ledger.records import Prepared

log = logging.getLogger(__name__)

BATCH_LIMIT = 1000
"""Entries in one transaction."""
LINGER_SHARE = 0.1
"""How much of the last confirmation's time may be spent on waiting for more to confirm with the next."""
LINGER_LIMIT = 0.025
"""Seconds."""


@dataclass(frozen=True)
class Request:
    """One append. `token` is the caller's own and comes back with the answer; `given_up` is asked before writing."""

    entries: Sequence[Prepared]
    token: Any
    given_up: Callable[[], bool] = lambda: False


@dataclass(frozen=True)
class Answers:
    """What became of a batch: `rows` are newly acknowledged, in order and without a gap to the last ones."""

    rows: Sequence[Row]
    outcomes: Sequence[tuple[Any, Sequence[Row] | AlineoError]]


class Writer:
    """Owns the writing connection.

    Args:
        head: seq of the last row that is acknowledged already.
        deliver: called on the writer's thread with each batch's answers.
        ended: called on the writer's thread when it ends, with the reason.
    """

    def __init__(
        self,
        path: Path,
        epoch: int,
        head: int,
        acknowledger: Acknowledger,
        clock: Clock,
        deliver: Callable[[Answers], None],
        ended: Callable[[AlineoError], None],
    ) -> None:
        self._path = path
        self._epoch = epoch
        self._acknowledger = acknowledger
        self._clock = clock
        self._deliver = deliver
        self._ended = ended
        self._queue: deque[Request] = deque()
        self._queued = 0
        self._wake = threading.Condition()
        self._closing = False
        self._expected = 1
        self._confirmation = 0.0
        self._thread = threading.Thread(target=self._run, name="ledger-writer", daemon=True)
        self.replication = Replication(acknowledger.configured, committed_seq=head, acknowledged_seq=head)

    def start(self) -> None:
        self._thread.start()

    def submit(self, request: Request) -> bool:
        """Queue an append; False when the writer takes none any more."""
        with self._wake:
            if self._closing:
                return False
            self._queue.append(request)
            self._queued += len(request.entries)
            self._wake.notify()
            return True

    @property
    def queued(self) -> int:
        """Entries that wait for their transaction."""
        return self._queued

    def close(self, grace: float) -> None:
        """Write what is queued, for at most `grace` seconds, and fail the rest. Blocks; not for the loop."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        if self._thread.ident is None:
            return
        self._thread.join(grace)
        self._acknowledger.stop()
        self._thread.join()

    def _run(self) -> None:
        failure: AlineoError = Unavailable("LedgerClosed", "The ledger is closed; ask again once the operator is back.")
        try:
            # The reader is there to be closed last: the last one to go, if it may write, runs a checkpoint.
            with closing(sql.open_reader(self._path)) as reader, closing(sql.open_writer(self._path)) as connection:
                sql.read_head(reader)
                while batch := self._take():
                    self._write(connection, batch)
        except (AlineoError, sqlite3.Error) as error:
            failure = error if isinstance(error, AlineoError) else explain_sqlite(error, self._path)
        self._refuse_queued(failure)
        self._ended(failure)

    def _take(self) -> list[Request]:
        """Wait for work; an empty batch means there will be none any more."""
        with self._wake:
            self._wake.wait_for(lambda: self._queue or self._closing)
            linger = min(self._confirmation * LINGER_SHARE, LINGER_LIMIT)
            if linger > 0 and not self._closing:
                self._wake.wait_for(lambda: self._closing or len(self._queue) >= self._expected, linger)
            batch: list[Request] = []
            size = 0
            while self._queue and (not batch or size + len(self._queue[0].entries) <= BATCH_LIMIT):
                batch.append(self._queue.popleft())
                size += len(batch[-1].entries)
            self._queued -= size
            self._expected = len(batch)
            return batch

    def _write(self, connection: sqlite3.Connection, batch: list[Request]) -> None:
        """One batch from the queue to its answers.

        Raises:
            AlineoError: nothing more can be written by this process; the batch has its answer.
        """
        wanted = [request for request in batch if not request.given_up()]
        try:
            plans = sql.write_batch(connection, self._epoch, [request.entries for request in wanted], self._read_time())
            rows = self._confirm(connection, plans)
        except (AlineoError, sqlite3.Error) as error:
            failure = error if isinstance(error, AlineoError) else explain_sqlite(error, self._path)
            self._deliver(Answers([], [(request.token, failure) for request in wanted]))
            if isinstance(failure, Fenced | Damaged) or self._closing:
                raise failure from error
            log.warning("An append failed. %s", failure.message)
            return
        outcomes = [
            (request.token, plan if isinstance(plan, Conflict) else plan.rows)
            for request, plan in zip(wanted, plans, strict=True)
        ]
        self._deliver(Answers(rows, outcomes))

    def _confirm(self, connection: sqlite3.Connection, plans: Sequence[sql.Outcome]) -> list[Row]:
        """Have everything committed so far acknowledged, and return what that adds."""
        head = sql.read_head(connection).seq
        before = self.replication.acknowledged_seq
        if head == before:
            return []
        self.replication = replace(self.replication, committed_seq=head)
        started = self._clock.monotonic()
        self._acknowledger.confirm(self._report)
        self._confirmation = self._clock.monotonic() - started
        self.replication = Replication(self._acknowledger.configured, committed_seq=head, acknowledged_seq=head)
        added = [row for plan in plans if not isinstance(plan, Conflict) for row in plan.added]
        if added and added[0].seq == before + 1:
            return added
        # An earlier batch stands although its transaction or its confirmation was reported as failed.
        return [parse_row(stored) for stored in sql.read_rows(connection, before)]

    def _report(self, failure: AlineoError) -> None:
        since = self.replication.failing_since
        if since is None:
            since = self._clock.monotonic()
            log.warning("Events wait for the bucket. %s", failure.message)
        self.replication = replace(self.replication, failing_since=since, failure=failure)

    def _read_time(self) -> int:
        return int(self._clock.now().timestamp() * 1_000_000)

    def _refuse_queued(self, failure: AlineoError) -> None:
        with self._wake:
            self._closing = True
            left, self._queue, self._queued = list(self._queue), deque(), 0
        self._deliver(Answers([], [(request.token, failure) for request in left]))
