"""A ledger in memory, for tests of what stands on one: the same contract, and a place to stop at.

`MemoryStore` is what would be on the disk: a second `MemoryLedger` over it is the program started again.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from alineod.clock import Clock
from alineod.domain.events import Entry, Row
from alineod.domain.fold import fold
from alineod.domain.state import State
from alineod.errors import AlineoError, Unavailable
from alineod.ledger.chain import Head, decide_append
from alineod.ledger.failures import build_closed
from alineod.ledger.folded import Folded
from alineod.ledger.port import READ_LIMIT, Failing, Listener, Replication, Unsubscribe
from alineod.ledger.records import prepare_entries

Hook = Callable[[str], None]


@dataclass
class MemoryStore:
    """Rows that outlive a `MemoryLedger`."""

    rows: list[Row] = field(default_factory=list)
    by_id: dict[str, Row] = field(default_factory=dict)
    secret: bytes = hashlib.sha256(b"a secret for tests").digest()
    epoch: int = 0


class MemoryLedger:
    """Implements `port.Ledger`.

    Args:
        hook: called with `before append` and `after append` around each one; what it raises goes to the caller, the
            second time with the rows already standing, as if the process had died before the answer.
    """

    def __init__(self, clock: Clock, store: MemoryStore | None = None, hook: Hook = lambda point: None) -> None:
        self._clock = clock
        self._store = MemoryStore() if store is None else store
        self._store.epoch += 1
        self._hook = hook
        self._folded = Folded(fold(State(), self._store.rows))
        self._closed, self._commits = False, True
        self._failing: Failing | None = None
        self.secret = self._store.secret
        self.epoch = self._store.epoch

    @property
    def state(self) -> State:
        return self._folded.state

    @property
    def acknowledged_seq(self) -> int:
        return self._folded.state.seq

    @property
    def replication(self) -> Replication:
        return Replication(False, len(self._store.rows), self.acknowledged_seq, failing=self._failing)

    def fail(self, failure: AlineoError, *, commits: bool) -> None:
        """Acknowledge nothing from now on; `commits` says whether what is appended meanwhile stands nevertheless."""
        self._commits = commits
        self._failing = Failing(failure, self._clock.monotonic(), self._clock.now().timestamp())

    def mend(self) -> None:
        """Acknowledge again, what stands first."""
        self._failing = None
        self._folded.publish(self._store.rows[self.acknowledged_seq :])

    async def append(self, entries: Sequence[Entry]) -> list[Row]:
        prepared = prepare_entries(entries)
        if self._closed:
            raise build_closed()
        self._hook("before append")
        head = Head(self._store.rows[-1].seq, self._store.rows[-1].hash) if self._store.rows else Head()
        plan = decide_append(prepared, self._store.by_id, head, int(self._clock.now().timestamp() * 1_000_000))
        if self._failing is None or self._commits:
            self._store.rows.extend(plan.added)
            self._store.by_id.update((row.id, row) for row in plan.added)
        if self._failing is not None:
            raise Unavailable("NotAcknowledged", self._failing.failure.message)
        self._folded.publish(plan.added)
        self._hook("after append")
        return list(plan.rows)

    def subscribe(self, listener: Listener) -> Unsubscribe:
        return self._folded.subscribe(listener)

    async def read(
        self, *, run: str | None = None, agent: str | None = None, after: int = 0, limit: int = READ_LIMIT
    ) -> list[Row]:
        found = (
            row
            for row in self._store.rows[max(after, 0) : self.acknowledged_seq]
            if run in (None, row.run) and agent in (None, row.agent)
        )  # fmt: skip
        return [row for row, _ in zip(found, range(limit), strict=False)]

    async def close(self) -> None:
        self._closed = True
