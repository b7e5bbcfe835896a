"""How long Litestream may take for the next sync, and when to stop trusting it. Pure: told what happened and when.

A try that is too short for a slow bucket never succeeds, since each failed one makes the next one longer; a long one is
late to see that a bucket is back. Litestream's background work has no deadline of its own: on a connection that nobody
answers it keeps every sync waiting for minutes, long after the bucket is back. On a slow line that work may be the
upload itself, so each Litestream that was replaced in vain makes the next one's time longer. And what it cannot read of
the ledger's files today it will not read tomorrow.
"""

from enum import Enum, auto

from alineod.errors import AlineoError
from alineod.ledger.litestream import BROKEN, SLOW, STUCK

SHORT, LONG = 2.0, 64.0
"""Seconds for one sync."""
STUCK_LIMIT = 10.0
"""Seconds for which Litestream may keep syncs waiting before it is replaced; doubled until a sync succeeds."""
BROKEN_LIMIT = 30.0
"""Seconds for which it may fail at the ledger's own files before this term is given up."""
RATE = 1 << 19
"""Bytes a second that a term's first sync is given time for: the whole ledger goes up, beside a snapshot as large."""


class Next(Enum):
    """What to do after a failure."""

    TRY_AGAIN = auto()
    REPLACE = auto()
    GIVE_UP = auto()


class Pace:
    """One replicator's in one term; `size` is the bytes that its first sync uploads."""

    def __init__(self, size: int = 0) -> None:
        self._longest = max(LONG, size / RATE)
        self._stuck_limit = STUCK_LIMIT + size / RATE
        self.timeout = SHORT + size / RATE
        self._since: tuple[str, float] | None = None  # the reason that kept coming, and when it came first

    def note_success(self, seconds: float) -> None:
        """A sync took so long; the next one may take about as long."""
        self._longest, self._stuck_limit = LONG, STUCK_LIMIT
        self.timeout = min(max(SHORT, seconds * 2), LONG)
        self._since = None

    def note_failure(self, failure: AlineoError, now: float) -> Next:
        """A sync failed."""
        reason = failure.reason
        if reason == SLOW:
            self.timeout = self.timeout * 2 if self.timeout < self._longest else SHORT
        elif reason == STUCK:
            self.timeout = min(self.timeout * 2, self._stuck_limit * 2)
        if self._since is None or self._since[0] != reason:
            self._since = (reason, now)
        lasted = now - self._since[1]
        if reason == STUCK and lasted >= self._stuck_limit:
            self._since, self._stuck_limit = None, self._stuck_limit * 2
            return Next.REPLACE
        return Next.GIVE_UP if reason == BROKEN and lasted >= BROKEN_LIMIT else Next.TRY_AGAIN
