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
"""Seconds for one sync; the longest is followed by a short one."""
STUCK_LIMIT, STUCK_LONGEST = 10.0, 60.0
"""Seconds for which Litestream may keep syncs waiting before it is replaced; doubled until a sync succeeds."""
BROKEN_LIMIT = 30.0
"""Seconds for which it may fail at the ledger's own files before this term is given up."""
RATE = 1 << 17
"""Bytes a second that a term's first sync is given time for: the whole ledger goes up, beside a snapshot as large.
To cut it off would be to begin again.
"""


class Next(Enum):
    """What to do after a failure."""

    TRY_AGAIN = auto()
    REPLACE = auto()
    GIVE_UP = auto()


class Pace:
    """One replicator's in one term; `size` is the bytes that its first sync uploads."""

    def __init__(self, size: int = 0) -> None:
        first = size / RATE
        self._again = self.timeout = SHORT + first
        self._longest, self._stuck_longest = LONG + 8 * first, STUCK_LONGEST + 8 * first
        self._stuck_limit = STUCK_LIMIT + first
        self._since: tuple[str, float] | None = None  # the reason that kept coming, and since when

    def note_success(self, seconds: float) -> None:
        """A sync took so long; the next one may take about as long."""
        self._again, self._longest = SHORT, LONG
        self._stuck_limit, self._stuck_longest = STUCK_LIMIT, STUCK_LONGEST
        self.timeout = min(max(SHORT, seconds * 2), LONG)
        self._since = None

    def note_failure(self, failure: AlineoError, began: float, now: float) -> Next:
        """A sync that began then has failed now."""
        reason = failure.reason
        if self._since is None or self._since[0] != reason:
            self._since = (reason, began)
        lasted = now - self._since[1]
        if reason == SLOW:
            self.timeout = min(self.timeout * 2, self._longest) if self.timeout < self._longest else self._again
        elif reason == STUCK and lasted >= self._stuck_limit:
            self._since, self._stuck_limit = None, min(self._stuck_limit * 2, self._stuck_longest)
            self.timeout = self._again
            return Next.REPLACE
        elif reason == STUCK:
            self.timeout = min(self.timeout * 2, max(SHORT, self._stuck_limit - lasted))
        return Next.GIVE_UP if reason == BROKEN and lasted >= BROKEN_LIMIT else Next.TRY_AGAIN
