"""The operator's term as `alineod operator` runs it, over a ledger on a volume and a cluster in memory."""

import asyncio
import math
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from alineod.app.opening import Opened
from alineod.app.parts import Parts
from alineod.app.serve import Switch
from alineod.app.sight import Sight
from alineod.app.takeover import Takeover
from alineod.app.term import Term
from alineod.clock import SystemClock
from alineod.handlers.feed import Feed, build_deliver
from alineod.http.routes import build_standby_app
from alineod.kube.access import ClusterAccess
from alineod.kube.elector import Elector
from alineod.kube.gateway import Gateway
from alineod.kube.health import Health
from alineod.kube.objects import Ref
from alineod.kube.queue import WorkQueue
from alineod.ledger.open import open_ledger
from alineod.ledger.port import Observe
from alineod.ledger.sqlite import SqliteLedger
from alineod.ledger.start import Opening
from alineod.metrics import Metrics
from alineod.reconcile.world import World
from alineod.settings import parse_settings
from hack.bench.loop_cluster import Cluster, MemoryFeed
from hack.bench.loop_sandboxes import Reporting
from tests.unit.reconcile.simulation import INSTALLED

INSTANCE = "bench"


def build_parts(metrics: Metrics) -> Parts:
    """A process that has the lease for ever, without a bucket."""
    clock, access = SystemClock(), ClusterAccess("http://cluster")
    elector = cast("Elector", SimpleNamespace(compute_remaining=lambda: math.inf))
    settings, health = parse_settings({**INSTALLED, "ALINEOD_INSTANCE": INSTANCE}), Health(elector, clock)
    switch = Switch(build_standby_app(lambda: "", health, INSTANCE))
    return Parts(settings, access, clock, metrics, elector, health, switch, None, {})


class MemorySight(Sight):
    """Sees the cluster in memory."""

    def __init__(self, parts: Parts, cluster: Cluster) -> None:
        super().__init__(parts, cast("Gateway", cluster), Takeover(parts.clock, parts.metrics.set_takeover))
        self._feed = cast("Feed", MemoryFeed(cluster, build_deliver(self.store, parts.metrics)))


class Leader:
    """One term at work; `term` numbers it."""

    def __init__(self, parts: Parts, cluster: Cluster, sandboxes: Reporting, ledger: SqliteLedger) -> None:
        self.ledger, self._sight = ledger, MemorySight(parts, cluster)
        self._term = Term(parts, cast("Gateway", cluster), Opened(ledger, "cluster-1"), sandboxes, self._sight)
        self._stopped = asyncio.Event()
        self._sight.start()
        self._work = asyncio.create_task(self._term.work(self._stopped, self._serve))

    async def _serve(self) -> None:
        """The API is not asked."""

    @property
    def world(self) -> World:
        return self._term._world

    @property
    def queue(self) -> WorkQueue[Ref]:
        return self._term._queue

    def wake_known(self) -> None:
        """As after an outage of the bucket."""
        self._term._wake_known()

    def check(self) -> None:
        """Raise what ended the term, if anything has."""
        if self._work.done():
            self._work.result()

    async def stop(self) -> None:
        """As a process does that is told to stop."""
        self._stopped.set()
        await self._work
        await self._term.stop()
        await self._sight.stop()


async def take_over(parts: Parts, cluster: Cluster, sandboxes: Reporting, volume: Path, epoch: int) -> Leader:
    """Open the ledger and lead."""
    metrics = parts.metrics
    observe = Observe(metrics.observe_append, metrics.observe_commit, metrics.observe_confirm, metrics.count_failure)
    ledger = await open_ledger(Opening(volume, INSTANCE, epoch), parts.clock, observe=observe)
    return Leader(parts, cluster, sandboxes, ledger)
