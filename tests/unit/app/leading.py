"""A new leader, as `alineod operator` runs it, over what a swarm in memory has left: its term, queue and API."""

import asyncio
import math
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import httpx

from alineod.app.opening import Opened
from alineod.app.parts import Parts
from alineod.app.serve import Switch
from alineod.app.sight import Sight
from alineod.app.takeover import Takeover
from alineod.app.term import Term, lead, serve
from alineod.clock import SystemClock
from alineod.domain.facts import PodFacts
from alineod.http.routes import build_standby_app
from alineod.kube.access import ClusterAccess
from alineod.kube.elector import Elector
from alineod.kube.gateway import Gateway
from alineod.kube.health import Health
from alineod.kube.objects import AGENTS, PODS, SWARMS
from alineod.kube.store import Change, Store
from alineod.ledger.memory import MemoryLedger
from alineod.metrics import Metrics
from alineod.reconcile.bridges import Bridges
from alineod.reconcile.world import Term as Memory
from alineod.settings import parse_settings
from alineod.wire.turns import BridgeState
from tests.unit.reconcile.simulation import INSTALLED, Sandboxes, Simulation


class Hanging:
    """Sandboxes of which some, by the name of their pod, give no answer until they are let."""

    def __init__(self, sandboxes: Sandboxes, *pods: str) -> None:
        self._sandboxes, self._pods = sandboxes, set(pods)
        self._let = asyncio.Event()
        self.asked = list[str]()

    def let(self) -> None:
        self._let.set()

    async def read_state(self, pod: PodFacts, token: str) -> BridgeState:
        self.asked.append(pod.name)
        if pod.name in self._pods:
            await self._let.wait()
        return await self._sandboxes.read_state(pod, token)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sandboxes, name)


class Leading:
    """The leader, from its first look at the cluster on."""

    def __init__(self, simulation: Simulation, bridges: Hanging, gateway: Any = None) -> None:
        self._store, self.opened = Store(), asyncio.Event()
        for resource in (SWARMS, AGENTS, PODS):
            for obj in simulation.gateway.objects.find(resource):
                self._store.put(resource, obj)
        self.parts = _build_parts()
        self.ledger = MemoryLedger(self.parts.clock, simulation.stored)
        term_gateway = cast("Gateway", gateway or simulation.gateway)
        self.term = Term(
            self.parts, term_gateway, Opened(self.ledger, "cluster-1"), cast("Bridges", bridges), self._build_sight()
        )

    def _build_sight(self) -> Sight:
        def read_all() -> list[Change]:
            kinds = (SWARMS, AGENTS, PODS)
            return [Change(ref, None, obj) for kind in kinds for ref, obj in self._store.read_refs(kind).items()]

        complete = asyncio.Event()
        complete.set()
        return cast(
            "Sight",
            SimpleNamespace(store=self._store, complete=complete, jobs=[], read_all=read_all, watch=lambda: None),
        )

    @property
    def memory(self) -> Memory:
        return self.term._world.term

    def lose(self, pod: str) -> None:
        """Its watch says that a pod is gone."""
        (found,) = [obj for obj in self._store.find(PODS) if obj["metadata"]["name"] == pod]
        self._store.discard(PODS, found)

    async def _open(self) -> None:
        self.opened.set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Lead while the block runs."""
        stopped, takeover = asyncio.Event(), Takeover(self.parts.clock, self.parts.metrics.set_takeover)
        leading = asyncio.create_task(
            lead(self.parts, self.term, stopped, lambda: serve(self.parts, self.term, takeover, self._open))
        )
        try:
            yield
        finally:
            stopped.set()
            await leading

    async def ask(self, method: str, path: str, token: str = "", body: object = None) -> httpx.Response:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        transport = httpx.ASGITransport(self.parts.switch)
        async with httpx.AsyncClient(transport=transport, base_url="http://it") as client:
            return await client.request(method, path, headers=headers, json=body)

    async def read_health(self) -> Mapping[str, Any]:
        answer = await self.ask("GET", "/v1/health")
        assert answer.status_code == 200
        return cast("Mapping[str, Any]", answer.json())

    async def wait_for(self, **wanted: object) -> Mapping[str, Any]:
        """Until the health says so."""
        async with asyncio.timeout(60):
            while not wanted.items() <= (health := await self.read_health()).items():  # noqa: ASYNC110  (as a person does)
                await asyncio.sleep(0.01)
        return health


def _build_parts() -> Parts:
    clock, metrics, access = SystemClock(), Metrics(), ClusterAccess("http://cluster")
    elector = cast(
        "Elector",
        SimpleNamespace(
            is_alive=True, is_leader=True, problem="", compute_read_age=lambda: 0.0,
            compute_remaining=lambda: math.inf, release=lambda: None,
        ),
    )  # fmt: skip
    settings, health = parse_settings(INSTALLED), Health(elector, clock)
    switch = Switch(build_standby_app(lambda: "", health, settings.instance))
    return Parts(settings, access, clock, metrics, elector, health, switch, None, {})
