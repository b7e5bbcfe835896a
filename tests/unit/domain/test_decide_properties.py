"""Properties of the decision about an agent: it is total, the same for the same facts, and always a step forward.

That the steps lead to a rest is shown by whole clusters (tests/unit/reconcile/test_convergence.py).
"""

import os
from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from alineod.crd.sandbox import OnNodeLost
from alineod.domain import events as ev
from alineod.domain.actions import AbortTurn, Append, CreatePod, DeletePod, Drive, Probe
from alineod.domain.agent_rules import decide_agent
from alineod.domain.causes import End, EndKind
from alineod.domain.ends import BRIDGE_DENIED, LOCKED_OUT, find_end
from alineod.domain.events import Entry, Row
from alineod.domain.facts import AgentFacts, Crash, Peer, PodFacts, PodPhase, Trouble
from alineod.domain.fold import fold
from alineod.domain.state import AgentState, Handle, State
from alineod.ledger.chain import Head, decide_append
from alineod.ledger.records import prepare_entries
from alineod.wire.archives import RestoreReport
from alineod.wire.heard import Heard
from tests.unit.domain.builders import (
    KEY,
    NOW,
    POD_UID,
    RUN,
    UID,
    build_bridge,
    build_object,
    build_run,
    build_run_state,
    build_spec,
)
from tests.unit.reconcile.mixes import BODIES

EXAMPLES = int(os.environ.get("ALINEO_EXAMPLES", "300"))
TROUBLES = st.sampled_from((None, Trouble("CrashLoopBackOff", "it ends again and again")))
CRASHES = st.none() | st.builds(Crash, st.booleans(), st.integers(0, 6), st.just(Trouble("CrashLoopBackOff", "again")))
ENDS = st.sampled_from((None, *(End(kind, "R", "m") for kind in EndKind)))
ERRORS = tuple(Trouble(r, "it does not answer") for r in ("BridgeNotAnswering", LOCKED_OUT, BRIDGE_DENIED))
TIMES = st.sampled_from((0.0, NOW - 400, NOW - 5, NOW + 400))
PODS = st.builds(
    PodFacts,
    name=st.just("survey-lead-1"), uid=st.sampled_from((POD_UID, "another")),
    owner_uid=st.sampled_from((UID, "another")),
    incarnation=st.integers(1, 5), phase=st.sampled_from(PodPhase), created_at=TIMES, deleting=st.booleans(),
    agent_running=st.booleans(), bridge_ready=st.booleans(), restarts=st.integers(0, 6), trouble=TROUBLES,
    crash=CRASHES, end=ENDS, container_end=ENDS, deletes_at=TIMES, unready_since=TIMES,
    node_lost_since=TIMES,
    restore=st.sampled_from((None, RestoreReport(start="blank"), RestoreReport(start="checkpoint", turn=1))),
)  # fmt: skip
SPECS = st.builds(
    build_spec,
    sandbox=st.builds(lambda policy: {"onNodeLost": policy}, st.sampled_from([str(each) for each in OnNodeLost])),
    waitFor=st.sampled_from((None, ["left"])), parent=st.sampled_from((None, "left")),
)  # fmt: skip
OBJECTS = st.builds(
    lambda spec, **other: build_object(spec=spec, parent=spec.parent or "", **other), SPECS,
    uid=st.sampled_from((UID, UID, UID, "another")), deleting=st.booleans(), adopt=st.booleans(),
)  # fmt: skip
PEERS = st.builds(
    Peer, st.just("research/survey-left"), st.sampled_from((Handle(), Handle(True, ev.Outcome.FAILED, 1))),
    st.booleans(), st.booleans(), st.booleans(),
)  # fmt: skip
RUNS = st.builds(
    build_run, exists=st.booleans(), ours=st.booleans(), here=st.booleans(), kind_renewed=st.booleans(),
    listed=st.booleans(), state=st.builds(build_run_state, deleted=st.booleans()) | st.none(),
)  # fmt: skip


def _fold(bodies: list[ev.AnyBody]) -> State:
    """The state of an agent by these events, whatever they make of it."""
    spawned = ev.AgentSpawned(uid=UID, alias="lead", spec=build_spec().dump())
    rows = [
        Row(seq=number, time=NOW - 900 + number, id=str(number), run=RUN, agent=KEY, body=body, prev="", hash="")
        for number, body in enumerate((spawned, *bodies), 2)
    ]
    return fold(State(), rows)


@st.composite
def build_mix(draw: st.DrawFn) -> tuple[State, AgentFacts]:
    """A state of the ledger and facts beside it."""
    state = _fold(draw(st.lists(BODIES, max_size=10)))
    obj, next_pod = draw(OBJECTS | st.none()), draw(PODS | st.none())
    if next_pod is not None:
        next_pod = replace(next_pod, incarnation=state.agents[KEY].incarnation + 1)
    facts = AgentFacts(
        now=NOW,
        key=KEY,
        epoch=draw(st.integers(1, 3)),
        object=obj,
        invalid=draw(TROUBLES) if obj is None else None,
        run=draw(RUNS),
        ledger=draw(st.sampled_from((state.agents[KEY], state.agents[KEY], None))),
        pod=draw(PODS | st.none()),
        last_end=draw(ENDS),
        next_pod=next_pod,
        stale_pods=tuple(draw(st.lists(PODS, max_size=2))),
        bridge=draw(
            st.none() | st.builds(build_bridge, ready=st.booleans(), reason=st.sampled_from(("", "SetupFailed")))
        ),
        bridge_error=draw(st.sampled_from((None, *ERRORS))),
        tries=draw(st.integers(0, 3)),
        reattached=draw(st.booleans()),
        namespace_going=draw(st.booleans()),
        outdated=draw(st.booleans()),
        start_wait=draw(TROUBLES),
        heard=draw(st.sampled_from((Heard(), Heard("text", ("bash",))))),
        peers=draw(st.dictionaries(st.just("left"), PEERS)),
        alias_holder=draw(st.sampled_from(("", "", "research/other"))),
        restores_left=draw(st.integers(0, 1)),
        refusal=draw(TROUBLES),
    )
    return state, facts


def _append(state: State, entries: tuple[Entry, ...], standing: dict[str, Row]) -> tuple[State, int]:
    """As a ledger does: what stands already is not written again. Returns how many rows were."""
    plan = decide_append(prepare_entries(entries), standing, Head(state.seq, "0" * 64), int(NOW * 1_000_000))
    standing.update((row.id, row) for row in plan.added)
    return fold(state, plan.added), len(plan.added)


def _look_again(facts: AgentFacts, state: State) -> AgentFacts:
    """The same facts beside a ledger that went on: the pod that it holds now is no next one any more."""
    ledger = state.agents.get(KEY)
    if facts.next_pod is not None and ledger is not None and ledger.incarnation == facts.next_pod.incarnation:
        return replace(facts, ledger=ledger, pod=facts.next_pod, next_pod=None)
    return replace(facts, ledger=ledger)


MANY = settings(
    max_examples=EXAMPLES, deadline=None, derandomize="ALINEO_EXAMPLES" not in os.environ, database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


@MANY
@given(build_mix())
def test_whatever_the_facts_there_is_one_decision_and_it_is_a_step_forward(mix: tuple[State, AgentFacts]) -> None:
    state, facts = mix
    decision = decide_agent(facts)
    assert decide_agent(facts) == decision
    assert decision.again_after is None or decision.again_after >= 0
    standing: dict[str, Row] = {}
    for action in decision.actions:
        if not isinstance(action, Append):
            continue
        after, added = _append(state, action.entries, standing)
        assert added == len({entry.id for entry in action.entries}) == len(action.entries)
        assert _append(after, action.entries, standing) == (after, 0)
        following = decide_agent(_look_again(facts, after))
        told = {entry.id for each in following.actions if isinstance(each, Append) for entry in each.entries}
        assert facts.ledger is None or decision.rule == "reattach" or not told & standing.keys(), (
            f"{decision.rule} is decided again although it stands"
        )


def is_left_behind(facts: AgentFacts, ledger: AgentState) -> bool:
    """Nobody waits for a turn of it."""
    replaced = facts.object is not None and facts.object.uid != ledger.uid
    return ledger.closed or facts.namespace_going or replaced


@MANY
@given(build_mix())
def test_no_facts_hand_a_turn_to_another_pod_or_end_one_that_somebody_waits_for(mix: tuple[State, AgentFacts]) -> None:
    facts = mix[1]
    for action in decide_agent(facts).actions:
        match action:
            case Drive():
                assert facts.ledger is not None
                assert facts.ledger.turn_running
                assert facts.pod is not None
            case CreatePod(incarnation=number):
                assert facts.ledger is not None
                assert number == facts.ledger.incarnation + 1
                assert not facts.ledger.turn_running
            case Probe():
                assert facts.pod is not None
            case AbortTurn():
                assert facts.ledger is not None
                assert is_left_behind(facts, facts.ledger)
            case DeletePod(uid=uid):
                assert facts.ledger is not None
                known = facts.pod is not None and facts.pod.uid == uid
                assert not known or find_end(facts) is not None or is_left_behind(facts, facts.ledger)
            case _:
                assert isinstance(action, Append)
