"""The operator's ways to the cluster in memory: requests, watches, and the kubelets that start its pods.

Bodies and answers are encoded and decoded on the operator's loop, as with a real server; sockets and TLS are not there.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from alineod.domain.facts import PodFacts
from alineod.errors import Unavailable
from alineod.kube.gateway import EventRecord, Page
from alineod.kube.objects import PODS, SWARMS, Json, Ref, Resource, read_ref
from alineod.podspec.observe import parse_pod
from alineod.reconcile.archives import SandboxPod, build_start_order, find_by_pod
from alineod.reconcile.world import World
from alineod.wire.archives import RestoreReport
from alineod.wire.base import encode
from hack.bench.loop_api import RESOURCES, Api, Listener
from tests.unit.reconcile.simulation import Sandbox, Sandboxes, build_running

Deliver = Callable[[bool, Resource, Json], None]
AGAIN = 1.0  # s until a restore container asks again


class Cluster:
    """`Gateway` as far as the operator's term uses it. For one loop."""

    def __init__(self) -> None:
        self.api = Api()
        self._thread = ThreadPoolExecutor(1, "requests")

    async def get(self, resource: Resource, namespace: str, name: str) -> Json:
        found: Json = await self._call("get", resource, namespace, name)
        return found

    async def list_page(self, *where: Any, **named: Any) -> Page:
        page = await self._call("list_page", *where, **named)
        return Page(tuple(page["items"]), page["version"], page["continue"])

    async def create(self, resource: Resource, body: Json, **named: Any) -> Json:
        return await self._send("create", resource, body, **named)

    async def apply(self, resource: Resource, body: Json, **named: Any) -> Json:
        return await self._send("apply", resource, body, **named)

    async def apply_status(self, resource: Resource, body: Json, **named: Any) -> Json:
        return await self._send("apply_status", resource, body, **named)

    async def delete(self, resource: Resource, namespace: str, name: str, **named: Any) -> Json | None:
        left: Json | None = await self._call("delete", resource, namespace, name, **named)
        return left

    async def create_event(self, event: EventRecord) -> None:
        await self._call("create_event", event)

    async def write_swarm(self, body: Json) -> None:
        """As a person does."""
        await self._call("write", SWARMS, body)

    async def write_status(self, ref: Ref, status: Json) -> None:
        """As a kubelet reports."""
        await self._call("write_status", ref, status)

    async def tell_all(self, resource: Resource, listener: Listener) -> None:
        """Every object, as a watch that begins tells them: on another thread."""

        def tell() -> None:
            for obj in msgspec.json.decode(self.api.call("read_all", resource)):
                listener("ADDED", resource, obj)

        await asyncio.get_running_loop().run_in_executor(self._thread, tell)

    async def _send(self, verb: str, resource: Resource, body: Json, **named: Any) -> Json:
        msgspec.json.encode(body)  # the pipe does it once more, on another thread
        sent: Json = await self._call(verb, resource, body, **named)
        return sent

    async def _call(self, verb: str, *args: Any, **named: Any) -> Any:
        loop = asyncio.get_running_loop()
        return msgspec.json.decode(
            await loop.run_in_executor(self._thread, lambda: self.api.call(verb, *args, **named))
        )


class MemoryFeed:
    """The watches: begins with everything there is, and calls `deliver` in the loop that made it."""

    def __init__(self, cluster: Cluster, deliver: Deliver) -> None:
        self._cluster, self._deliver = cluster, deliver
        self._loop = asyncio.get_running_loop()

    def start(self) -> None:
        """Begin to watch."""
        self._begin = self._loop.create_task(self._run())

    async def _run(self) -> None:
        self._cluster.api.listeners.append(self._hear)
        for resource in RESOURCES.values():
            await self._cluster.tell_all(resource, self._hear)

    async def stop(self, seconds: float) -> None:
        """Watch no more."""
        self._cluster.api.listeners.remove(self._hear)

    def _hear(self, kind: str, resource: Resource, obj: Json) -> None:
        self._loop.call_soon_threadsafe(self._deliver, kind == "DELETED", resource, obj)


class Kubelets:
    """Start every pod once the operator says how; `read_world` gives the leader of the moment."""

    def __init__(self, cluster: Cluster, sandboxes: Sandboxes, read_world: Callable[[], World]) -> None:
        self._cluster, self._sandboxes, self._read_world = cluster, sandboxes, read_world
        self._loop = asyncio.get_running_loop()
        self._starts = set[asyncio.Task[None]]()
        cluster.api.listeners.append(self._hear)

    def _hear(self, kind: str, resource: Resource, obj: Json) -> None:
        if resource == PODS and kind == "ADDED":
            self._loop.call_soon_threadsafe(self._begin, obj)

    def _begin(self, obj: Json) -> None:
        task = self._loop.create_task(self._start(obj))
        self._starts.add(task)
        task.add_done_callback(self._starts.discard)

    async def _start(self, obj: Json) -> None:
        facts = parse_pod(obj)
        while (kind := await self._ask_order(facts)) is None:  # noqa: ASYNC110  (as a restore container does)
            await asyncio.sleep(AGAIN)
        self._sandboxes.pods[facts.uid] = Sandbox()
        status = build_running(facts, encode(RestoreReport(start=kind)).decode())
        await self._cluster.write_status(read_ref(PODS, obj), status)

    async def _ask_order(self, facts: PodFacts) -> str | None:
        world = self._read_world()
        try:
            order = await build_start_order(world, find_by_pod(world, SandboxPod(facts.uid)))
        except Unavailable:
            return None
        return str(order.sources[0].kind) if order.sources else "fresh"
