"""Says when the ledger acknowledges nothing: why and since when, once when it begins and once when it is mended.

What fails for a moment, or for another reason every second, is said calmly: `decide_said` is pure and knows the times.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from alineod.domain.facts import Trouble
from alineod.domain.status import format_time
from alineod.kube.gateway import EventRecord, EventType
from alineod.kube.objects import PODS, SWARMS, Json, read_ref
from alineod.ledger.port import Replication
from alineod.reconcile.world import World

LOOK = 1.0  # s between looks
PATIENCE = 2.0  # s that something may fail before it is said
SLOW = 3.0  # s that a confirmation may take before it is said
CALM = 5.0  # s without trouble before it counts as mended; more than SLOW, so that a slow bucket is one trouble
STEADY = 10.0  # s that one reason stands before another takes its place
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Said:
    """What is shown. `since` in Unix seconds; `from_` and `seen` on the monotonic clock: shown from, last true at."""

    trouble: Trouble
    since: float
    from_: float
    seen: float


def compute_seen(replication: Replication, now: float, time: float) -> tuple[Trouble, float] | None:
    """The trouble at this moment and since when (Unix seconds), if it has lasted long enough to be one."""
    failing = replication.failing
    if failing is not None:
        lasted = replication.compute_failing(now) >= PATIENCE
        return (Trouble(failing.failure.reason, failing.failure.message), failing.time) if lasted else None
    lag = replication.compute_lag(now)
    if lag < SLOW:
        return None
    message = f"an event waits for the bucket for more than {SLOW:g} s; everything waits with it, and nothing is lost"
    return Trouble("BucketSlow", message), time - lag


def decide_said(said: Said | None, seen: tuple[Trouble, float] | None, now: float) -> Said | None:
    """What is to be shown from now on."""
    if seen is None:
        return said if said is not None and now - said.seen < CALM else None
    trouble, since = seen
    if said is None:
        return Said(trouble, since, now, now)
    if trouble.reason != said.trouble.reason and now - said.from_ >= STEADY:
        return Said(trouble, said.since, now, now)
    return replace(said, seen=now)


class LedgerWatch:
    """Looks at the ledger, and tells swarms, people and those who wait.

    Args:
        home: the operator's own pod, as far as an Event needs it.
        tell: takes an Event.
        mended: called when the ledger acknowledges again: what waited for that is to be tried at once.
    """

    def __init__(
        self, world: World, home: Json, tell: Callable[[EventRecord], None], mended: Callable[[], None]
    ) -> None:
        self._world, self._home, self._tell, self._mended = world, home, tell, mended
        self._said: Said | None = None

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            self.look()
            await asyncio.sleep(LOOK)

    def look(self) -> None:
        """One look, and what follows from it."""
        world, replication = self._world, self._world.ledger.replication
        now = world.clock.monotonic()
        before = self._said
        self._said = decide_said(before, compute_seen(replication, now, world.now()), now)
        shown = None if self._said is None else _build_shown(self._said)
        if shown == world.term.ledger_trouble:
            return
        world.term.ledger_trouble = shown
        if before is None and self._said is not None and shown is not None:
            self._begin(self._said, shown)
        elif before is not None and self._said is None:
            self._end(before)
            self._mended()
        self._wake()

    def _begin(self, said: Said, shown: Trouble) -> None:
        log.warning("the ledger acknowledges nothing (%s): %s", shown.reason, shown.message)
        self._announce(EventType.WARNING, shown.reason, "HoldEvents", shown.message, said.since)

    def _end(self, said: Said) -> None:
        note = f"events are acknowledged again; they were not since {format_time(said.since)}"
        log.warning("the ledger goes on: %s", note)
        self._announce(EventType.NORMAL, "LedgerReplicated", "GoOn", note, said.since)

    def _announce(self, kind: EventType, reason: str, action: str, note: str, since: float) -> None:
        """On every swarm, which is what its owner looks at, and on the pod, which is what the operator's owner does."""
        time = datetime.fromtimestamp(self._world.now(), UTC)
        record = EventRecord(PODS, self._home, kind, reason, action, note, str(since), time)
        self._tell(record)
        for swarm in self._find_swarms():
            self._tell(replace(record, resource=SWARMS, regarding=swarm))

    def _wake(self) -> None:
        for swarm in self._find_swarms():
            self._world.wake(read_ref(SWARMS, swarm))

    def _find_swarms(self) -> list[Json]:
        """Those of this release, and those that are still to become somebody's."""
        ours = (None, "", self._world.release.instance)
        return [swarm for swarm in self._world.store.find(SWARMS) if swarm.get("status", {}).get("instance") in ours]


def _build_shown(said: Said) -> Trouble:
    return Trouble(said.trouble.reason, f"{said.trouble.message} (since {format_time(said.since)})")
