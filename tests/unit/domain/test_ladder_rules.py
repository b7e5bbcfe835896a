"""The restore ladder as a table: what was seen of a sandbox, the rung that is tried, and what the ledger is told."""

from dataclasses import replace
from typing import Any

import pytest

from alineod.domain import events as ev
from alineod.domain.actions import AbortTurn, Action, Append, CreatePod, Decision, DeletePod, Drive, Probe
from alineod.domain.agent_rules import decide_agent
from alineod.domain.causes import End, EndKind
from alineod.domain.ends import MAX_CRASHES, NODE_LOST_AFTER, find_end
from alineod.domain.events import LedgerState, Outcome, Rung
from alineod.domain.facts import AgentFacts, AgentObject, Peer, PodFacts, PodPhase, Trouble
from alineod.domain.gone_rules import BACK_OFF, MAX_SANDBOXES, STOP_GRACE
from alineod.domain.state import AgentState, Handle, InboxMessage, Pod
from alineod.domain.turn_ends import TOO_MANY_FAILURES
from alineod.wire.turns import TurnState
from tests.unit.domain.builders import (
    NOW,
    POD_UID,
    build_bridge,
    build_facts,
    build_ledger,
    build_object,
    build_pod,
    build_spec,
    build_turn,
    running,
    with_supervision,
)  # fmt: skip

EVICTED = End(EndKind.OWN_FAULT, "Evicted", 'Usage of EmptyDir volume "home" exceeds the limit "5Mi"')
DRAINED = End(EndKind.DISRUPTION, "EvictionByEvictionAPI", "evicting")
CRASHING = build_pod(
    agent_running=False, bridge_ready=False, crashes=MAX_CRASHES, trouble=Trouble("CrashLoopBackOff", "container agent")
)
SILENT = build_pod(bridge_ready=True, node="n2", node_lost_since=NOW - NODE_LOST_AFTER, unready_since=NOW - 60)
JUST_SILENT = replace(SILENT, node_lost_since=NOW - 1)
WAITS = build_spec(sandbox={"onNodeLost": "Wait"})
LEAVING = build_pod(deleting=True, deletes_at=NOW + 600, grace=650, end=DRAINED)
OVER = build_pod(phase=PodPhase.FAILED, agent_running=False, end=EVICTED)


def _bodies(decision: Decision) -> list[ev.AnyBody]:
    return [e.body for action in decision.actions if isinstance(action, Append) for e in action.entries]


def _has(decision: Decision, kind: type[Action]) -> bool:
    return any(isinstance(action, kind) for action in decision.actions)


def _pod(**change: Any) -> Pod:
    return replace(Pod("survey-lead-1", POD_UID, 1, None), **change)


# --- Reattach ---------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("5.5")
def test_a_new_leader_asks_twice_before_it_looks_further() -> None:
    first = decide_agent(build_facts(reattached=False, bridge=None, bridge_error="", tries=0, retry_delay=1.5))
    second = decide_agent(build_facts(reattached=False, bridge=None, bridge_error="no", tries=1, retry_delay=1.5))
    assert [(d.rule, d.actions, d.again_after) for d in (first, second)] == [("probe", (Probe(),), 1.5)] * 2
    third = decide_agent(
        build_facts(reattached=False, bridge=None, bridge_error="no", tries=2, pod=build_pod(bridge_ready=False))
    )
    assert third.standing is not None
    assert third.standing.reason == "Resuming"


@pytest.mark.behaviour("5.5")
@pytest.mark.parametrize(("tries", "since", "asks"), [(1, 0.4, False), (1, 1.5, True), (2, 0.4, True)])
def test_what_wakes_a_pass_does_not_bring_the_second_question_forward(tries: int, since: float, asks: bool) -> None:
    facts = build_facts(
        reattached=False, bridge=None, bridge_error="no", tries=tries, retry_delay=1.5, asked_at=NOW - since
    )
    decision = decide_agent(facts)
    assert decision.rule == "probe"
    assert bool(decision.actions) is asks
    if not asks:
        assert decision.again_after == pytest.approx(1.1)


@pytest.mark.behaviour("5.4")
def test_a_bridge_that_answers_is_reattached_and_its_turn_goes_on() -> None:
    decision = decide_agent(build_facts(ledger=running(), reattached=False))
    (body,) = _bodies(decision)
    assert isinstance(body, ev.AgentRestored)
    assert body.rung is Rung.REATTACH


@pytest.mark.behaviour("5.10")
def test_a_paused_agent_is_taken_as_it_is_without_a_question() -> None:
    paused = build_ledger(LedgerState.PAUSED)
    decision = decide_agent(build_facts(ledger=paused, reattached=False, bridge=None, tries=0))
    (body,) = _bodies(decision)
    assert isinstance(body, ev.AgentRestored)
    assert body.rung is Rung.REATTACH
    later = decide_agent(build_facts(ledger=paused, bridge=None))
    assert (later.rule, later.actions) == ("paused", ())
    assert later.standing is not None
    assert (later.standing.reason, later.standing.ready) == ("Suspended", True)


def test_a_way_that_is_blocked_is_no_reason_to_replace_a_sandbox_that_works() -> None:
    facts = build_facts(bridge=None, bridge_error="timed out", tries=50, pod=build_pod(bridge_ready=True))
    decision = decide_agent(facts)
    assert decision.standing is not None
    assert (decision.standing.reason, decision.actions) == ("BridgeUnreachable", (Probe(),))
    assert "NetworkPolic" in decision.standing.message


# --- Resume -----------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("5.6", "5.2")
def test_a_container_that_was_restarted_came_back_by_resume() -> None:
    killed = End(EndKind.OWN_FAULT, "OOMKilled", "it used more memory than it may")
    facts = build_facts(pod=build_pod(restarts=2, container_end=killed), ledger=build_ledger(pod=_pod(restarts=1)))
    (body,) = _bodies(decide_agent(facts))
    assert isinstance(body, ev.AgentRestored)
    assert (body.rung, body.restarts, body.reason) == (Rung.RESUME, 2, killed.message)
    again = build_facts(pod=build_pod(restarts=2), ledger=build_ledger(pod=_pod(restarts=2)))
    assert decide_agent(again).rule == "idle"


# --- Restore ----------------------------------------------------------------------------------------------------------

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
    cut = _bodies(in_turn)[0]
    assert isinstance(cut, ev.AgentTurnInterrupted)
    assert (cut.reason, cut.outside) == (reason, True)
    assert not _has(in_turn, CreatePod)


STILL_GOOD = [
    ("crashed less often", build_facts(pod=replace(CRASHING, crashes=MAX_CRASHES - 1))),
    ("crashes of before it came up", build_facts(pod=CRASHING, ledger=build_ledger(pod=_pod(restarts=1)))),
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
    assert not _has(decide_agent(facts), CreatePod)
    assert not _has(decide_agent(replace(facts, ledger=running(pod=facts.ledger.pod))), Append)  # type: ignore[union-attr]


def test_what_is_waited_for_on_a_silent_node_is_said() -> None:
    decision = decide_agent(build_facts(pod=SILENT, bridge=None, bridge_error="no", object=build_object(spec=WAITS)))
    assert decision.standing is not None
    assert decision.standing.reason == "NodeNotReady"
    assert "n2" in decision.standing.message


@pytest.mark.behaviour("5.8")
def test_the_next_pod_is_recorded_with_the_cause_before_anything_builds_on_it() -> None:
    fresh = build_pod(name="survey-lead-2", uid="uid-2", incarnation=2)
    decision = decide_agent(build_facts(pod=OVER, next_pod=fresh))
    (body,) = _bodies(decision)
    assert isinstance(body, ev.AgentProvisioned)
    assert (body.incarnation, body.rung, body.cause, body.own_fault) == (2, Rung.RESTORE, EVICTED.message, True)


def test_a_turn_is_not_cut_off_before_there_is_a_place_for_what_may_still_come_back() -> None:
    facts = build_facts(ledger=running(), pod=SILENT, bridge=None, tries=2, restores_left=0)
    decision = decide_agent(facts)
    assert (decision.rule, _bodies(decision)) == ("wait_for_place", [])


def test_a_sandbox_that_nobody_waits_for_has_less_time_than_a_turn() -> None:
    stale = build_pod(uid="old", version="7")
    assert decide_agent(build_facts(stale_pods=(stale,))).actions == (DeletePod(stale.name, "old", "7", STOP_GRACE),)
    leaving = replace(stale, deleting=True, grace=650)
    assert _has(decide_agent(build_facts(stale_pods=(leaving,))), DeletePod)
    soon = replace(stale, deleting=True, grace=STOP_GRACE)
    assert not _has(decide_agent(build_facts(stale_pods=(soon,))), DeletePod)


# --- Own faults -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("faults", "rest"), [(0, 0.0), (1, BACK_OFF[0]), (2, 20.0), (3, 40.0), (20, BACK_OFF[1])])
def test_own_faults_back_off(faults: int, rest: float) -> None:
    ledger = build_ledger(sandbox_faults=faults, pod=_pod(made_at=NOW - 1))
    decision = decide_agent(with_supervision(build_facts(ledger=ledger, pod=OVER), maxConsecutiveFailures=100))
    assert decision.again_after == (rest - 1 if rest else 1.0)
    assert _has(decision, CreatePod) == (rest == 0.0)
    rested = with_supervision(
        build_facts(ledger=replace(ledger, pod=_pod(made_at=NOW - rest)), pod=OVER), maxConsecutiveFailures=100
    )
    assert _has(decide_agent(rested), CreatePod)


def test_disruptions_neither_count_nor_back_off() -> None:
    ledger = build_ledger(sandbox_faults=50, failures=50, pod=_pod(made_at=NOW))
    assert _has(decide_agent(build_facts(ledger=ledger, pod=replace(OVER, end=DRAINED))), CreatePod)


def test_too_many_own_faults_hold_the_agent_until_a_prompt_decides() -> None:
    ledger = build_ledger(LedgerState.PROVISIONING, sandbox_faults=2)
    asked, blocked = _bodies(decide_agent(build_facts(ledger=ledger, pod=OVER)))
    assert isinstance(asked, ev.AgentSupervisionNeeded)
    assert isinstance(blocked, ev.AgentStateChanged)
    assert (blocked.state, blocked.reason) == (LedgerState.BLOCKED, TOO_MANY_FAILURES)
    held = _blocked(TOO_MANY_FAILURES, sandbox_faults=2)
    decision = decide_agent(build_facts(ledger=held, pod=None))
    assert (decision.rule, decision.actions) == ("held", ())
    decided = replace(held, inbox=(InboxMessage("m", "prompt", "again", NOW),), sandbox_faults=0)
    assert _has(decide_agent(build_facts(ledger=decided, pod=None)), CreatePod)


def _blocked(reason: str, **change: Any) -> AgentState:
    return build_ledger(LedgerState.BLOCKED, reason=reason, message="why", state_since=NOW - 5, **change)


@pytest.mark.parametrize("own_fault", [True, False])
def test_the_breaker_opens_whatever_the_policy(own_fault: bool) -> None:
    end = EVICTED if own_fault else DRAINED
    facts = build_facts(ledger=running(failures=2), pod=replace(OVER, end=end))
    bodies = _bodies(decide_agent(with_supervision(facts, onInterruption="Retry")))
    states = [body.state for body in bodies if isinstance(body, ev.AgentStateChanged)]
    assert states == [LedgerState.BLOCKED if own_fault else LedgerState.RUNNING]
    assert not any(isinstance(body, ev.HandleSettled) for body in bodies)


@pytest.mark.behaviour("3.7")
def test_a_blocked_agent_goes_on_with_a_prompt_that_was_given_since() -> None:
    cut = build_turn(state=TurnState.INTERRUPTED)
    before = InboxMessage("m1", "prompt", "queued before", NOW - 9)
    since = InboxMessage("m2", "prompt", "go on", NOW - 1)
    waiting = _blocked("TurnInterrupted", turn=cut, inbox=(before,))
    assert decide_agent(build_facts(ledger=waiting)).rule == "idle"
    bodies = _bodies(decide_agent(build_facts(ledger=replace(waiting, inbox=(before, since)))))
    started, delivered = bodies
    assert isinstance(started, ev.AgentTurnStarted)
    assert isinstance(delivered, ev.InboxDelivered)
    assert (started.turn, started.prompt, delivered.ids) == (2, "go on", ["m2"])


# --- Lost -------------------------------------------------------------------------------------------------------------

LAST = MAX_SANDBOXES - 1


@pytest.mark.behaviour("5.9", "2.9", "2.15")
def test_an_agent_whose_every_rung_failed_is_lost_with_the_last_error() -> None:
    live = build_ledger(LedgerState.RUNNING, turn=build_turn(state=TurnState.INTERRUPTED), sandbox_faults=LAST)
    decision = decide_agent(build_facts(ledger=live, pod=CRASHING, epoch=7))
    ended, settled = _bodies(decision)
    assert isinstance(ended, ev.AgentEnded)
    assert (ended.outcome, ended.epoch) == (Outcome.LOST, 7)
    assert "container agent" in ended.message
    assert isinstance(settled, ev.HandleSettled)


@pytest.mark.behaviour("5.11")
def test_a_finished_agent_that_cannot_come_back_is_released_with_its_outcome() -> None:
    done = build_ledger(LedgerState.DONE, sandbox_faults=LAST, outcome=Outcome.SUCCESS)
    (released,) = _bodies(decide_agent(build_facts(ledger=done, pod=CRASHING)))
    assert isinstance(released, ev.AgentReleased)
    after = replace(done, released=True, pod=None, reason="RestoreFailed", message="why")
    decision = decide_agent(build_facts(ledger=after, pod=None, stale_pods=(CRASHING,)))
    assert decision.rule == "released"
    assert not _has(decision, CreatePod)
    assert _has(decision, DeletePod)


def test_an_agent_that_never_began_has_failed() -> None:
    fresh = build_ledger(LedgerState.PROVISIONING, turn=None, last_clean_turn=None, sandbox_faults=LAST)
    ended = _bodies(decide_agent(build_facts(ledger=fresh, pod=CRASHING)))[0]
    assert isinstance(ended, ev.AgentEnded)
    assert (ended.outcome, ended.reason) == (Outcome.FAILED, "ProvisioningFailed")


@pytest.mark.behaviour("5.12")
def test_what_was_lost_is_tried_again_by_a_later_leader_and_what_was_stopped_is_not() -> None:
    lost = build_ledger(LedgerState.LOST, closed=True, ended_epoch=6, outcome=Outcome.LOST, message="why")
    assert decide_agent(build_facts(ledger=lost, epoch=6)).rule == "closed"
    (again,) = _bodies(decide_agent(build_facts(ledger=lost, epoch=7)))
    assert isinstance(again, ev.AgentStateChanged)
    assert (again.state, again.reason) == (LedgerState.FAILED, "TriedAgain")
    aborted = build_ledger(LedgerState.ABORTED, closed=True, ended_epoch=6, outcome=Outcome.ABORTED)
    assert decide_agent(build_facts(ledger=aborted, epoch=7)).rule == "closed"


@pytest.mark.behaviour("5.15", "5.12")
def test_a_child_whose_parent_cannot_come_back_is_lost_until_the_parent_is_there_again() -> None:
    forking = build_object(spec=build_spec(parent="x"), parent="x")
    child = build_ledger(LedgerState.SPAWNING, pod=None, incarnation=0, turn=None, last_clean_turn=None)
    gone = Peer("research/survey-x", Handle(), closed=True, has_sandbox=False, gone=True)
    facts = build_facts(object=forking, ledger=child, pod=None, peers={"x": gone}, epoch=6)
    ended, settled = _bodies(decide_agent(facts))
    assert isinstance(ended, ev.AgentEnded)
    assert isinstance(settled, ev.HandleSettled)
    assert (ended.outcome, settled.outcome, ended.reason) == (Outcome.LOST, Outcome.LOST, "ParentLost")
    lost = replace(child, state=LedgerState.LOST, closed=True, ended_epoch=6, outcome=Outcome.LOST)
    assert decide_agent(replace(facts, ledger=lost, epoch=7)).rule == "closed"
    (again,) = _bodies(decide_agent(replace(facts, ledger=lost, epoch=7, peers={"x": replace(gone, gone=False)})))
    assert isinstance(again, ev.AgentStateChanged)
    assert again.state is LedgerState.SPAWNING


# --- Doubts -----------------------------------------------------------------------------------------------------------

TAINTED = End(EndKind.DISRUPTION, "DeletionByTaintManager", "deleting due to NoExecute taint")


@pytest.mark.behaviour("5.7", "9.6")
@pytest.mark.parametrize(
    "pod",
    [
        replace(LEAVING, end=TAINTED),
        replace(LEAVING, node_lost_since=NOW - NODE_LOST_AFTER),
        replace(LEAVING, deletes_at=NOW - 31),
    ],
    ids=["for its node's sake", "its node is silent", "for longer than it has"],
)
def test_a_pod_that_nobody_may_ever_end_is_asked_and_then_replaced(pod: PodFacts) -> None:
    asked = decide_agent(build_facts(ledger=running(), pod=pod, bridge=None))
    assert asked.actions == (Probe(), Drive(1))
    assert asked.again_after is not None
    assert find_end(build_facts(ledger=running(), pod=pod, tries=1)) is None
    end = find_end(build_facts(ledger=running(), pod=pod, tries=2))
    assert end is not None
    assert end.reason == "NodeLost"


def test_a_pod_that_was_not_up_when_its_node_went_is_replaced() -> None:
    restoring = replace(LEAVING, agent_running=False, bridge_ready=False, phase=PodPhase.PENDING)
    assert find_end(build_facts(pod=restoring)) is None
    assert find_end(build_facts(pod=replace(restoring, end=TAINTED))) is not None


def test_a_turn_that_goes_on_in_a_pod_that_should_have_ended_is_let_go_on() -> None:
    overdue = replace(LEAVING, deletes_at=NOW - 31)
    assert find_end(build_facts(ledger=running(), pod=overdue)) is None
    assert find_end(build_facts(pod=overdue)) is not None


def test_a_turn_is_followed_though_the_bridge_is_not_ready() -> None:
    bridge = build_bridge(ready=False, reason="CredentialsMissing", message="no Secret model")
    assert decide_agent(build_facts(ledger=running(), bridge=bridge)).actions == (Probe(), Drive(1))


def test_a_turn_s_end_is_heard_before_its_container_s_restart_is_recorded() -> None:
    restarted = build_pod(restarts=1, container_end=End(EndKind.OWN_FAULT, "OOMKilled", "memory"))
    decision = decide_agent(build_facts(ledger=running(), pod=restarted, reattached=False))
    assert (decision.rule, decision.actions) == ("turn_running", (Drive(1),))


def test_a_checkpointer_that_ends_again_and_again_is_no_end_of_an_agent_at_work() -> None:
    crashing = replace(CRASHING, agent_running=True, bridge_ready=True)
    assert find_end(build_facts(ledger=running(), pod=crashing)) is None


def test_a_finished_agent_keeps_its_outcome_when_its_sandboxes_fail() -> None:
    done = build_ledger(LedgerState.DONE, sandbox_faults=2, outcome=Outcome.SUCCESS)
    decision = decide_agent(build_facts(ledger=done, pod=OVER))
    assert (decision.rule, _bodies(decision), _has(decision, CreatePod)) == ("held", [], False)
    assert decision.standing is not None
    assert (decision.standing.reason, decision.standing.stalled) == (TOO_MANY_FAILURES, True)
    assert _has(decide_agent(build_facts(ledger=replace(done, sandbox_faults=0), pod=OVER)), CreatePod)


def test_an_agent_that_never_began_does_so_when_somebody_decides() -> None:
    since = InboxMessage("m", "prompt", "go on", NOW - 1)
    held = _blocked(TOO_MANY_FAILURES, turn=None, last_clean_turn=None, inbox=(since,))
    (started,) = _bodies(decide_agent(build_facts(ledger=held)))
    assert isinstance(started, ev.AgentTurnStarted)
    assert (started.turn, started.prompt) == (1, "plan")


def test_a_child_that_is_tried_again_is_provisioned_again() -> None:
    again = build_ledger(LedgerState.SPAWNING, pod=None, incarnation=0, turn=None, last_clean_turn=None, ended_epoch=6)
    (append,) = decide_agent(build_facts(ledger=again, pod=None)).actions
    first = decide_agent(build_facts(ledger=replace(again, ended_epoch=0), pod=None)).actions[0]
    assert isinstance(append, Append)
    assert isinstance(first, Append)
    assert append.entries[0].id != first.entries[0].id


@pytest.mark.parametrize("object_", [None, build_object()], ids=["deleted", "still there"])
def test_a_turn_of_an_agent_that_has_ended_is_aborted_before_its_sandbox_goes(
    object_: AgentObject | None,
) -> None:
    ended = build_ledger(LedgerState.ABORTED, closed=True, outcome=Outcome.ABORTED, turn=build_turn(1))
    leaving = build_pod(deleting=True, grace=650, deletes_at=NOW + 600, version="7")
    decision = decide_agent(build_facts(object=object_, ledger=ended, pod=leaving))
    assert decision.actions == (AbortTurn("uid-a-1"), DeletePod(leaving.name, leaving.uid, "7", STOP_GRACE))
    again = decide_agent(build_facts(object=object_, ledger=ended, pod=replace(leaving, grace=STOP_GRACE)))
    assert again.actions == ()
