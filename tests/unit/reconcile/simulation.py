"""A cluster, its kubelets, its sandboxes and a bucket in memory, around the real passes, drivers and rules.

Two counters number the outside calls of the operator, to the API server, the ledger, the bucket and the sandboxes:
`calls` has each one, before and after it took effect; `effects` those alone that changed something. At the chosen one
the process dies: from then on every call fails, and a new process starts over what was stored.
"""

import asyncio
from collections.abc import Mapping

from alineod.errors import Conflict, Unavailable
from alineod.kube.memory import Call, MemoryGateway, Moment
from alineod.kube.objects import AGENTS, CRDS, PODS, SWARMS, Json, Ref, Resource, read_ref
from alineod.kube.store import Store
from alineod.ledger.memory import MemoryLedger, MemoryStore
from alineod.podspec.context import PodContext
from alineod.reconcile.drive import Drivers
from alineod.reconcile.passes import run_pass
from alineod.reconcile.places import rebuild_places
from alineod.reconcile.wake import wake_all
from alineod.reconcile.world import Release, World
from tests.support.memory_bucket import MemoryBucket
from tests.unit.reconcile.mishaps import FaultyKubelets
from tests.unit.reconcile.pod_status import build_running
from tests.unit.reconcile.sandboxes import Sandbox, Sandboxes, Upload
from tests.unit.reconcile.virtual_time import FakeClock, VirtualLoop

__all__ = ["NAMESPACE", "Died", "FakeClock", "Sandbox", "Sandboxes", "Simulation", "build_running"]

NAMESPACE = "research"
KINDS = (SWARMS, AGENTS, PODS)
ROUNDS = 400
PATIENCE = 2.0  # s that a rest is waited for, unless somebody says more
RETRY = 1.0  # s after which a pass is tried again that met something unavailable
INSTALLED: Mapping[str, str] = {
    "ALINEOD_INSTANCE": "default",
    "ALINEOD_NAMESPACE": NAMESPACE,
    "ALINEOD_POD_NAME": "alineod-0",
    "ALINEOD_POD_UID": "operator",
    "ALINEOD_SERVICE_URL": "http://operator",
    "ALINEOD_IMAGE_SANDBOX": "sandbox",
    "ALINEOD_IMAGE_AGENT": "agent",
}
"""What a whole operator over these objects is told by its environment."""


class Died(Exception):
    """The process is gone."""


class Simulation:
    """The cluster, what is stored, and the operator's process that is running now; `door` is where it is asked."""

    died = Died

    def __init__(
        self, die_at: int | None = None, bucket: MemoryBucket | None = None, clock: FakeClock | None = None
    ) -> None:
        self.clock = clock or FakeClock()
        self._prepare(die_at, bucket, MemoryStore())
        self.gateway.objects.insert(CRDS, {"metadata": {"name": str(AGENTS)}})
        self.gateway.objects.insert(CRDS, {"metadata": {"name": str(SWARMS)}})
        self._start()

    def _prepare(self, die_at: int | None, bucket: MemoryBucket | None, stored: MemoryStore) -> None:
        self.bucket, self.stored = bucket, stored
        self.gateway = MemoryGateway(self.clock, namespaces=(NAMESPACE,), hook=self._hook_api)
        self.gateway.objects.watchers.append(self._watch)
        self.sandboxes = Sandboxes(self._count)
        self.kubelets = FaultyKubelets(self)
        self.calls = self.effects = self.changes = 0
        self.die_at, self.die_after = die_at, 0
        self.dead, self.away, self.api_away = False, False, False
        self.starts = 0
        self.queue: set[Ref] = set()
        self.wishes: dict[Ref, float] = {}

    def copy(self, clock: FakeClock) -> "Simulation":
        """The same cluster in another life, with a new leader; nothing of the one is the other's."""
        other = object.__new__(type(self))
        clock.time = self.clock.time
        other.clock = clock
        bucket = MemoryBucket(clock) if self.bucket else None
        if bucket is not None and self.bucket is not None:
            bucket._objects.update(self.bucket._objects)
        stored = MemoryStore(list(self.stored.rows), dict(self.stored.by_id), self.stored.secret, self.stored.epoch)
        other._prepare(None, bucket, stored)
        other.gateway.objects = self.gateway.objects.copy(clock)
        other.gateway.objects.watchers.append(other._watch)
        other.sandboxes.pods = {uid: sandbox.copy() for uid, sandbox in self.sandboxes.pods.items()}
        other.sandboxes.asked, other.sandboxes.starts = list(self.sandboxes.asked), list(self.sandboxes.starts)
        other.kubelets.nodes, other.kubelets.broken = dict(self.kubelets.nodes), set(self.kubelets.broken)
        other.kubelets.checkpointers, other.kubelets.paced = self.kubelets.checkpointers, self.kubelets.paced
        other._start()
        return other

    def _count(self, what: str = "") -> None:
        if self.dead:
            raise Died
        self.calls += 1
        if what.startswith("after"):
            self.effects += 1
            self.dead = self.effects == self.die_after
        if self.dead or self.calls == self.die_at:
            self.dead = True
            raise Died(what)

    def _hook_api(self, call: Call, moment: Moment) -> None:
        if self.api_away:
            raise Unavailable("ApiUnavailable", "the API server does not answer")
        if call.writes or moment is Moment.BEFORE:
            self._count(f"{moment} {call.verb} {call.target}")

    def _start(self) -> None:
        """A new process over what is stored."""
        self.starts += 1
        self.dead = self.away = False
        self.store = Store()
        self.drivers = Drivers()
        self.ledger = MemoryLedger(self.clock, self.stored, self._count)
        self.world = World(
            gateway=self.gateway, store=self.store, ledger=self.ledger, bucket=self.bucket, bridges=self.sandboxes,
            clock=self.clock, pods=PodContext("agent", "sandbox", "Never", "http://operator", self.ledger.epoch),
            release=Release("default", "cluster-1", self.ledger.epoch, "default"), wake=self.wake,
            drive=lambda key, turn: self.drivers.ensure(self.world, key, turn),
        )  # fmt: skip
        self.door = self.world
        self.ledger.subscribe(lambda rows: wake_all(rows, self.ledger.state, self.store, self.wake))
        self.wishes.clear()
        self.relist()
        rebuild_places(self.world)

    def relist(self) -> None:
        """What the API server has is what is known, and every key is looked at."""
        for resource in KINDS:
            there = {read_ref(resource, obj): obj for obj in self.gateway.objects.find(resource)}
            for ref, known in self.store.read_refs(resource).items():
                if ref not in there:
                    self.store.discard(resource, known)
            for obj in there.values():
                self.store.put(resource, obj)
        self.wake_all()

    def wake(self, ref: Ref) -> None:
        """Look at this key in the next round."""
        self.queue.add(ref)

    def wake_all(self) -> None:
        for key in self.ledger.state.agents:
            self.queue.add(_ref(AGENTS, key))
        for key in self.ledger.state.runs:
            self.queue.add(_ref(SWARMS, key))
        for resource in (SWARMS, AGENTS):
            self.queue.update(read_ref(resource, obj) for obj in self.gateway.objects.find(resource))

    def _watch(self, kind: str, resource: Resource, obj: Json) -> None:
        """What kopf would tell: the object, and its key."""
        self.changes += 1
        if resource not in KINDS or self.api_away:
            return
        if kind == "DELETED":
            self.store.discard(resource, obj)
        else:
            self.store.put(resource, obj)
        if resource is PODS:
            self.queue.add(Ref(AGENTS, obj["metadata"]["namespace"], obj["metadata"]["labels"]["alineo.dev/agent"]))
        else:
            self.queue.add(read_ref(resource, obj))
        if resource is SWARMS:
            self.queue.update(read_ref(AGENTS, agent) for agent in self.gateway.objects.find(AGENTS))

    async def settle(self, patience: float = PATIENCE, rounds: int = ROUNDS) -> None:
        """Run passes, kubelets and sandboxes until nothing happens within `patience` seconds; restart who died."""
        quiet = 0
        for _ in range(rounds):
            before = self._measure()
            await self._round()
            if self.dead and not self.away:
                await self.replace_leader()
            quiet = quiet + 1 if before == self._measure() and (self.away or not self.queue) else 0
            if quiet >= 3:
                if not await self._skip(patience):
                    return
                quiet = 0
        raise AssertionError(f"it never came to rest: {sorted(map(str, {*self.queue, *self.wishes}))}")

    async def run_for(self, seconds: float) -> None:
        """Everything that happens in this time."""
        end = self.clock.monotonic() + seconds
        while (left := end - self.clock.monotonic()) > 0:
            await self.settle(0.0)
            if not await self._skip(left):
                self.clock.advance(left)
        await self.settle(0.0)

    def _measure(self) -> tuple[int, int, int, int]:
        return self.calls, len(self.stored.rows), self.starts, self.changes

    async def _skip(self, patience: float) -> bool:
        """Go on to the next moment at which something is due, if that is near enough."""
        due = self.find_next()
        left = None if due is None else due - self.clock.monotonic()
        if left is None or left > patience:
            return False
        self.clock.advance(max(left, 0.0) + 1e-6)
        return True

    def find_next(self) -> float | None:
        """When something is due: a pass, a timer, a kubelet's patience."""
        loop = asyncio.get_running_loop()
        timer = loop.find_next() if isinstance(loop, VirtualLoop) else None
        wishes = () if self.away else self.wishes.values()
        known = (*wishes, timer, self.kubelets.find_next())
        return min((due for due in known if due is not None), default=None)

    async def step(self) -> None:
        """One round of kubelets, passes and sandboxes."""
        await self._round()

    async def _round(self) -> None:
        await self.kubelets.run()
        if not self.away:
            await self._run_passes()
        for _ in range(10):
            await asyncio.sleep(0)

    async def _run_passes(self) -> None:
        now = self.clock.monotonic()
        self.queue.update(ref for ref, due in self.wishes.items() if due <= now)
        keys, self.queue = sorted(self.queue, key=str), set()
        for ref in keys:
            self.wishes.pop(ref, None)
            try:
                again = await self._look(ref)
            except Died:
                return
            except Conflict:
                self.queue.add(ref)
                continue
            except Unavailable:
                again = RETRY
            if again is not None:
                self.wishes[ref] = now + again

    async def _look(self, ref: Ref) -> float | None:
        return await run_pass(self.world, ref)

    async def leave(self) -> None:
        """The operator is gone, and nobody takes its place; the cluster and the sandboxes go on."""
        self.away = self.dead = True
        await self.drivers.close()

    async def replace_leader(self) -> None:
        """Another process leads from now on."""
        self.dead = True
        await self.drivers.close()
        self._start()

    @property
    def helps(self) -> bool:
        """Whether there is any use in asking the operator."""
        bucket_away = isinstance(self.bucket, MemoryBucket) and self.bucket.failure is not None
        return not (self.away or self.api_away or bucket_away or self.ledger.replication.failing)

    def lose_api(self) -> None:
        """The API server answers nobody of us."""
        self.api_away = True

    def mend_api(self) -> None:
        """It answers again: what was missed is listed."""
        self.api_away = False
        self.relist()

    def read_archive(self, key: str) -> bytes | None:
        """As a restore container does with its grant.

        Raises:
            Unavailable: the bucket is away.
        """
        found = self.bucket.get(key) if self.bucket else None
        return found.body if found else None

    def write_archive(self, upload: Upload) -> tuple[str, str]:
        """As a checkpointer does with its grant: the key, or why the object is not there."""
        if upload.grant is None or self.bucket is None:
            return "", "no bucket is configured"
        try:
            self.bucket.put(upload.grant.key, upload.body, if_absent=True)
        except Conflict:
            return upload.grant.key, ""
        except Unavailable as error:
            return "", error.message
        return upload.grant.key, ""

    def delete_pod(self, agent: str) -> None:
        """The pod and everything in it are gone at once."""
        self.kubelets.vanish(agent)

    def read(self, resource: Resource, name: str) -> Json:
        return self.gateway.objects.read(Ref(resource, NAMESPACE, name))


def _ref(resource: Resource, key: str) -> Ref:
    namespace, name = key.split("/")
    return Ref(resource, namespace, name)
