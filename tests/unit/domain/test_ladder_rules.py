"""The restore ladder as a table: what was seen of a sandbox, the rung that held or is tried, what is told."""

from dataclasses import replace
from typing import Any

import pytest

from alineod.domain import events as ev
from alineod.domain.actions import Append, CreatePod, DeletePod, Drive, Probe
from alineod.domain.agent_rules import decide_agent
from alineod.domain.causes import End, EndKind
from alineod.domain.ends import BRIDGE_DENIED, LOCKED_OUT, MAX_CRASHES, find_end
from alineod.domain.events import LedgerState, Rung
from alineod.domain.facts import AgentFacts, PodPhase, Trouble
from alineod.domain.gone_rules import STOP_GRACE
from alineod.wire.archives import RestoreReport
from alineod.wire.heard import Heard
from alineod.wire.turns import ErrorKind, TurnError, TurnState
from tests.unit.domain.builders import (
    NOW,
    build_bridge,
    build_facts,
    build_ledger,
    build_object,
    build_pod,
    running,
)  # fmt: skip
from tests.unit.domain.ladder import (
    CRASH,
    CRASHING,
    DRAINED,
    EVICTED,
    JUST_SILENT,
    LEAVING,
    OVER,
    SILENT,
    WAITS,
    bodies,
    build_held,
    has,
)

SILENCE = Trouble("BridgeNotAnswering", "timed out")


@pytest.mark.behaviour("5.5")
def test_a_new_leader_asks_twice_before_it_looks_further() -> None:
    first = decide_agent(build_facts(reattached=False, bridge=None, bridge_error=None, tries=0, retry_delay=1.5))
    second = decide_agent(build_facts(reattached=False, bridge=None, bridge_error=SILENCE, tries=1, retry_delay=1.5))
    assert [(d.rule, d.actions, d.again_after) for d in (first, second)] == [("probe", (Probe(),), 1.5)] * 2
    third = decide_agent(
        build_facts(reattached=False, bridge=None, bridge_error=SILENCE, tries=2, pod=build_pod(bridge_ready=False))
    )
    assert third.standing is not None
    assert third.standing.reason == "Resuming"


@pytest.mark.behaviour("5.5")
@pytest.mark.parametrize(("tries", "since", "asks"), [(1, 0.4, False), (1, 1.5, True), (2, 0.4, True)])
def test_what_wakes_a_pass_does_not_bring_the_second_question_forward(tries: int, since: float, asks: bool) -> None:
    facts = build_facts(
        reattached=False, bridge=None, bridge_error=SILENCE, tries=tries, retry_delay=1.5, asked_at=NOW - since
    )
    decision = decide_agent(facts)
    assert decision.rule == "probe"
    assert bool(decision.actions) is asks
    if not asks:
        assert decision.again_after == pytest.approx(1.1)


@pytest.mark.behaviour("5.4")
def test_a_bridge_that_answers_is_reattached_and_its_turn_goes_on() -> None:
    decision = decide_agent(build_facts(ledger=running(), reattached=False))
    (body,) = bodies(decision)
    assert isinstance(body, ev.AgentRestored)
    assert body.rung is Rung.REATTACH


@pytest.mark.behaviour("5.10")
def test_a_paused_agent_is_taken_as_it_is_without_a_question() -> None:
    paused = build_ledger(LedgerState.PAUSED)
    decision = decide_agent(build_facts(ledger=paused, reattached=False, bridge=None, tries=0))
    (body,) = bodies(decision)
    assert isinstance(body, ev.AgentRestored)
    assert body.rung is Rung.REATTACH
    later = decide_agent(build_facts(ledger=paused, bridge=None))
    assert (later.rule, later.actions) == ("paused", ())
    assert later.standing is not None
    assert (later.standing.reason, later.standing.ready) == ("Suspended", True)


def test_a_way_that_is_blocked_is_no_reason_to_replace_a_sandbox_that_works() -> None:
    facts = build_facts(bridge=None, bridge_error=SILENCE, tries=50, pod=build_pod(bridge_ready=True))
    decision = decide_agent(facts)
    assert decision.standing is not None
    assert (decision.standing.reason, decision.actions) == ("BridgeUnreachable", (Probe(),))
    assert "NetworkPolic" in decision.standing.message


@pytest.mark.behaviour("5.6", "5.2")
def test_a_container_that_was_restarted_came_back_by_resume() -> None:
    killed = End(EndKind.OWN_FAULT, "OOMKilled", "it used more memory than it may")
    facts = build_facts(
        pod=build_pod(restarts=2, container_end=killed), ledger=build_ledger(pod=build_held(restarts=1))
    )
    (body,) = bodies(decide_agent(facts))
    assert isinstance(body, ev.AgentRestored)
    assert (body.rung, body.restarts, body.reason) == (Rung.RESUME, 2, killed.message)
    again = build_facts(pod=build_pod(restarts=2), ledger=build_ledger(pod=build_held(restarts=2)))
    assert decide_agent(again).rule == "idle"


GONE = [
    ("removed", build_facts(pod=None), "PodGone"),
    ("seen going", build_facts(pod=None, last_end=DRAINED), "EvictionByEvictionAPI"),
    ("over", build_facts(pod=build_pod(phase=PodPhase.SUCCEEDED)), "PodEnded"),
    ("given up", build_facts(ledger=build_ledger(given_up=1)), "GivenUp"),
    ("crashing", build_facts(pod=CRASHING), "CrashLoopBackOff"),
    ("node lost", build_facts(pod=SILENT, bridge=None, tries=2), "NodeLost"),
]


@pytest.mark.behaviour("5.7", "9.6")
@pytest.mark.parametrize(("facts", "reason"), [c[1:] for c in GONE], ids=[c[0] for c in GONE])
def test_a_sandbox_that_is_no_good_any_more_is_replaced(facts: AgentFacts, reason: str) -> None:
    end = find_end(facts)
    assert end is not None
    assert end.reason == reason
    decision = decide_agent(facts)
    assert CreatePod(2) in decision.actions
    in_turn = decide_agent(replace(facts, ledger=replace(running(), given_up=facts.ledger.given_up)))  # type: ignore[union-attr]
    cut = bodies(in_turn)[0]
    assert isinstance(cut, ev.AgentTurnInterrupted)
    assert (cut.reason, cut.outside) == (reason, True)
    assert not has(in_turn, CreatePod)


STILL_GOOD = [
    ("crashed less often", build_facts(pod=replace(CRASHING, crash=replace(CRASH, restarts=MAX_CRASHES - 1)))),
    ("crashes of before it came up", build_facts(pod=CRASHING, ledger=build_ledger(pod=build_held(restarts=1)))),
    ("its node is silent for a moment", build_facts(pod=JUST_SILENT, bridge=None, tries=2)),
    ("it answers though its node does not", build_facts(pod=SILENT)),
    ("it was asked once", build_facts(pod=SILENT, bridge=None, tries=1)),
    (
        "a lost node is to be waited for",
        build_facts(pod=SILENT, bridge=None, tries=9, object=build_object(spec=WAITS)),
    ),
    ("it is leaving", build_facts(pod=LEAVING)),
]  # fmt: skip


@pytest.mark.behaviour("5.1")
@pytest.mark.parametrize("facts", [c[1] for c in STILL_GOOD], ids=[c[0] for c in STILL_GOOD])
def test_a_sandbox_that_may_be_good_is_not_replaced(facts: AgentFacts) -> None:
    assert find_end(facts) is None
    assert not has(decide_agent(facts), CreatePod)
    assert not has(decide_agent(replace(facts, ledger=running(pod=facts.ledger.pod))), Append)  # type: ignore[union-attr]


def test_a_bridge_that_lost_what_it_knows_the_operator_by_is_given_up_as_the_agent_s_own_fault() -> None:
    locked = build_facts(bridge=None, bridge_error=Trouble(LOCKED_OUT, "no"), tries=9)
    assert find_end(locked) is None  # it is still being restored
    restored = replace(locked, pod=build_pod(restore=RestoreReport(start="blank")))
    end = find_end(restored)
    assert end is not None
    assert (end.kind, end.reason) == (EndKind.OWN_FAULT, LOCKED_OUT)
    assert "its token is gone from /run/alineo" in end.message
    assert find_end(replace(restored, tries=1)) is None  # one answer is no proof


def test_why_a_sandbox_went_is_known_also_when_its_turn_is_recorded_as_cut() -> None:
    """It is a fault of its own still: it counts, and there is a rest before the next."""
    ledger = running()
    assert ledger.turn is not None
    assert ledger.pod is not None
    turn, held = replace(ledger.turn, state=TurnState.INTERRUPTED), replace(ledger.pod, made_at=NOW)
    cut = replace(ledger, turn=turn, pod=held, given_up=1, sandbox_faults=1)
    locked = build_facts(
        ledger=cut, bridge=None, bridge_error=Trouble(LOCKED_OUT, "no"), tries=9,
        pod=build_pod(restore=RestoreReport(start="blank")),
    )  # fmt: skip
    decision = decide_agent(locked)
    assert decision.rule == "back_off"
    assert decision.standing is not None
    assert decision.standing.reason == LOCKED_OUT
    unknown = find_end(replace(locked, bridge_error=None))
    assert unknown is not None
    assert unknown.reason == "GivenUp"


@pytest.mark.parametrize(("incarnation", "lost"), [(1, True), (2, False)])
def test_a_sandbox_whose_conversation_was_spoilt_is_replaced_once(incarnation: int, lost: bool) -> None:
    error = TurnError(kind=ErrorKind.SESSION, message="the conversation cannot be read back")
    ledger = build_ledger(LedgerState.FAILED)
    assert ledger.turn is not None
    turn = replace(ledger.turn, state=TurnState.FAILED, error=error)
    end = find_end(build_facts(ledger=replace(ledger, turn=turn, incarnation=incarnation)))
    assert (end is not None and (end.kind, end.reason) == (EndKind.OWN_FAULT, "ConversationLost")) is lost
    failed = replace(turn, error=TurnError(kind=ErrorKind.PROVIDER, message="no"))
    assert find_end(build_facts(ledger=replace(ledger, turn=failed))) is None


def test_a_turn_in_which_nothing_is_heard_is_shown_as_that_and_goes_on() -> None:
    facts = build_facts(ledger=running(), heard=Heard(silence="nothing was heard for 20 s, since tool.started"))
    decision = decide_agent(facts)
    assert decision.standing is not None
    assert (decision.standing.reason, decision.standing.ready) == ("TurnInactive", True)
    assert "for 20 s, since tool.started (limits.promptInactivity" in decision.standing.message
    assert decision.actions == (Drive(1),)


@pytest.mark.parametrize("tries", [0, 9])
def test_a_bridge_that_knows_another_key_is_left_alone_and_somebody_is_called(tries: int) -> None:
    """It may be all of them, where a ledger was lost: each may be at work, and a person decides."""
    facts = build_facts(bridge=None, bridge_error=Trouble(BRIDGE_DENIED, "no"), tries=tries)
    decision = decide_agent(facts)
    assert decision.actions == (Probe(),)
    assert decision.standing is not None
    assert (decision.standing.reason, decision.standing.stalled) == (BRIDGE_DENIED, True)
    assert "delete the pod" in decision.standing.message


def test_what_is_waited_for_on_a_silent_node_is_said() -> None:
    decision = decide_agent(build_facts(pod=SILENT, bridge=None, bridge_error=SILENCE, object=build_object(spec=WAITS)))
    assert decision.standing is not None
    assert decision.standing.reason == "NodeNotReady"
    assert "n2" in decision.standing.message


@pytest.mark.behaviour("5.8")
def test_the_next_pod_is_recorded_with_the_cause_before_anything_builds_on_it() -> None:
    fresh = build_pod(name="survey-lead-2", uid="uid-2", incarnation=2)
    decision = decide_agent(build_facts(pod=OVER, next_pod=fresh))
    (body,) = bodies(decision)
    assert isinstance(body, ev.AgentProvisioned)
    assert (body.incarnation, body.rung, body.cause, body.own_fault) == (2, Rung.RESTORE, EVICTED.message, True)


def test_a_turn_is_not_cut_off_before_there_is_a_place_for_what_may_still_come_back() -> None:
    facts = build_facts(ledger=running(), pod=SILENT, bridge=None, tries=2, restores_left=0)
    decision = decide_agent(facts)
    assert (decision.rule, bodies(decision)) == ("wait_for_place", [])


def test_a_sandbox_that_nobody_waits_for_has_less_time_than_a_turn() -> None:
    stale = build_pod(uid="old", version="7")
    assert decide_agent(build_facts(stale_pods=(stale,))).actions == (DeletePod(stale.name, "old", "7", STOP_GRACE),)
    leaving = replace(stale, deleting=True, grace=650)
    assert has(decide_agent(build_facts(stale_pods=(leaving,))), DeletePod)
    soon = replace(stale, deleting=True, grace=STOP_GRACE)
    assert not has(decide_agent(build_facts(stale_pods=(soon,))), DeletePod)


def test_a_turn_is_followed_though_the_bridge_is_not_ready() -> None:
    bridge = build_bridge(ready=False, reason="CredentialsMissing", message="no Secret model")
    assert decide_agent(build_facts(ledger=running(), bridge=bridge)).actions == (Probe(), Drive(1))


def test_a_turn_s_end_is_heard_before_its_container_s_restart_is_recorded() -> None:
    restarted = build_pod(restarts=1, container_end=End(EndKind.OWN_FAULT, "OOMKilled", "memory"))
    decision = decide_agent(build_facts(ledger=running(), pod=restarted, reattached=False))
    assert (decision.rule, decision.actions) == ("turn_running", (Drive(1),))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"invalid": Trouble("InvalidSpec", "why")}, "InvalidSpec"),
        ({"object": build_object(deleting=True)}, "Deleting"),
    ],
    ids=["its spec cannot be used", "its object is held by somebody"],
)
def test_a_turn_that_runs_goes_on_whatever_keeps_anything_new_from_beginning(
    change: dict[str, Any], reason: str
) -> None:
    facts = replace(build_facts(ledger=running()), **change)
    for goes_on, action in ((facts, Drive), (replace(facts, bridge=None, reattached=False), Probe)):
        decision = decide_agent(goes_on)
        assert decision.standing is not None
        assert decision.standing.reason == reason
        assert has(decision, action)
    (cut, *_) = bodies(decide_agent(replace(facts, pod=None)))
    assert isinstance(cut, ev.AgentTurnInterrupted)
    assert decide_agent(replace(facts, ledger=build_ledger(), pod=None)).actions == ()
