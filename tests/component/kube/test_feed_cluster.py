"""The feed over a real API server: real watches, real labels, a kind that is removed."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from alineod.clock import SystemClock
from alineod.handlers.feed import Feed, build_deliver, build_settings
from alineod.handlers.login import Login
from alineod.kube.access import read_kubeconfig
from alineod.kube.api import ApiGateway, open_api
from alineod.kube.gateway import list_all
from alineod.kube.objects import (
    CRDS,
    MANAGED_BY,
    MANAGER,
    NAMESPACES,
    PODS,
    SERVICE_ACCOUNTS,
    Json,
    Resource,
    Watched,
    read_uid,
)
from alineod.kube.store import Store
from alineod.kube.sweep import Sweep, SweepOptions, SweepReport
from alineod.metrics import Metrics
from tests.support.probes import ensure_kind


@dataclass
class Bench:
    """A namespace and a kind of our own, a feed over them, and why the process would have ended."""

    gateway: ApiGateway
    kind: Resource
    definition: Json
    namespace: str
    store: Store
    sweep: Sweep
    deaths: list[str]

    def build(self, name: str, **spec: Any) -> Json:
        return {"metadata": {"name": name, "namespace": self.namespace}, "spec": spec}

    def build_pod(self, name: str, **labels: str) -> Json:
        spec = {
            "containers": [{"name": "c", "image": "none"}],
            "nodeSelector": {"alineo.test/no": "node"},
            "automountServiceAccountToken": False,
        }
        return {"metadata": {"name": name, "namespace": self.namespace, "labels": labels}, "spec": spec}

    def read_names(self, resource: Resource) -> set[str]:
        return {obj["metadata"]["name"] for obj in self.store.find(resource)}


@asynccontextmanager
async def feeding(kubeconfig: Path) -> AsyncIterator[Bench]:
    name = uuid.uuid4().hex[:8]
    kind, namespace = Resource(f"f{name}.alineo.test", "v1", "probes", "Probe"), f"feed-{name}"
    watched = (Watched(kind), Watched(PODS, f"{MANAGED_BY}={MANAGER}"))
    access, clock, store, metrics, deaths = (
        read_kubeconfig(kubeconfig),
        SystemClock(),
        Store(),
        Metrics(),
        list[str](),
    )
    settings = build_settings(watched)
    settings.networking.error_backoffs = (0.01, 0.02)
    async with open_api(access, clock) as gateway:
        definition = await ensure_kind(gateway, kind)
        space = await gateway.create(NAMESPACES, {"metadata": {"name": namespace}})
        feed = Feed(
            Login(access, clock.now),
            watched,
            (namespace,),
            deliver=build_deliver(store, metrics),
            die=deaths.append,
            settings=settings,
        )
        sweep = Sweep(gateway, store, watched, (namespace,), clock, metrics, options=SweepOptions(look=0.01))
        feed.start()
        try:
            yield Bench(gateway, kind, definition, namespace, store, sweep, deaths)
        finally:
            assert await feed.stop(20)
            await gateway.delete(NAMESPACES, "", namespace, uid=read_uid(space))
            await gateway.delete(CRDS, "", str(kind), uid=read_uid(definition))


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110  (what is waited for has no event)
            await asyncio.sleep(0.02)


@pytest.mark.behaviour("11.19")
async def test_what_happens_reaches_the_store_and_nothing_is_written(kubeconfig: Path) -> None:
    async with feeding(kubeconfig) as bench:
        # Where no controller runs, a namespace has no account for pods.
        await bench.gateway.apply(SERVICE_ACCOUNTS, {"metadata": {"name": "default", "namespace": bench.namespace}})
        for number in range(20):
            await bench.gateway.create(bench.kind, bench.build(f"p{number}", a=1))
        await bench.gateway.create(PODS, bench.build_pod("ours", **{MANAGED_BY: MANAGER}))
        await bench.gateway.create(PODS, bench.build_pod("theirs"))
        await until(lambda: len(bench.read_names(bench.kind)) == 20 and bench.read_names(PODS) == {"ours"})
        gone = await bench.gateway.get(bench.kind, bench.namespace, "p0")
        await bench.gateway.delete(bench.kind, bench.namespace, "p0", uid=read_uid(gone))
        changed = await bench.gateway.apply(bench.kind, bench.build("p1", a=2))
        await until(lambda: "p0" not in bench.read_names(bench.kind))
        await until(lambda: any(obj["spec"] == {"a": 2} for obj in bench.store.find(bench.kind)))
        assert await bench.sweep.sweep() == SweepReport(0, 0)
        now = [obj async for obj in list_all(bench.gateway, bench.kind, bench.namespace)]
        managers = {field["manager"] for obj in now for field in obj["metadata"]["managedFields"]}
        assert managers == {MANAGER}
        assert changed["metadata"]["resourceVersion"] in {obj["metadata"]["resourceVersion"] for obj in now}
    assert bench.deaths == []


async def test_a_kind_that_is_removed_ends_the_process(kubeconfig: Path) -> None:
    async with feeding(kubeconfig) as bench:
        await bench.gateway.create(bench.kind, bench.build("p"))
        await until(lambda: bench.read_names(bench.kind))
        await bench.gateway.delete(CRDS, "", str(bench.kind), uid=read_uid(bench.definition))
        await until(lambda: bench.deaths)
