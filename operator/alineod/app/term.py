"""One term of a leader: everything is opened, the tree is looked at, and then the API serves."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

import aiohttp

from alineod.app.opening import Opened, open_all
from alineod.app.parts import Parts
from alineod.app.tasks import cancel_all, run_when, wait_first, watch_jobs
from alineod.domain.events import Row
from alineod.handlers.feed import Feed, build_deliver, build_settings
from alineod.handlers.keys import compute_keys, is_urgent
from alineod.handlers.login import Login
from alineod.http.access import Guard
from alineod.http.routes import build_app
from alineod.kube.api import open_api
from alineod.kube.exits import FEED_ENDED, exit_at_once
from alineod.kube.gateway import Gateway
from alineod.kube.objects import AGENTS, SWARMS, WATCHED, Ref, Resource
from alineod.kube.queue import WorkQueue
from alineod.kube.schedule import QueueOptions
from alineod.kube.store import Change, Store
from alineod.kube.sweep import Sweep, run_resync
from alineod.podspec.context import PodContext, parse_sandbox_defaults
from alineod.reconcile.announce import Announcer
from alineod.reconcile.bridges import Bridges, HttpBridges
from alineod.reconcile.count import count_rows, count_states
from alineod.reconcile.drive import Drivers
from alineod.reconcile.passes import run_pass
from alineod.reconcile.wake import wake_all
from alineod.reconcile.world import Release, World
from alineod.settings import Settings

DRAIN = 10.0  # s that passes under way may take when the process is told to stop
QUEUE = QueueOptions(rate=200.0, burst=400)
log = logging.getLogger(__name__)

OnServing = Callable[[], Awaitable[None]]


async def run_term(parts: Parts, epoch: int, stopped: asyncio.Event, on_serving: OnServing) -> None:
    """Lead until `stopped`; `on_serving` is called when the API serves."""
    remaining, observe = parts.elector.compute_remaining, parts.metrics.observe_call
    async with (
        open_api(parts.access, parts.clock, remaining=remaining, observe=observe) as gateway,
        aiohttp.ClientSession(trust_env=False, connector=aiohttp.TCPConnector(limit=0)) as session,
    ):
        opening = asyncio.create_task(open_all(parts, gateway, epoch), name="opening")
        if not await wait_first(opening, stopped):
            return
        opened = opening.result()
        try:
            await Term(parts, gateway, opened, HttpBridges(session)).work(stopped, on_serving)
        finally:
            await opened.ledger.close()


class Term:
    """A leader at work."""

    def __init__(self, parts: Parts, gateway: Gateway, opened: Opened, bridges: Bridges) -> None:
        self._parts = parts
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
            store=Store(),
            ledger=opened.ledger,
            bucket=opened.bucket,
            bridges=bridges,
            clock=parts.clock,
            pods=build_pod_context(parts.settings, epoch),
            release=Release(parts.settings.instance, opened.cluster, epoch, parts.base),
            wake=self._queue.add,
            drive=lambda key, turn: self._drivers.ensure(self._world, key, turn),
            restores_at_once=parts.settings.rehydrate_concurrency,
            remote_min_age=parts.settings.checkpoints.remote_min_age,
        )
        self._announcer = Announcer(self._world)

    async def work(self, stopped: asyncio.Event, on_serving: OnServing) -> None:
        """Watch, look at everything once, serve, until `stopped`."""
        self._connect()
        swept = asyncio.Event()
        jobs = self._start_jobs(swept)
        feed = self._start_feed()
        try:
            self._parts.health.set_waiting("the first look at the cluster")
            serving = asyncio.create_task(self._serve_when(swept, on_serving), name="serving")
            jobs.append(serving)
            await watch_jobs(jobs, stopped)
        finally:
            await self._queue.drain(DRAIN)
            await self._drivers.close()
            await cancel_all(jobs)
            await feed.stop(DRAIN)

    def _connect(self) -> None:
        """Whatever changes, the keys it concerns are looked at."""
        self._world.store.listen(self._look)
        self._world.ledger.subscribe(self._hear)
        self._parts.metrics.observe_queue(lambda: float(self._queue.depth), self._queue.compute_age)

    def _look(self, change: Change) -> None:
        for key in compute_keys(change, self._world.store):
            self._queue.add(key, urgent=is_urgent(change))

    def _hear(self, rows: Sequence[Row]) -> None:
        wake_all(rows, self._world.ledger.state, self._world.store, self._queue.add)
        self._announcer.listen(rows)
        count_rows(rows, self._parts.metrics)

    def _start_jobs(self, swept: asyncio.Event) -> list[asyncio.Task[None]]:
        world, parts = self._world, self._parts
        namespaces = parts.settings.watch_namespaces
        sweep = Sweep(world.gateway, world.store, WATCHED, namespaces, parts.clock, parts.metrics)

        def on_swept() -> None:
            if not swept.is_set():
                self._wake_known()
            swept.set()

        return [
            asyncio.create_task(run_when(swept, self._queue.run), name="queue"),
            asyncio.create_task(self._announcer.run(), name="announcer"),
            asyncio.create_task(sweep.run(on_swept), name="sweep"),
            asyncio.create_task(run_resync(world.store, (SWARMS, AGENTS), self._queue.add_after), name="resync"),
            asyncio.create_task(count_states(world.ledger, parts.metrics), name="states"),
        ]

    def _wake_known(self) -> None:
        """Look at everything the ledger knows, whether or not there is still an object for it."""
        state = self._world.ledger.state
        known: list[tuple[Resource, str]] = [(SWARMS, key) for key in state.runs]
        known += [(AGENTS, agent.key) for agent in state.agents.values() if not agent.closed]
        for resource, key in known:
            namespace, name = key.split("/")
            self._queue.add(Ref(resource, namespace, name))

    def _start_feed(self) -> Feed:
        parts = self._parts
        feed = Feed(
            Login(parts.access, parts.clock.now),
            WATCHED,
            parts.settings.watch_namespaces,
            deliver=build_deliver(self._world.store, parts.metrics),
            die=lambda why: exit_at_once(FEED_ENDED, why),
            settings=build_settings(WATCHED),
        )
        feed.start()
        return feed

    async def _serve_when(self, swept: asyncio.Event, on_serving: OnServing) -> None:
        """Serve once everything was seen; like every job it does not end by itself."""
        await swept.wait()
        self._parts.switch.app = build_app(self._world, Guard(self._world.gateway, self._parts.clock))
        self._parts.health.set_ready()
        await on_serving()
        log.info("leading in epoch %d: the API serves", self._world.release.epoch)
        await asyncio.Event().wait()


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
