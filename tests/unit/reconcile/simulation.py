"""A cluster, its kubelets and its sandboxes in memory, around the real passes, drivers and rules.

One counter numbers every outside call of the operator: to the API server, the ledger, the bucket and the sandboxes. At
the chosen call, before or after it took effect, the process dies: from then on every call fails, and a new process
starts over what was stored.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import msgspec

from alineod.bucket.port import Bucket
from alineod.domain.facts import PodFacts
from alineod.errors import Conflict, Unavailable
from alineod.kube.memory import Call, MemoryGateway, Moment
from alineod.kube.objects import AGENTS, CRDS, PODS, SWARMS, Json, Ref
from alineod.kube.store import Store
from alineod.ledger.memory import MemoryLedger, MemoryStore
from alineod.podspec.context import PodContext
from alineod.podspec.observe import parse_pod
from alineod.reconcile.archives import build_start_order, find_by_pod
from alineod.reconcile.drive import Drivers
from alineod.reconcile.passes import run_pass
from alineod.reconcile.wake import wake_all
from alineod.reconcile.world import Release, World
from alineod.wire.archives import ForkRequest, ForkResult, RestoreReport
from alineod.wire.base import encode
from alineod.wire.turns import BridgeState, JournalRecord, TurnAccepted, TurnRequest, TurnResult, TurnState

NAMESPACE = "research"
ROUNDS = 400


class Died(Exception):
    """The process is gone."""


class FakeClock:
    def __init__(self) -> None:
        self.time = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return self.time.timestamp()

    def advance(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


@dataclass
class Sandbox:
    """What lives in one pod: the turns it was given and its journal."""

    records: list[JournalRecord] = field(default_factory=list)
    turns: dict[str, TurnAccepted] = field(default_factory=dict)
    gone: bool = False


@dataclass
class Sandboxes:
    """`Bridges` in memory. `asked` is the model's own log: every prompt that reached it, by turn id."""

    hook: Callable[[str], None]
    pods: dict[str, Sandbox] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)

    def _find(self, pod: PodFacts) -> Sandbox:
        sandbox = self.pods.get(pod.uid)
        if sandbox is None or sandbox.gone:
            raise Unavailable("BridgeNotAnswering", f"{pod.name} does not answer")
        return sandbox

    async def read_state(self, pod: PodFacts, token: str) -> BridgeState:
        self.hook("read state")
        self._find(pod)
        return BridgeState(agent=pod.name, incarnation=pod.incarnation, boot="1", ready=True)

    async def start_turn(self, pod: PodFacts, token: str, request: TurnRequest) -> TurnAccepted:
        self.hook("before start turn")
        sandbox = self._find(pod)
        running = [t for t in sandbox.turns.values() if t.state is TurnState.RUNNING and t.turn_id != request.turn_id]
        if running:
            raise Conflict("TurnRunning", "another turn runs")
        if request.turn_id not in sandbox.turns:
            sandbox.turns[request.turn_id] = self._run(sandbox, request)
        self.hook("after start turn")
        return sandbox.turns[request.turn_id]

    def _run(self, sandbox: Sandbox, request: TurnRequest) -> TurnAccepted:
        self.asked.append((request.turn_id, request.prompt))
        self._journal(sandbox, request, "turn.started", {})
        if "HANG" in request.prompt:
            self._journal(sandbox, request, "tool.started", {"name": "bash"})
            return TurnAccepted(turn=request.turn, turn_id=request.turn_id, state=TurnState.RUNNING)
        text = f"did: {request.prompt}"
        self._journal(sandbox, request, "message", {"role": "assistant", "text": text})
        result = TurnResult(turn=request.turn, turn_id=request.turn_id, state=TurnState.CLEAN, text=text)
        self._journal(sandbox, request, "turn.ended", msgspec.to_builtins(result))
        return TurnAccepted(turn=request.turn, turn_id=request.turn_id, state=TurnState.CLEAN)

    def _journal(self, sandbox: Sandbox, request: TurnRequest, event: str, data: Json) -> None:
        seq = len(sandbox.records) + 1
        sandbox.records.append(
            JournalRecord(time=0.0, turn=request.turn, turn_id=request.turn_id, event=event, data=data, seq=seq)
        )

    async def follow(self, pod: PodFacts, token: str, after: int) -> AsyncIterator[JournalRecord]:
        self.hook("follow")
        while True:
            sandbox = self._find(pod)
            for record in sandbox.records[after:]:
                after += 1
                yield record
            await asyncio.sleep(0)

    async def cut_fork(self, pod: PodFacts, token: str, request: ForkRequest) -> ForkResult:
        self.hook("cut fork")
        self._find(pod)
        return ForkResult(fork_id=request.fork_id, sha256="f", bytes=1, md5="f", uploaded=False)


class Simulation:
    """The cluster, what is stored, and the operator's process that is running now; `door` is where it is asked."""

    def __init__(self, die_at: int | None = None, bucket: Bucket | None = None, clock: FakeClock | None = None) -> None:
        self.bucket = bucket
        self.clock = clock or FakeClock()
        self.stored = MemoryStore()
        self.gateway = MemoryGateway(self.clock, namespaces=(NAMESPACE,), hook=self._hook_api)
        self.gateway.objects.insert(CRDS, {"metadata": {"name": str(AGENTS)}})
        self.gateway.objects.insert(CRDS, {"metadata": {"name": str(SWARMS)}})
        self.sandboxes = Sandboxes(self._count)
        self.calls = 0
        self.die_at = die_at
        self.dead = False
        self.starts = 0
        self.queue: set[Ref] = set()
        self.gateway.objects.watchers.append(self._watch)
        self._start()

    def _count(self, what: str = "") -> None:
        if self.dead:
            raise Died
        self.calls += 1
        if self.calls == self.die_at:
            self.dead = True
            raise Died(what)

    def _hook_api(self, call: Call, moment: Moment) -> None:
        if call.writes or moment is Moment.BEFORE:
            self._count(f"{moment} {call.verb} {call.target}")

    def _start(self) -> None:
        """A new process over what is stored."""
        self.starts += 1
        self.dead = False
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
        for resource in (SWARMS, AGENTS, PODS):
            for obj in self.gateway.objects.find(resource):
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
            self.queue.update(_ref_of(resource, obj) for obj in self.gateway.objects.find(resource))

    def _watch(self, kind: str, resource: object, obj: Json) -> None:
        """What kopf would tell: the object, and its key."""
        if resource not in (SWARMS, AGENTS, PODS):
            return
        assert resource is SWARMS or resource is AGENTS or resource is PODS
        if kind == "DELETED":
            self.store.discard(resource, obj)
        else:
            self.store.put(resource, obj)
        if resource is PODS:
            self.queue.add(Ref(AGENTS, obj["metadata"]["namespace"], obj["metadata"]["labels"]["alineo.dev/agent"]))
        else:
            self.queue.add(_ref_of(resource, obj))
        if resource is SWARMS:
            self.queue.update(_ref_of(AGENTS, agent) for agent in self.gateway.objects.find(AGENTS))

    async def settle(self) -> None:
        """Run passes, kubelets and sandboxes until nothing happens any more; start again after a death."""
        quiet = 0
        for _ in range(ROUNDS):
            before = (self.calls, len(self.stored.rows), self.starts)
            await self._round()
            if self.dead:
                await self.drivers.close()
                self._start()
            quiet = quiet + 1 if before == (self.calls, len(self.stored.rows), self.starts) else 0
            if quiet >= 3:
                return
        raise AssertionError(f"it never came to rest: {sorted(map(str, self.queue))}")

    async def step(self) -> None:
        """One round of kubelets, passes and sandboxes."""
        await self._round()

    async def _round(self) -> None:
        await self._run_kubelets()
        keys, self.queue = sorted(self.queue, key=str), set()
        for ref in keys:
            try:
                again = await self._look(ref)
            except Died:
                return
            except (Conflict, Unavailable):
                self.queue.add(ref)
                continue
            if again is not None and again <= 2.0:
                self.queue.add(ref)
        for _ in range(10):
            await asyncio.sleep(0)

    async def _look(self, ref: Ref) -> float | None:
        return await run_pass(self.world, ref)

    async def _run_kubelets(self) -> None:
        """Start every pod that has not started: its restore container asks the operator, its bridge comes up."""
        for raw in self.gateway.read_all(PODS):
            facts = parse_pod(raw)
            if raw.get("status") or facts.deleting:
                continue
            try:
                order = await build_start_order(self.door, find_by_pod(self.door, facts.uid))
            except (Unavailable, Died):
                continue
            self.sandboxes.pods[facts.uid] = Sandbox()
            report = RestoreReport(start=order.sources[0].kind if order.sources else "fresh")
            self.gateway.write_status(_ref_of(PODS, raw), build_running(facts, encode(report).decode()))

    def delete_pod(self, agent: str) -> None:
        """The pod and everything in it are gone at once."""
        for raw in self.gateway.read_all(PODS):
            if raw["metadata"]["labels"]["alineo.dev/agent"] == agent:
                self.sandboxes.pods[raw["metadata"]["uid"]].gone = True
                self.gateway.remove(_ref_of(PODS, raw))

    def read(self, resource: object, name: str) -> Json:
        assert resource is SWARMS or resource is AGENTS or resource is PODS
        return self.gateway.objects.read(Ref(resource, NAMESPACE, name))


def build_running(pod: PodFacts, restored: str) -> Json:
    return {
        "phase": "Running",
        "podIP": "10.0.0.1",
        "initContainerStatuses": [
            {"name": "restore", "state": {"terminated": {"exitCode": 0, "message": restored}}},
        ],
        "containerStatuses": [
            {"name": "agent", "ready": True, "restartCount": 0, "state": {"running": {}}},
        ],
    }


def _ref(resource: object, key: str) -> Ref:
    namespace, name = key.split("/")
    assert resource is SWARMS or resource is AGENTS
    return Ref(resource, namespace, name)


def _ref_of(resource: object, obj: Json) -> Ref:
    assert resource is SWARMS or resource is AGENTS or resource is PODS
    return Ref(resource, obj["metadata"]["namespace"], obj["metadata"]["name"])
