"""Situation → the rule that answers, the reason a person reads, and the actions. Then what holds for any situation."""

from typing import Any

import pytest

from alineod.domain import events as ev
from alineod.domain.actions import Action, Append
from alineod.domain.agent_rules import decide_agent
from alineod.domain.events import LedgerState, Outcome, Rung
from alineod.domain.facts import AgentFacts, Peer, PodPhase, RunFacts, Trouble
from alineod.domain.state import Handle, InboxMessage, Pod
from alineod.wire.archives import RestoreReport
from alineod.wire.heard import Heard
from alineod.wire.turns import TurnState, Usage
from tests.unit.domain.builders import (
    NOW,
    build_bridge,
    build_facts,
    build_ledger,
    build_object,
    build_pod,
    build_run,
    build_run_state,
    build_spec,
    build_turn,
    running,
    with_supervision,
)  # fmt: skip


def _kinds(actions: tuple[Action, ...]) -> list[str]:
    """Action names; of an append the events."""
    words: list[str] = []
    for action in actions:
        bodies = [type(e.body).__name__ for e in action.entries] if isinstance(action, Append) else []
        words += bodies or [type(action).__name__]
    return words


def _peer(**change: Any) -> Peer:
    fields: dict[str, Any] = {
        "key": "research/survey-x", "handle": Handle(), "closed": False, "has_sandbox": True, "gone": False,
    }  # fmt: skip
    return Peer(**(fields | change))


SETTLED = Handle(True, Outcome.SUCCESS, 1, "text")
WAITING = build_object(spec=build_spec(waitFor=["x"]))
SPAWNING = build_ledger(LedgerState.SPAWNING, pod=None, incarnation=0, turn=None, last_clean_turn=None)
FORKING = build_object(spec=build_spec(parent="x"), parent="x")
LEAVING = build_pod(deleting=True, deletes_at=NOW + 600, grace=650)
COMING = build_pod(agent_running=False, bridge_ready=False, phase=PodPhase.PENDING)

CASES: list[tuple[str, AgentFacts, str, str | None, list[str]]] = [
    ("at rest", build_facts(), "idle", "Completed", []),
    ("another release's", build_facts(run=build_run(ours=False)), "not_ours", None, []),
    ("deleted", build_facts(object=None), "deleted", None, ["AgentEnded", "HandleSettled"]),
    (
        "deleted in a turn",
        build_facts(object=None, ledger=running()),
        "deleted",
        None,
        ["AgentTurnInterrupted", "AgentEnded", "HandleSettled"],
    ),
    ("gone for long", build_facts(object=None, ledger=build_ledger(closed=True), pod=None), "gone", None, []),
    ("spec unusable", build_facts(invalid=Trouble("InvalidSpec", "why")), "invalid", "InvalidSpec", []),
    ("no swarm yet", build_facts(run=build_run(exists=False, state=None)), "no_swarm", "SwarmNotFound", []),
    ("new", build_facts(ledger=None, pod=None, bridge=None), "spawn", "Accepted", ["AgentSpawned"]),
    (
        "another object under the name",
        build_facts(object=build_object(uid="uid-b")),
        "spawn",
        "Accepted",
        ["AgentEnded", "HandleSettled", "AgentSpawned", "AbortTurn", "DeletePod"],
    ),
    ("brought over", build_facts(object=build_object(uid="uid-b", adopt=True)), "spawn", "Accepted", ["AgentSpawned"]),
    (
        "brought over with its swarm",
        build_facts(object=build_object(uid="uid-b"), run=build_run(state=build_run_state(resumed_seq=500))),
        "spawn",
        "Accepted",
        ["AgentSpawned"],
    ),
    (
        "short name taken",
        build_facts(ledger=None, pod=None, alias_holder="research/other"),
        "alias_taken",
        "AliasTaken",
        [],
    ),
    (
        "ended, its pod still there",
        build_facts(ledger=build_ledger(LedgerState.ABORTED, closed=True, outcome=Outcome.ABORTED)),
        "closed",
        "Spawned",
        ["AbortTurn", "DeletePod"],
    ),
    ("waits", build_facts(object=WAITING, ledger=SPAWNING, pod=None, peers={"x": _peer()}), "wait", "Waiting", []),
    ("waits for nobody yet", build_facts(object=WAITING, ledger=SPAWNING, pod=None), "wait", "AgentNotFound", []),
    (
        "its wait is over",
        build_facts(object=WAITING, ledger=SPAWNING, pod=None, peers={"x": _peer(handle=SETTLED)}),
        "wait_resolved",
        "WaitResolved",
        ["WaitResolved"],
    ),
    (
        "its parent is not up",
        build_facts(object=FORKING, ledger=SPAWNING, pod=None, peers={"x": _peer(has_sandbox=False)}),
        "parent",
        "ParentNotReady",
        [],
    ),
    (
        "its parent is lost",
        build_facts(object=FORKING, ledger=SPAWNING, pod=None, peers={"x": _peer(gone=True)}),
        "parent_lost",
        None,
        ["AgentEnded", "HandleSettled"],
    ),
    ("held by nothing", build_facts(ledger=SPAWNING, pod=None), "provision", "Provisioning", ["AgentStateChanged"]),
    (
        "needs its first pod",
        build_facts(ledger=build_ledger(LedgerState.PROVISIONING, pod=None, incarnation=0, turn=None), pod=None),
        "pod_gone",
        "Provisioning",
        ["CreatePod"],
    ),
    (
        "its first pod is there",
        build_facts(
            ledger=build_ledger(LedgerState.PROVISIONING, pod=None, incarnation=0, turn=None),
            pod=None,
            next_pod=build_pod(),
        ),
        "pod_made",
        "Provisioning",
        ["AgentProvisioned"],
    ),
    (
        "somebody's pod has the name",
        build_facts(pod=None, next_pod=build_pod(incarnation=2, owner_uid="uid-z")),
        "pod_taken",
        "PodNameTaken",
        [],
    ),
    ("pod gone", build_facts(pod=None), "pod_gone", "Restoring", ["CreatePod"]),
    ("pod gone, no place", build_facts(pod=None, restores_left=0), "wait_for_place", "WaitingForPlace", []),
    (
        "pod gone in a turn",
        build_facts(ledger=running(), pod=None),
        "turn_cut",
        "Restoring",
        ["AgentTurnInterrupted", "HandleSettled", "AgentStateChanged"],
    ),
    (
        "pod failed",
        build_facts(pod=build_pod(phase=PodPhase.FAILED)),
        "pod_gone",
        "Restoring",
        ["DeletePod", "CreatePod"],
    ),
    (
        "pod refused",
        build_facts(pod=None, refusal=Trouble("Forbidden", "exceeded quota")),
        "refused",
        "Forbidden",
        ["CreatePod"],
    ),
    ("pod of old", build_facts(stale_pods=(build_pod(uid="old"),)), "stale_pods", None, ["DeletePod"]),
    ("pod leaving", build_facts(pod=LEAVING), "pod_leaving", "PodDeleting", []),
    (
        "pod leaving in a turn",
        build_facts(ledger=running(), pod=LEAVING),
        "pod_leaving",
        "PodDeleting",
        ["Drive"],
    ),
    ("pod coming", build_facts(pod=COMING), "pod_coming", "PodStarting", []),
    (
        "image not there",
        build_facts(pod=build_pod(agent_running=False, trouble=Trouble("ImagePullBackOff", "no such image"))),
        "pod_coming",
        "ImagePullBackOff",
        [],
    ),
    (
        "came back",
        build_facts(
            ledger=build_ledger(incarnation=1, pod=Pod("survey-lead-1", "uid-p", 1, Rung.RESTORE)),
            pod=build_pod(restore=RestoreReport(start="checkpoint", turn=1)),
        ),
        "restored",
        "PodStarting",
        ["AgentRestored"],
    ),
    ("bridge unheard", build_facts(bridge=None), "probe", "BridgeNotAnswering", ["Probe"]),
    (
        "bridge says why not",
        build_facts(bridge=build_bridge(ready=False, reason="CredentialsMissing", message="no Secret model")),
        "probe",
        "CredentialsMissing",
        ["Probe"],
    ),
    ("new leader", build_facts(reattached=False), "reattach", None, ["AgentRestored"]),
    ("turn running", build_facts(ledger=running()), "turn_running", "TurnRunning", ["Drive"]),
    (
        "first turn due",
        build_facts(ledger=build_ledger(LedgerState.PROVISIONING, turn=None)),
        "turn_due",
        "TurnStarting",
        ["AgentTurnStarted"],
    ),
    (
        "prompt waits",
        build_facts(ledger=build_ledger(inbox=(InboxMessage("m", "prompt", "go on"),))),
        "turn_due",
        "TurnStarting",
        ["AgentTurnStarted", "InboxDelivered"],
    ),
    (
        "blocked",
        build_facts(ledger=build_ledger(LedgerState.BLOCKED, reason="TurnInterrupted", message="cut")),
        "idle",
        "TurnInterrupted",
        [],
    ),
]


@pytest.mark.parametrize(("facts", "rule", "reason", "actions"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_situations(facts: AgentFacts, rule: str, reason: str | None, actions: list[str]) -> None:
    decision = decide_agent(facts)
    assert decision.rule == rule
    assert (decision.standing.reason if decision.standing else None) == reason
    assert _kinds(decision.actions) == actions


@pytest.mark.behaviour("10.4", "10.7")
@pytest.mark.parametrize(
    "run",
    [
        build_run(exists=False, here=False),
        build_run(uid="uid-new"),
        build_run(state=build_run_state(resumed_seq=50)),
        build_run(kind_renewed=True),
    ],
    ids=["of another cluster", "its swarm is still to be adopted", "its run was just adopted", "its CRD is new"],
)
def test_an_object_that_is_still_to_come_back_was_not_deleted(run: RunFacts) -> None:
    assert decide_agent(build_facts(object=None, run=run)).actions == ()


@pytest.mark.behaviour("2.18")
@pytest.mark.parametrize(
    ("facts", "ready", "stalled"),
    [
        (build_facts(), True, False),
        (build_facts(ledger=running()), True, False),
        (build_facts(object=WAITING, ledger=SPAWNING, pod=None, peers={"x": _peer()}), True, False),
        (build_facts(ledger=build_ledger(LedgerState.PAUSED)), True, False),
        (build_facts(ledger=build_ledger(LedgerState.FAILED)), True, False),
        (build_facts(pod=None), False, False),
        (build_facts(bridge=None), False, False),
        (build_facts(invalid=Trouble("InvalidSpec", "why")), False, True),
        (build_facts(ledger=build_ledger(LedgerState.BLOCKED)), False, True),
    ],
)
def test_ready_means_where_it_should_be(facts: AgentFacts, ready: bool, stalled: bool) -> None:
    standing = decide_agent(facts).standing
    assert standing is not None
    assert (standing.ready, standing.stalled) == (ready, stalled)


def test_a_pod_that_does_not_come_up_is_stalled_after_a_while() -> None:
    trouble = Trouble("Unschedulable", "0/2 nodes are available")
    early = decide_agent(build_facts(pod=build_pod(agent_running=False, trouble=trouble, created_at=999.0)))
    late = decide_agent(build_facts(pod=build_pod(agent_running=False, trouble=trouble, created_at=1.0)))
    assert early.standing is not None
    assert late.standing is not None
    assert (early.standing.stalled, late.standing.stalled) == (False, True)
    assert early.again_after == 299.0


@pytest.mark.parametrize(
    ("policy", "events"),
    [
        ({}, ["AgentTurnInterrupted", "HandleSettled", "AgentStateChanged"]),
        ({"onInterruption": "Ask"}, ["AgentTurnInterrupted", "AgentSupervisionNeeded", "AgentStateChanged"]),
        ({"onInterruption": "Retry"}, ["AgentTurnInterrupted", "AgentStateChanged"]),
        ({"onInterruption": "Retry", "maxRetries": 0}, ["AgentTurnInterrupted", "HandleSettled", "AgentStateChanged"]),
    ],
)
def test_what_follows_an_interruption_is_the_policy_s(policy: dict[str, Any], events: list[str]) -> None:
    heard = Heard("half a", ("bash",), Usage(input_tokens=7))
    facts = with_supervision(build_facts(ledger=running(), pod=None, heard=heard), **policy)
    decision = decide_agent(facts)
    assert _kinds(decision.actions) == events
    cut = decision.actions[0]
    assert isinstance(cut, Append)
    body = cut.entries[0].body
    assert isinstance(body, ev.AgentTurnInterrupted)
    assert (body.text, body.turn, body.turn_id) == ("half a", 1, "uid-a-1")
    assert (body.tools, body.usage) == (["bash"], Usage(input_tokens=7))


@pytest.mark.behaviour("5.1")
@pytest.mark.parametrize("facts", [build_facts(), build_facts(ledger=running()), build_facts(reattached=False)])
def test_no_fresh_pod_while_the_bridge_answers(facts: AgentFacts) -> None:
    assert "CreatePod" not in _kinds(decide_agent(facts).actions)
    gone = _kinds(decide_agent(build_facts(pod=None)).actions)
    assert gone == ["CreatePod"]


@pytest.mark.behaviour("3.8")
def test_a_retried_turn_keeps_its_id_and_is_told_what_was_cut_off() -> None:
    cut = build_turn(state=TurnState.INTERRUPTED)
    facts = build_facts(ledger=build_ledger(LedgerState.RUNNING, turn=cut, last_clean_turn=None))
    (append,) = decide_agent(facts).actions
    assert isinstance(append, Append)
    body = append.entries[0].body
    assert isinstance(body, ev.AgentTurnStarted)
    assert (body.turn, body.turn_id, body.attempt, body.prompt) == (2, "uid-a-1", 2, "plan")
