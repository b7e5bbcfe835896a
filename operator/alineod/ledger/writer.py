"""The one writer: a thread that turns queued appends into group commits and acknowledges them.

For each batch: one transaction, then the acknowledger, then the rows go to the loop; the first two are tried until they
succeed. Nothing is handed on before it is acknowledged. Knows nothing of folds, listeners or readers, and does not know
what acknowledges.
"""

import logging
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from alineod.clock import Clock
from alineod.domain.events import Row
from alineod.errors import AlineoError, Conflict, Damaged, Unavailable
from alineod.ledger import sql
from alineod.ledger.chain import parse_row
from alineod.ledger.failures import build_closed, explain_sqlite
from alineod.ledger.port import Acknowledger, Failing, Observe, Replication
from alineod.ledger.queue import AppendQueue
from alineod.ledger.records import Prepared
from alineod.ledger.saved import Saved
from alineod.ledger.standing import Standing

log = logging.getLogger(__name__)

LINGER_SHARE = 0.1
"""How much of the last confirmation's time may be spent on waiting for more to confirm with the next."""
LINGER_LIMIT = 0.025
"""Seconds."""
FIRST_PAUSE, LAST_PAUSE = 0.05, 1.0
"""Seconds between tries of a transaction, doubling."""


Outcome = tuple[Any, Sequence[Row] | AlineoError]
"""The caller's token, and what it is answered."""


@dataclass(frozen=True)
class Answers:
    """What became of a batch: `rows` are newly acknowledged, in order and without a gap to the last ones."""

    rows: Sequence[Row]
    outcomes: Sequence[Outcome]


@dataclass(frozen=True)
class Told:
    """Whom the writer tells, on its own thread.

    `deliver` gets each batch's answers, `failing` hears when acknowledging begins to fail, for another reason, or no
    more, and `ended` why the thread ends.
    """

    deliver: Callable[[Answers], None]
    failing: Callable[[], None]
    ended: Callable[[AlineoError], None]
    observe: Observe


class Writer:
    """Owns the writing connection.

    Args:
        head: seq of the last row that is acknowledged already.
        patience: seconds for which a volume that cannot be written is tried again; None for ever.
    """

    def __init__(
        self,
        path: Path,
        epoch: int,
        head: int,
        queue: AppendQueue,
        acknowledger: Acknowledger,
        clock: Clock,
        told: Told,
        patience: float | None,
    ) -> None:
        self._path, self._epoch = path, epoch
        self._queue, self._acknowledger, self._clock = queue, acknowledger, clock
        self._told, self._patience = told, patience
        self._due: Callable[[], Saved | None] | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ledger-writer", daemon=True)
        self.replication = Replication(acknowledger.configured, committed_seq=head, acknowledged_seq=head)

    def start(self) -> None:
        self._thread.start()

    def keep(self, build: Callable[[], Saved | None]) -> None:
        """Write a fold beside the next transaction; a later one takes the place of one that still waits."""
        self._due = build

    def close(self, grace: float) -> None:
        """Write what is queued, for at most `grace` seconds, and fail the rest. Blocks; not for the loop."""
        self._queue.close(build_closed())
        if self._thread.ident is None:
            return
        self._thread.join(grace)
        self._stopped.set()
        self._acknowledger.stop()
        self._thread.join()

    def _run(self) -> None:
        failure: AlineoError = build_closed()
        try:
            self._work()
        except Exception as error:
            failure = self._explain(error)
        self._queue.close(failure)
        self._told.deliver(Answers([], [(request.token, failure) for request in self._queue.take_rest()]))
        self._told.ended(failure)

    def _work(self) -> None:
        # The reader is there to be closed last: the last one to go, if it may write, runs a checkpoint.
        replicated = self._acknowledger.configured
        with (
            closing(sql.open_reader(self._path)) as reader,
            closing(sql.open_writer(self._path, replicated=replicated)) as connection,
        ):
            sql.read_head(reader)
            standing = Standing(self._path)
            while batch := self._queue.take(min(self.replication.took * LINGER_SHARE, LINGER_LIMIT)):
                tokens = [request.token for request in batch]
                try:
                    plans = self._commit(connection, standing, [request.entries for request in batch])
                    rows = self._confirm(connection, plans)
                except Exception as error:
                    failure = self._explain(error)
                    self._told.deliver(Answers([], [(token, failure) for token in tokens]))
                    raise failure from error
                self._queue.expect(len(batch))
                outcomes = [plan if isinstance(plan, Conflict) else plan.rows for plan in plans]
                self._told.deliver(Answers(rows, list(zip(tokens, outcomes, strict=True))))
                self._keep_due(connection)

    def _keep_due(self, connection: sqlite3.Connection) -> None:
        """What fails here is no loss: the next fold comes, and a start can do without."""
        build, self._due = self._due, None
        if build is not None:
            try:
                if (saved := build()) is not None:
                    sql.write_saved(connection, self._epoch, saved)
            except sqlite3.Error as error:
                log.warning("the fold could not be kept: %s", explain_sqlite(error, self._path).message)

    def _commit(
        self, connection: sqlite3.Connection, standing: Standing, appends: Sequence[Sequence[Prepared]]
    ) -> list[sql.Outcome]:
        """One transaction, tried until it stands: whoever gave up meanwhile was told that it may."""
        pause, started = FIRST_PAUSE, self._clock.monotonic()
        while True:
            began = self._clock.monotonic()
            try:
                plans = sql.write_batch(connection, self._epoch, appends, self._read_time())
                standing.check()
                self._told.observe.commit(sum(map(len, appends)), self._clock.monotonic() - began)
                return plans
            except sqlite3.Error as error:
                standing.check()
                failure = explain_sqlite(error, self._path)
                if not isinstance(failure, Unavailable) or self._is_over(started):
                    raise failure from error
                self._report(failure)
            if self._stopped.wait(pause):
                raise build_closed()
            pause = min(pause * 2, LAST_PAUSE)

    def _is_over(self, started: float) -> bool:
        return self._patience is not None and self._clock.monotonic() - started >= self._patience

    def _confirm(self, connection: sqlite3.Connection, plans: Sequence[sql.Outcome]) -> list[Row]:
        """Have everything committed so far acknowledged, and return what that adds."""
        head = sql.read_head(connection).seq
        before = self.replication.acknowledged_seq
        if head != before:
            started = self._clock.monotonic()
            self.replication = replace(self.replication, committed_seq=head, waiting_since=started)
            self._acknowledger.confirm(self._report)
            took = self._clock.monotonic() - started
            self._told.observe.confirm(took)
            self.replication = replace(self.replication, acknowledged_seq=head, waiting_since=None, took=took)
        self._report_success()
        added = [row for plan in plans if not isinstance(plan, Conflict) for row in plan.added]
        if head == before or (added and added[0].seq == before + 1):
            return added
        # An earlier transaction stands although it was reported as failed.
        return [parse_row(stored) for stored in sql.read_rows(connection, before)]

    def _report(self, failure: AlineoError) -> None:
        self._told.observe.fail(failure.reason)
        failing = self.replication.failing
        if failing is not None and failing.failure.reason == failure.reason:
            return
        since, time = self._clock.monotonic(), self._clock.now().timestamp()
        failing = Failing(failure, since, time) if failing is None else replace(failing, failure=failure)
        self.replication = replace(self.replication, failing=failing)
        self._told.failing()

    def _report_success(self) -> None:
        if self.replication.failing is not None:
            self.replication = replace(self.replication, failing=None)
            self._told.failing()

    def _read_time(self) -> int:
        return int(self._clock.now().timestamp() * 1_000_000)

    def _explain(self, error: Exception) -> AlineoError:
        if isinstance(error, AlineoError):
            return error
        if isinstance(error, sqlite3.Error):
            return explain_sqlite(error, self._path)
        log.error("the ledger's writer failed", exc_info=error)
        return Damaged("WriterFailed", f"The ledger's writer failed ({error!r}). Report this with the operator's log.")
