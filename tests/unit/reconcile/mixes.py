"""Any mix of a ledger, pods, sandboxes and a clock, reachable or not, as a simulation to go on from.

What is drawn is small and plain, so that a failing example can be read.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

import msgspec
from hypothesis import strategies as st

from alineod.domain import events as ev
from alineod.domain.actions import Append
from alineod.domain.agent_rules import decide_agent
from alineod.domain.events import Entry, LedgerState, Outcome, Rung
from alineod.kube.objects import AGENTS, PODS, SWARMS, Json, Ref, read_ref
from alineod.podspec.observe import parse_pod
from alineod.podspec.pod import build_pod
from alineod.reconcile.gather import gather_agent
from alineod.reconcile.passes import run_pass
from alineod.wire.turns import ErrorKind, TurnError, TurnState, Usage
from tests.support.memory_bucket import MemoryBucket
from tests.unit.reconcile.pod_status import build_crashing, build_evicted, build_running
from tests.unit.reconcile.sandboxes import Sandbox
from tests.unit.reconcile.simulation import NAMESPACE, Simulation
from tests.unit.reconcile.virtual_time import FakeClock

RUN, KEYS = f"{NAMESPACE}/s", (f"{NAMESPACE}/s-a", f"{NAMESPACE}/s-b")
NUMBERS = st.integers(1, 4)
STATES = st.sampled_from(list(TurnState))


class PodState(StrEnum):
    """How a pod stands."""

    NEW = "new"
    RUNNING = "running"
    UNREADY = "unready"
    CRASHING = "crashing"
    EVICTED = "evicted"
    OVER_LIMIT = "over its limit"
    DELETED = "deleted"


@dataclass(frozen=True)
class PodMix:
    """A pod of an agent, the turns that its sandbox knows, and what its bridge is like."""

    incarnation: int
    state: PodState
    turns: tuple[TurnState, ...] = ()
    restarts: int = 0
    hangs: bool = False
    known: bool = True  # the UID by which the ledger holds this incarnation is this pod's


@dataclass(frozen=True)
class AgentMix:
    bodies: tuple[ev.AnyBody, ...]
    pods: tuple[PodMix, ...]
    has_object: bool = True


@dataclass(frozen=True)
class Mix:
    """Two agents, the second one a child of the first, under one swarm. `age` in seconds."""

    agents: tuple[AgentMix, AgentMix]
    policy: str
    wait: bool
    checkpoint: bool
    age: int
    terms: int


def _body(body: type, /, **fields: st.SearchStrategy[object]) -> st.SearchStrategy[ev.AnyBody]:
    return st.builds(body, **fields)


TURN = {"turn": NUMBERS, "turn_id": st.just("t")}
WORDS = st.sampled_from(("", "text"))
BODIES: st.SearchStrategy[ev.AnyBody] = st.one_of(
    _body(
        ev.AgentProvisioned, pod=st.just(""), uid=st.just(""), incarnation=NUMBERS,
        rung=st.sampled_from((None, Rung.RESTORE)), own_fault=st.booleans(),
    ),
    _body(
        ev.AgentStateChanged, state=st.sampled_from(LedgerState), reason=st.sampled_from(("R", "TooManyFailures"))
    ),
    _body(ev.AgentTurnStarted, **TURN, prompt=st.just("p"), incarnation=NUMBERS),
    _body(ev.AgentTurnEnded, **TURN, text=WORDS, usage=st.just(Usage(input_tokens=1))),
    _body(ev.AgentTurnFailed, **TURN, error=st.builds(TurnError, kind=st.sampled_from(ErrorKind), message=WORDS)),
    _body(
        ev.AgentTurnInterrupted, **TURN, reason=st.just("R"), message=WORDS, own_fault=st.booleans(),
        outside=st.booleans(),
    ),
    _body(
        ev.AgentCheckpointed, turn=NUMBERS, incarnation=NUMBERS, snapshot_ref=st.just("f"), sha256=st.just("0" * 64),
        bytes=st.just(1), remote_ref=st.sampled_from((None, "gone")),
    ),
    _body(
        ev.AgentRestored, rung=st.sampled_from(Rung), incarnation=NUMBERS, reason=st.just("R"),
        checkpoint_turn=st.sampled_from((None, 1, 2)), restarts=st.integers(0, 2),
    ),
    _body(ev.AgentEnded, outcome=st.sampled_from(Outcome), reason=st.just("R"), epoch=st.integers(0, 2)),
    _body(ev.AgentReleased, reason=st.just("R")),
    _body(ev.HandleSettled, outcome=st.sampled_from(Outcome), turn=NUMBERS),
    _body(
        ev.InboxQueued, id=st.sampled_from(("m1", "m2")), kind=st.sampled_from(("prompt", "notice")), text=WORDS
    ),
    _body(ev.InboxDelivered, ids=st.just(["m1"]), turn=NUMBERS),
    _body(ev.WaitResolved, mode=st.just("All"), outcome=st.just("satisfied")),
    _body(ev.HarnessEvent, type=st.just("message"), turn=NUMBERS, incarnation=NUMBERS, seq=NUMBERS),
)  # fmt: skip
POD_MIXES = st.builds(
    PodMix, NUMBERS, st.sampled_from(PodState), st.lists(st.sampled_from(TurnState), max_size=3).map(tuple),
    st.integers(0, 2), st.booleans(), st.booleans(),
)  # fmt: skip
AGENT_MIXES = st.builds(
    AgentMix,
    st.lists(BODIES, max_size=8).map(tuple),
    st.lists(POD_MIXES, max_size=3, unique_by=lambda pod: pod.incarnation).map(tuple),
    st.sampled_from((True, True, True, False)),
)
MIXES = st.builds(
    Mix, st.tuples(AGENT_MIXES, AGENT_MIXES), st.sampled_from(("Settle", "Ask", "Retry")), st.booleans(),
    st.booleans(), st.sampled_from((0, 30, 400, 90_000)), st.integers(0, 2),
)  # fmt: skip


async def build_simulation(mix: Mix, clock: FakeClock) -> Simulation:
    """The mix as a cluster, with a leader that has not looked at it yet."""
    simulation = Simulation(bucket=MemoryBucket(clock), clock=clock)
    simulation.kubelets.checkpointers = simulation.kubelets.paced = True
    simulation.gateway.write(SWARMS, _build_swarm(mix))
    await run_pass(simulation.world, Ref(SWARMS, NAMESPACE, "s"))
    for key, agent in zip(KEYS, mix.agents, strict=True):
        await _spawn(simulation, key)
        uids = dict(await _make_pods(simulation, key, agent))
        await _record(simulation, key, agent, uids)
    for key, agent in zip(KEYS, mix.agents, strict=True):
        if not agent.has_object:
            simulation.gateway.remove(Ref(AGENTS, *key.split("/")))
    clock.advance(mix.age)
    simulation.stored.epoch += mix.terms
    await simulation.replace_leader()
    return simulation


def _build_swarm(mix: Mix) -> Json:
    model = {"harness": {"model": {"provider": "openai", "id": "m"}}, "checkpoint": mix.checkpoint}
    wait = {"waitFor": {"agents": ["a"], "deadline": "10m"}} if mix.wait else {}
    agents = [{"name": "a", "prompt": "p"}, {"name": "b", "parent": "a", "prompt": "p", **wait}]
    supervision = {"onInterruption": mix.policy}
    return {
        "metadata": {"name": "s", "namespace": NAMESPACE},
        "spec": {"defaults": model, "agents": agents, "supervision": supervision},
    }


async def _spawn(simulation: Simulation, key: str) -> None:
    facts, _ = await gather_agent(simulation.world, key)
    (action,) = decide_agent(facts).actions
    assert isinstance(action, Append)
    await simulation.ledger.append(action.entries)


async def _make_pods(simulation: Simulation, key: str, agent: AgentMix) -> list[tuple[int, str]]:
    """The pods; returns by incarnation the UID that the ledger has for it."""
    facts, _ = await gather_agent(simulation.world, key)
    assert facts.object is not None
    made = []
    for pod in agent.pods:
        body = build_pod(key, facts.object, pod.incarnation, simulation.world.pods)
        raw = simulation.gateway.write(PODS, body | {"spec": body["spec"] | {"nodeName": "n1"}})
        made.append((pod.incarnation, raw["metadata"]["uid"] if pod.known else "another"))
        # No sandbox knows more turns than the ledger: what is acknowledged is not lost.
        _set_state(simulation, raw, replace(pod, turns=pod.turns[: _find_last(agent)]))
    return made


def _find_last(agent: AgentMix) -> int:
    """The number of the turn that the ledger has as the last."""
    return next((body.turn for body in reversed(agent.bodies) if isinstance(body, ev.AgentTurnStarted)), 0)


def _set_state(simulation: Simulation, raw: Json, pod: PodMix) -> None:
    facts = parse_pod(raw)
    if pod.state is PodState.NEW:
        return
    status = build_running(facts, '{"start":"fresh"}')
    status["containerStatuses"][0]["restartCount"] = pod.restarts
    sandbox = simulation.sandboxes.pods[facts.uid] = _build_sandbox(pod, facts.owner_uid)
    match pod.state:
        case PodState.CRASHING:
            status, sandbox.crashed_at = build_crashing(status), simulation.clock.monotonic()
        case PodState.EVICTED | PodState.OVER_LIMIT:
            over = "usage exceeds the limit" if pod.state is PodState.OVER_LIMIT else "the node was low on memory"
            status, sandbox.gone = build_evicted(status, over), True
        case _ if pod.hangs:
            sandbox.hung_since = simulation.clock.monotonic()
    simulation.gateway.write_status(read_ref(PODS, raw), status)
    if pod.state is PodState.DELETED:
        simulation.gateway.objects.end(read_ref(PODS, raw), None)


def _build_sandbox(pod: PodMix, agent_uid: str) -> Sandbox:
    """Its journal, in which only the last turn may still run."""
    sandbox = Sandbox()
    for number, state in enumerate(pod.turns, 1):
        sandbox.write(number, f"{agent_uid}-{number}", "turn.started", {"checkpoint": False})
        turn = sandbox.running
        if turn is not None and (state is not TurnState.RUNNING or number < len(pod.turns)):
            sandbox.end(turn, TurnState.INTERRUPTED if state is TurnState.RUNNING else state, "text")
    return sandbox


async def _record(simulation: Simulation, key: str, agent: AgentMix, uids: dict[int, str]) -> None:
    uid = simulation.ledger.state.agents[key].uid
    for number, body in enumerate(agent.bodies):
        if isinstance(body, ev.AgentProvisioned):
            name = f"{key.split('/')[1]}-{body.incarnation}"
            body = msgspec.structs.replace(body, pod=name, uid=uids.get(body.incarnation, "gone"))
        elif isinstance(body, ev.AgentTurnStarted):
            body = msgspec.structs.replace(body, turn_id=f"{uid}-{body.turn}")
        await simulation.ledger.append([Entry(id=f"{key}/mix/{number}", run=RUN, agent=key, body=body)])
