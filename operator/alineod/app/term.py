"""One term of a leader: everything is opened, the tree is looked at, and then the API serves."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

import aiohttp
from starlette.types import ASGIApp

from alineod.app.opening import Opened, open_all
from alineod.app.parts import Parts
from alineod.app.reconnect import reconnect
from alineod.app.sight import Sight
from alineod.app.takeover import Takeover
from alineod.app.tasks import cancel_all, run_when, wait_first, watch_jobs
from alineod.domain.events import Row
from alineod.handlers.keys import compute_keys, is_urgent
from alineod.http.access import Guard
from alineod.http.routes import build_app, build_standby_app
from alineod.kube.api import open_api
from alineod.kube.gateway import Gateway
from alineod.kube.objects import AGENTS, PODS, SWARMS, Json, Ref, Resource, build_ref, read_uid
from alineod.kube.queue import WorkQueue
from alineod.kube.schedule import QueueOptions
from alineod.kube.sockets import open_socket
from alineod.kube.store import Change
from alineod.kube.sweep import run_resync
from alineod.podspec.context import PodContext, parse_sandbox_defaults
from alineod.reconcile.announce import Announcer
from alineod.reconcile.bridges import Bridges, HttpBridges
from alineod.reconcile.count import count_rows, count_states, observe_ledger
from alineod.reconcile.drive import Drivers
from alineod.reconcile.passes import COUNT_EVERY, run_pass
from alineod.reconcile.places import rebuild_places
from alineod.reconcile.reconnect import Reconnection, find_known
from alineod.reconcile.trouble import LedgerWatch
from alineod.reconcile.wake import find_counting, wake_all
from alineod.reconcile.world import Release, World
from alineod.settings import Settings
from alineod.threads import run_apart

DRAIN = 1.0  # s that passes under way may take when the process is told to stop; what is cut off is done again
# A sandbox that hangs holds a worker, so there are many; what passes cost the cluster is limited by their rate.
QUEUE = QueueOptions(workers=512, rate=200.0, burst=400)
log = logging.getLogger(__name__)

OnOpen = Callable[[], Coroutine[Any, Any, None]]
Serve = Callable[[], Awaitable[None]]


async def run_term(parts: Parts, epoch: int, stopped: asyncio.Event, on_open: OnOpen) -> None:
    """Lead until `stopped`; `on_open` is called when there is who answers. The lease is given back before the end."""
    remaining, observe = parts.elector.compute_remaining, parts.metrics.observe_call
    takeover = Takeover(parts.clock, parts.metrics.set_takeover)
    connector = aiohttp.TCPConnector(limit=0, socket_factory=open_socket)
    async with (
        open_api(parts.access, parts.clock, remaining=remaining, observe=observe) as gateway,
        aiohttp.ClientSession(trust_env=False, connector=connector) as session,
    ):
        sight = Sight(parts, gateway, takeover)
        opening = asyncio.create_task(open_all(parts, gateway, sight, epoch, takeover), name="opening")
        try:
            if await wait_first(opening, stopped):
                term = Term(parts, gateway, opening.result(), HttpBridges(session, remaining), sight)
                await lead(parts, term, stopped, lambda: serve(parts, term, takeover, on_open))
        finally:
            await sight.stop()


async def lead(parts: Parts, term: "Term", stopped: asyncio.Event, serve: Serve) -> None:
    """Work until `stopped`, then let the next one begin as soon as nothing acts any more."""
    try:
        await term.work(stopped, serve)
    finally:
        parts.health.set_stopping()
        parts.switch.turn_to(build_standby_app(_say_going, parts.health, parts.settings.instance))
        await term.stop()
        await run_apart(parts.elector.release)
        parts.switch.cut()


async def serve(parts: Parts, term: "Term", takeover: Takeover, on_open: OnOpen) -> None:
    """Answer sandboxes, which may be what the reconnection is about, and when that is done everybody."""
    parts.switch.turn_to(term.build_app())
    async with asyncio.TaskGroup() as group:
        group.create_task(on_open(), name="open")
        await reconnect(parts.health, term.reconnection, takeover)
        log.info("leading in epoch %d: the API serves %s", term.epoch, takeover.finish())


def _say_going() -> str:
    return "this process has led and is about to end: ask again, the Service alineod leads to the next one"


class Term:
    """A leader at work."""

    def __init__(self, parts: Parts, gateway: Gateway, opened: Opened, bridges: Bridges, sight: Sight) -> None:
        self._parts, self._sight = parts, sight
        self._jobs: list[asyncio.Task[None]] = []
        self._drivers = Drivers()
        self._queue: WorkQueue[Ref] = WorkQueue(
            lambda ref: run_pass(self._world, ref),
            parts.clock,
            options=QUEUE,
            report=lambda outcome, seconds: parts.metrics.observe_pass(str(outcome), seconds),
        )
        epoch = opened.ledger.epoch
        self._world = World(
            gateway=gateway,
            remaining=parts.elector.compute_remaining,
            store=sight.store,
            ledger=opened.ledger,
            bucket=parts.bucket,
            bridges=bridges,
            clock=parts.clock,
            pods=build_pod_context(parts.settings, epoch),
            release=Release(parts.settings.instance, opened.cluster, epoch, parts.base),
            wake=self._queue.add,
            drive=lambda key, turn: self._drivers.ensure(self._world, key, turn),
            retry_delay=parts.settings.reattach_retry_delay,
            restores_at_once=parts.settings.rehydrate_concurrency,
            remote_min_age=parts.settings.checkpoints.remote_min_age,
        )
        self._announcer = Announcer(self._world)
        self._watch = LedgerWatch(
            self._world, build_home(parts.settings), self._announcer.tell, mended=self._wake_known
        )

    @property
    def epoch(self) -> int:
        """The term's number."""
        return self._world.release.epoch

    @property
    def reconnection(self) -> Reconnection:
        """How far the agents of before this term are reconnected."""
        return self._world.term.reconnection

    def build_app(self) -> ASGIApp:
        """What answers questions in this term."""
        return build_app(self._world, Guard(self._world.gateway, self._parts.clock), self._parts.health)

    async def work(self, stopped: asyncio.Event, serve: Serve) -> None:
        """Look at everything once, `serve`, and work until `stopped`."""
        self._connect()
        self._start_jobs(serve)
        await watch_jobs([*self._jobs, *self._sight.jobs], stopped)

    async def stop(self) -> None:
        """Nothing acts any more when this returns."""
        await self._queue.drain(DRAIN)
        await self._drivers.close()
        await cancel_all(self._jobs)
        await self._world.ledger.close()

    def _connect(self) -> None:
        """Whatever changes, the keys it concerns are looked at; so are those of what was seen before."""
        self._world.store.listen(self._look)
        self._world.ledger.subscribe(self._hear)
        self._parts.metrics.observe_queue(lambda: float(self._queue.depth), self._queue.compute_age)
        observe_ledger(self._world.ledger, self._parts.clock, self._parts.metrics)
        for change in self._sight.read_all():
            self._look(change)
        known = find_known(self._world.ledger.state)
        self.reconnection.begin(known)
        for key in sorted(known):
            self._queue.add(build_ref(AGENTS, key), urgent=True)

    def _look(self, change: Change) -> None:
        if change.ref.resource == PODS and change.before is not None and change.after is None:
            self._world.term.forget(read_uid(change.before))
        for key in compute_keys(change, self._world.store):
            self._queue.add(key, urgent=is_urgent(change))

    def _hear(self, rows: Sequence[Row]) -> None:
        wake_all(rows, self._world.ledger.state, self._world.store, self._queue.add)
        self._announcer.listen(rows)
        count_rows(rows, self._parts.metrics)
        for swarm in find_counting(rows):
            self._queue.add_after(swarm, COUNT_EVERY)

    def _start_jobs(self, serve: Serve) -> None:
        world = self._world
        jobs = {
            # What was not seen yet would be taken for what is not there, and could not be told.
            "queue": run_when(self._sight.complete, self._run_queue),
            "announcer": self._announcer.run(),
            "resync": run_resync(world.store, (SWARMS, AGENTS), self._queue.add_after),
            "states": count_states(world, self._parts.metrics),
            "ledger watch": run_when(self._sight.complete, self._watch.run),
            "serving": self._keep_serving(serve),
        }
        self._jobs += [asyncio.create_task(job, name=name) for name, job in jobs.items()]

    async def _run_queue(self) -> None:
        rebuild_places(self._world)
        self._wake_known()
        await self._queue.run()

    def _wake_known(self) -> None:
        """Look at everything the ledger knows, whether or not there is still an object for it."""
        state = self._world.ledger.state
        known: list[tuple[Resource, str]] = [(SWARMS, key) for key in state.runs]
        known += [(AGENTS, agent.key) for agent in state.agents.values() if not agent.closed]
        for resource, key in known:
            self._queue.add(build_ref(resource, key))

    async def _keep_serving(self, serve: Serve) -> None:
        """Like every job it does not end by itself."""
        self._parts.health.set_waiting("the first look at the cluster", "being taken")
        await self._sight.complete.wait()
        self._parts.health.set_there("the first look at the cluster")
        await serve()
        self._sight.watch()
        await asyncio.Event().wait()


def build_home(settings: Settings) -> Json:
    """The operator's own pod, as far as an Event about it needs it."""
    return {"metadata": {"name": settings.pod_name, "namespace": settings.namespace, "uid": settings.pod_uid}}


def build_pod_context(settings: Settings, epoch: int) -> PodContext:
    """What every sandbox pod of this release is built from."""
    images = settings.images
    secrets = [*(settings.sandbox_defaults.get("pullSecrets") or ()), *images.pull_secrets]
    return PodContext(
        agent_image=images.agent,
        sandbox_image=images.sandbox,
        pull_policy=str(images.pull_policy),
        operator_url=settings.service_url,
        epoch=epoch,
        keep=settings.checkpoints.keep,
        defaults=parse_sandbox_defaults({**settings.sandbox_defaults, "pullSecrets": secrets}),
    )
