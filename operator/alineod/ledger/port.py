"""What the rest of the program may ask of the ledger. Knows nothing of SQLite, Litestream or threads.

An event is *acknowledged* once it cannot be lost any more: after the commit when there is no bucket, after the
replica confirmed it when there is one. Only acknowledged events are folded, read and told to listeners.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from alineod.domain.events import Entry, Row
from alineod.domain.state import State
from alineod.errors import AlineoError

Listener = Callable[[Sequence[Row]], None]
Unsubscribe = Callable[[], None]

READ_LIMIT = 1000


@dataclass(frozen=True)
class Failing:
    """Why nothing is acknowledged at present.

    `failure` is the first one with its reason: tried again, it differs by nothing but a request's number. `since` is
    when the first try failed, on the ledger's monotonic clock (s), `time` the same moment in Unix seconds.
    """

    failure: AlineoError
    since: float
    time: float


@dataclass(frozen=True)
class Replication:
    """How far acknowledging is behind. `configured` says whether there is a replica at all.

    `waiting_since` is when the oldest event that waits for its acknowledgement began to, on the ledger's monotonic
    clock (s), and `took` how long the last one had to (s).
    """

    configured: bool
    committed_seq: int
    acknowledged_seq: int
    waiting_since: float | None = None
    took: float = 0.0
    failing: Failing | None = None

    def compute_lag(self, now: float) -> float:
        """Seconds that the oldest event has been waiting for its acknowledgement."""
        return 0.0 if self.waiting_since is None else max(0.0, now - self.waiting_since)

    def compute_failing(self, now: float) -> float:
        """Seconds since the first of the tries that fail at present."""
        return 0.0 if self.failing is None else max(0.0, now - self.failing.since)


@dataclass(frozen=True)
class Observe:
    """Who is told what the ledger does, from whichever of its threads does it; times in seconds.

    `append` hears how long an append waited from its call to its acknowledgement, `commit` the events of a transaction
    and its time, `confirm` how long the replica took, `fail` the reason of each try that failed.
    """

    append: Callable[[float], None] = lambda seconds: None
    commit: Callable[[int, float], None] = lambda events, seconds: None
    confirm: Callable[[float], None] = lambda seconds: None
    fail: Callable[[str], None] = lambda reason: None


class Ledger(Protocol):
    """The append-only log of one instance, and the state it folds to."""

    @property
    def state(self) -> State:
        """The fold of all acknowledged events; a new value after every append."""
        ...

    @property
    def acknowledged_seq(self) -> int: ...

    @property
    def epoch(self) -> int:
        """The term this ledger was opened under; at least the one that was asked for."""
        ...

    @property
    def secret(self) -> bytes:
        """32 bytes made by chance together with the ledger and kept in it."""
        ...

    @property
    def replication(self) -> Replication: ...

    async def append(self, entries: Sequence[Entry]) -> list[Row]:
        """Append all of `entries` or none, and return their rows once they are acknowledged.

        An entry whose id stands already is not written again: its standing row is returned in its place.

        Raises:
            Refused: `RecordTooLarge` or `InvalidRecord`; nothing was written.
            Conflict: `IdTaken`, an id stands for another event, run or agent; nothing was written.
            Fenced: another process leads; this one must end.
            Unavailable: not acknowledged (yet). The events may stand or not: append them again under the same ids.
                While acknowledging fails this is answered soon; what was not begun by then is forgotten.
        """
        ...

    def subscribe(self, listener: Listener) -> Unsubscribe:
        """Call `listener` on the loop with every batch of newly acknowledged rows, in order, after the fold."""
        ...

    async def read(
        self, *, run: str | None = None, agent: str | None = None, after: int = 0, limit: int = READ_LIMIT
    ) -> list[Row]:
        """The first `limit` acknowledged rows with a seq above `after`, of one run or agent if named."""
        ...

    async def close(self) -> None:
        """Stop taking events. What is not acknowledged by then fails with Unavailable."""
        ...


class Acknowledger(Protocol):
    """Says when committed rows cannot be lost any more. Called by the writer's thread only, except `stop`."""

    @property
    def configured(self) -> bool:
        """Whether there is a replica at all."""
        ...

    def confirm(self, report: Callable[[AlineoError], None]) -> None:
        """Return once every row committed before the call is safe; block and try again until then.

        Args:
            report: told why each time a try fails.

        Raises:
            Fenced: another process leads.
            Unavailable: `stop` was called.
        """
        ...

    def stop(self) -> None:
        """Make a running and every later `confirm` give up soon. Called from another thread."""
        ...


class Replicator(Protocol):
    """Copies a term's database into the bucket, and back. `begin` and `sync` block; not for the loop."""

    def begin(self, epoch: int, database: Path) -> None:
        """From now on replicate `database`, and nothing else, to the place of this term."""
        ...

    def sync(self, database: Path, stopped: Callable[[], bool]) -> None:
        """Put everything that was committed before the call into the bucket, and return when it is there.

        Args:
            stopped: asked once in a while whether nobody waits any more.

        Raises:
            Unavailable, Denied, NotFound: it is not, or not yet; the message says why.
            Fenced: somebody else writes to the same place.
        """
        ...

    async def restore(self, epoch: int, target: Path) -> None:
        """Write the newest state of a term to the new file `target`.

        Raises:
            Unavailable, Denied, NotFound: the bucket does not answer or refuses.
            Damaged: `ReplicaDamaged`.
        """
        ...
