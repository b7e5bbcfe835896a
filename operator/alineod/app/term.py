"""One term of a leader: everything is opened in order, the tree is looked at, and then the API serves.

What cannot be opened is waited for with a sentence in `/readyz` and in the log; agents work on meanwhile.
"""

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import aiohttp

from alineod.app.serve import Switch
from alineod.checkpoints.bucket import Bucket
from alineod.checkpoints.bucket_s3 import S3Bucket, S3Options, build_client
from alineod.checkpoints.keys import build_base, build_probe_key
from alineod.clock import Clock
from alineod.domain.events import Row
from alineod.errors import AlineoError, Denied, Unavailable
from alineod.handlers.feed import Feed, build_deliver, build_settings
from alineod.handlers.keys import compute_keys, is_urgent
from alineod.handlers.login import Login
from alineod.http.access import Guard
from alineod.http.routes import build_app
from alineod.kube.access import ClusterAccess
from alineod.kube.api import open_api
from alineod.kube.elector import Elector
from alineod.kube.exits import FEED_ENDED, LEASE_LOST, exit_at_once
from alineod.kube.gateway import Gateway
from alineod.kube.health import Health
from alineod.kube.objects import AGENTS, NAMESPACES, SWARMS, WATCHED, Ref
from alineod.kube.queue import WorkQueue
from alineod.kube.schedule import QueueOptions
from alineod.kube.store import Change, Store
from alineod.kube.sweep import Sweep, run_resync
from alineod.ledger.open import Opening, open_ledger
from alineod.ledger.port import Ledger
from alineod.ledger.replica import BucketIndex
from alineod.metrics import Metrics
from alineod.podspec.context import PodContext, parse_sandbox_defaults
from alineod.reconcile.announce import Announcer
from alineod.reconcile.bridges import HttpBridges
from alineod.reconcile.count import count_rows, count_states
from alineod.reconcile.drive import Drivers
from alineod.reconcile.passes import run_pass
from alineod.reconcile.wake import wake_all
from alineod.reconcile.world import Release, World
from alineod.settings import Settings

T = TypeVar("T")
LONGEST_PAUSE = 30.0  # s between tries to open what does not open
DRAIN = 10.0  # s that passes under way may take when the process is told to stop
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Stores:
    """The bucket and what finds the ledger's terms in it."""

    bucket: Bucket
    index: BucketIndex


@dataclass(frozen=True)
class Lead:
    """What a leader is made of."""

    settings: Settings
    access: ClusterAccess
    clock: Clock
    metrics: Metrics
    elector: Elector
    health: Health
    switch: Switch
    env: Mapping[str, str]

    async def run(self, epoch: int, stopped: asyncio.Event, on_serving: Callable[[], Awaitable[None]]) -> None:
        """Lead until `stopped`; `on_serving` is called when the API serves."""
        remaining = self.elector.compute_remaining
        async with (
            open_api(self.access, self.clock, remaining=remaining, observe=self.metrics.observe_call) as gateway,
            aiohttp.ClientSession(trust_env=False, connector=aiohttp.TCPConnector(limit=0)) as session,
        ):
            opening = asyncio.create_task(self._open(gateway, epoch), name="opening")
            if not await _first(opening, stopped):
                return
            ledger, bucket, cluster = opening.result()
            try:
                await self._work(gateway, ledger, bucket, cluster, HttpBridges(session), stopped, on_serving)
            finally:
                await ledger.close()

    async def _open(self, gateway: Gateway, epoch: int) -> tuple[Ledger, Bucket | None, str]:
        await self._try("the CRDs", lambda: _confirm_crds(gateway))
        cluster = await self._try("the cluster's identity", lambda: _read_cluster_uid(gateway, self.access))
        stores = build_stores(self.settings, self.clock)
        if stores is not None:
            probe = build_probe_key(self.base, self.settings.pod_uid)
            await self._try("the bucket", lambda: asyncio.to_thread(stores.bucket.probe, probe))
        ledger = await self._try("the ledger", lambda: self._open_ledger(epoch, stores))
        if ledger.epoch > epoch:
            await asyncio.to_thread(self.elector.raise_epoch, ledger.epoch, LONGEST_PAUSE)
        self.metrics.set_epoch(ledger.epoch)
        return ledger, stores.bucket if stores else None, cluster

    @property
    def base(self) -> str:
        """What every key in the bucket begins with."""
        prefix = self.settings.bucket.prefix if self.settings.bucket else ""
        return build_base(prefix, self.settings.instance)

    async def _open_ledger(self, epoch: int, stores: Stores | None) -> Ledger:
        opening = Opening(
            volume=self.settings.ledger_dir, instance=self.settings.instance, epoch=epoch,
            bucket=self.settings.bucket, env=self.env,
        )  # fmt: skip
        return await open_ledger(
            opening,
            self.clock,
            stores.index if stores else None,
            fatal=lambda error: exit_at_once(LEASE_LOST, error.message),
            step=lambda name: log.info("opening the ledger: %s", name),
        )

    async def _try(self, what: str, act: Callable[[], Awaitable[T]]) -> T:
        """Until it works; each failure is said once in `/readyz` and once in the log."""
        pause, said = 1.0, ""
        while True:
            self.health.set_waiting(f"{what}: {said or 'being opened'}")
            try:
                return await act()
            except AlineoError as error:
                if error.message != said:
                    log.warning("waiting for %s: %s", what, error)
                said = error.message
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _work(
        self,
        gateway: Gateway,
        ledger: Ledger,
        bucket: Bucket | None,
        cluster: str,
        bridges: HttpBridges,
        stopped: asyncio.Event,
        on_serving: Callable[[], Awaitable[None]],
    ) -> None:
        store, drivers = Store(), Drivers()
        queue: WorkQueue[Ref] = WorkQueue(
            lambda ref: run_pass(world, ref), self.clock, options=QueueOptions(rate=200.0, burst=400),
            report=lambda outcome, seconds: self.metrics.observe_pass(str(outcome), seconds),
        )  # fmt: skip
        world = World(
            gateway=gateway, store=store, ledger=ledger, bucket=bucket, bridges=bridges, clock=self.clock,
            pods=self._build_pod_context(ledger.epoch),
            release=Release(self.settings.instance, cluster, ledger.epoch, self.base),
            wake=queue.add, drive=lambda key, turn: drivers.ensure(world, key, turn),
            remote_min_age=self.settings.checkpoints.remote_min_age,
        )  # fmt: skip
        announcer = Announcer(world)
        self._connect(world, queue, announcer)
        swept = asyncio.Event()
        jobs = self._start_jobs(world, queue, announcer, swept)
        feed = self._start_feed(store)
        try:
            self.health.set_waiting("the first look at the cluster")
            if await _first(asyncio.create_task(swept.wait()), stopped):
                await self._serve(world, on_serving)
                await _watch_jobs(jobs, stopped)
        finally:
            await queue.drain(DRAIN)
            await drivers.close()
            await _cancel(jobs)
            await feed.stop(DRAIN)

    def _build_pod_context(self, epoch: int) -> PodContext:
        images = self.settings.images
        defaults = parse_sandbox_defaults(self.settings.sandbox_defaults)
        secrets = (*defaults.pull_secrets, *images.pull_secrets)
        return PodContext(
            agent_image=images.agent, sandbox_image=images.sandbox, pull_policy=str(images.pull_policy),
            operator_url=self.settings.service_url, epoch=epoch, keep=self.settings.checkpoints.keep,
            defaults=parse_sandbox_defaults({**self.settings.sandbox_defaults, "pullSecrets": secrets}),
        )  # fmt: skip

    def _connect(self, world: World, queue: WorkQueue[Ref], announcer: Announcer) -> None:
        """Whatever changes, the keys it concerns are looked at."""

        def look(change: Change) -> None:
            for key in compute_keys(change, world.store):
                queue.add(key, urgent=is_urgent(change))

        def hear(rows: list[Row] | tuple[Row, ...]) -> None:
            wake_all(rows, world.ledger.state, queue.add)
            announcer.listen(rows)
            count_rows(rows, self.metrics)

        world.store.listen(look)
        world.ledger.subscribe(lambda rows: hear(tuple(rows)))
        self.metrics.observe_queue(lambda: float(queue.depth), queue.compute_age)

    def _start_jobs(
        self, world: World, queue: WorkQueue[Ref], announcer: Announcer, swept: asyncio.Event
    ) -> list[asyncio.Task[None]]:
        sweep = Sweep(world.gateway, world.store, WATCHED, self.settings.watch_namespaces, self.clock, self.metrics)

        def on_swept() -> None:
            if not swept.is_set():
                wake_known(world, queue)
            swept.set()

        return [
            asyncio.create_task(_run_when(swept, queue.run), name="queue"),
            asyncio.create_task(announcer.run(), name="announcer"),
            asyncio.create_task(sweep.run(on_swept), name="sweep"),
            asyncio.create_task(run_resync(world.store, (SWARMS, AGENTS), queue.add_after), name="resync"),
            asyncio.create_task(count_states(world.ledger, self.metrics), name="states"),
        ]

    def _start_feed(self, store: Store) -> Feed:
        feed = Feed(
            Login(self.access, self.clock.now), WATCHED, self.settings.watch_namespaces, deliver=build_deliver(store, self.metrics),
            die=lambda why: exit_at_once(FEED_ENDED, why), settings=build_settings(WATCHED),
        )  # fmt: skip
        feed.start()
        return feed

    async def _serve(self, world: World, on_serving: Callable[[], Awaitable[None]]) -> None:
        self.switch.app = build_app(world, Guard(world.gateway, self.clock))
        self.health.set_ready()
        await on_serving()
        log.info("leading in epoch %d: the API serves", world.release.epoch)


def wake_known(world: World, queue: WorkQueue[Ref]) -> None:
    """Look at everything the ledger knows, whether or not there is still an object for it."""
    for key in world.ledger.state.runs:
        queue.add(_ref(SWARMS, key))
    for key, agent in world.ledger.state.agents.items():
        if not agent.closed:
            queue.add(_ref(AGENTS, key))


def _ref(resource: object, key: str) -> Ref:
    namespace, name = key.split("/")
    return Ref(SWARMS if resource is SWARMS else AGENTS, namespace, name)


def build_stores(settings: Settings, clock: Clock) -> Stores | None:
    """The bucket of this release; None without one."""
    bucket = settings.bucket
    if bucket is None:
        return None
    options = S3Options(bucket.name, bucket.endpoint, bucket.region)
    return Stores(S3Bucket(options, clock), BucketIndex(build_client(options), bucket, settings.instance))


async def _confirm_crds(gateway: Gateway) -> None:
    missing = await gateway.read_missing((SWARMS, AGENTS))
    if missing:
        names = ", ".join(map(str, missing))
        raise Unavailable("ResourceNotServed", f"the CRDs {names} are not installed: apply the chart's crds/ directory")


async def _read_cluster_uid(gateway: Gateway, access: ClusterAccess) -> str:
    """The UID of kube-system; where that may not be read, the fingerprint of the cluster's authority."""
    try:
        return str((await gateway.get(NAMESPACES, "", "kube-system"))["metadata"]["uid"])
    except Denied:
        return hashlib.sha256(access.authority.encode()).hexdigest()


async def _first(task: "asyncio.Task[T]", stopped: asyncio.Event) -> bool:
    """Whether the task came to its end before the process was told to stop."""
    waiting = asyncio.create_task(stopped.wait())
    await asyncio.wait([task, waiting], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if task.done():
        return True
    await _cancel([task])
    return False


async def _run_when(seen: asyncio.Event, run: Callable[[], Awaitable[None]]) -> None:
    """Begin when everything was seen once: what was not seen yet would be taken for what is not there."""
    await seen.wait()
    await run()


async def _watch_jobs(jobs: "list[asyncio.Task[None]]", stopped: asyncio.Event) -> None:
    """Until the process is told to stop; a job that ends before has failed, and the process with it."""
    waiting = asyncio.create_task(stopped.wait(), name="stop")
    done, _ = await asyncio.wait([*jobs, waiting], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    for job in done:
        if job.get_name() != "stop":
            raise RuntimeError(f"the job {job.get_name()} ended") from job.exception()


async def _cancel(tasks: "list[asyncio.Task[T]]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
