"""Sandboxes that fail: how long there is a rest, when somebody has to decide, when the agent is given up."""

from dataclasses import replace

import pytest

from alineod.domain import events as ev
from alineod.domain.actions import AbortTurn, Append, CreatePod, DeletePod
from alineod.domain.agent_rules import decide_agent
from alineod.domain.events import LedgerState, Outcome
from alineod.domain.facts import AgentObject, Peer
from alineod.domain.gone_rules import BACK_OFF, MAX_SANDBOXES, STOP_GRACE
from alineod.domain.life_rules import ENDED
from alineod.domain.state import Handle, InboxMessage
from alineod.domain.turn_ends import TOO_MANY_FAILURES
from alineod.wire.turns import TurnState
from tests.unit.domain.builders import (
    NOW,
    build_facts,
    build_ledger,
    build_object,
    build_pod,
    build_spec,
    build_turn,
    running,
    with_supervision,
)  # fmt: skip
from tests.unit.domain.ladder import (
    CRASH,
    CRASHING,
    DRAINED,
    EVICTED,
    OVER,
    bodies,
    build_blocked,
    build_held,
    has,
)


@pytest.mark.parametrize(("faults", "rest"), [(0, 0.0), (1, BACK_OFF[0]), (2, 20.0), (3, 40.0), (20, BACK_OFF[1])])
def test_own_faults_back_off(faults: int, rest: float) -> None:
    ledger = build_ledger(sandbox_faults=faults, pod=build_held(made_at=NOW - 1))
    decision = decide_agent(with_supervision(build_facts(ledger=ledger, pod=OVER), maxConsecutiveFailures=100))
    assert decision.again_after == (rest - 1 if rest else 1.0)
    assert has(decision, CreatePod) == (rest == 0.0)
    rested = with_supervision(
        build_facts(ledger=replace(ledger, pod=build_held(made_at=NOW - rest)), pod=OVER), maxConsecutiveFailures=100
    )
    assert has(decide_agent(rested), CreatePod)


def test_disruptions_neither_count_nor_back_off() -> None:
    ledger = build_ledger(sandbox_faults=50, failures=50, pod=build_held(made_at=NOW))
    assert has(decide_agent(build_facts(ledger=ledger, pod=replace(OVER, end=DRAINED))), CreatePod)


def test_a_container_of_ours_that_ends_again_and_again_is_no_fault_of_the_agent() -> None:
    ours = replace(CRASHING, crash=replace(CRASH, of_agent=False))
    ledger = build_ledger(sandbox_faults=50, failures=50, pod=build_held(made_at=NOW, restarts=9))
    decision = decide_agent(build_facts(ledger=ledger, pod=ours))
    assert decision.standing is not None
    assert CRASH.trouble.message in decision.standing.message
    assert has(decision, CreatePod)


def test_too_many_own_faults_hold_the_agent_until_a_prompt_decides() -> None:
    ledger = build_ledger(LedgerState.PROVISIONING, sandbox_faults=2)
    asked, blocked = bodies(decide_agent(build_facts(ledger=ledger, pod=OVER)))
    assert isinstance(asked, ev.AgentSupervisionNeeded)
    assert isinstance(blocked, ev.AgentStateChanged)
    assert (blocked.state, blocked.reason) == (LedgerState.BLOCKED, TOO_MANY_FAILURES)
    held = build_blocked(TOO_MANY_FAILURES, sandbox_faults=2)
    decision = decide_agent(build_facts(ledger=held, pod=None))
    assert (decision.rule, decision.actions) == ("held", ())
    decided = replace(held, inbox=(InboxMessage("m", "prompt", "again"),), sandbox_faults=0)
    assert has(decide_agent(build_facts(ledger=decided, pod=None)), CreatePod)


@pytest.mark.parametrize("own_fault", [True, False])
def test_the_breaker_opens_whatever_the_policy(own_fault: bool) -> None:
    end = EVICTED if own_fault else DRAINED
    facts = build_facts(ledger=running(failures=2), pod=replace(OVER, end=end))
    told = bodies(decide_agent(with_supervision(facts, onInterruption="Retry")))
    states = [body.state for body in told if isinstance(body, ev.AgentStateChanged)]
    assert states == [LedgerState.BLOCKED if own_fault else LedgerState.RUNNING]
    assert not any(isinstance(body, ev.HandleSettled) for body in told)


@pytest.mark.behaviour("3.7")
def test_a_blocked_agent_goes_on_with_a_prompt_that_was_given_since() -> None:
    cut = build_turn(state=TurnState.INTERRUPTED)
    before = InboxMessage("m1", "prompt", "queued before", waited=True)
    since = InboxMessage("m2", "prompt", "go on")
    waiting = build_blocked("TurnInterrupted", turn=cut, inbox=(before,))
    assert decide_agent(build_facts(ledger=waiting)).rule == "idle"
    told = bodies(decide_agent(build_facts(ledger=replace(waiting, inbox=(before, since)))))
    started, delivered = told
    assert isinstance(started, ev.AgentTurnStarted)
    assert isinstance(delivered, ev.InboxDelivered)
    assert (started.turn, started.prompt, delivered.ids) == (2, "go on", ["m2"])


LAST = MAX_SANDBOXES - 1


@pytest.mark.behaviour("5.9", "2.9", "2.15")
def test_an_agent_whose_every_rung_failed_is_lost_with_the_last_error() -> None:
    live = build_ledger(LedgerState.RUNNING, turn=build_turn(state=TurnState.INTERRUPTED), sandbox_faults=LAST)
    decision = decide_agent(build_facts(ledger=live, pod=CRASHING, epoch=7))
    ended, settled = bodies(decision)
    assert isinstance(ended, ev.AgentEnded)
    assert (ended.outcome, ended.epoch) == (Outcome.LOST, 7)
    assert "container agent" in ended.message
    assert isinstance(settled, ev.HandleSettled)


@pytest.mark.behaviour("5.11")
def test_a_finished_agent_that_cannot_come_back_is_released_with_its_outcome() -> None:
    done = build_ledger(LedgerState.DONE, sandbox_faults=LAST, outcome=Outcome.SUCCESS)
    (released,) = bodies(decide_agent(build_facts(ledger=done, pod=CRASHING)))
    assert isinstance(released, ev.AgentReleased)
    after = replace(done, released=True, pod=None, reason="RestoreFailed", message="why")
    decision = decide_agent(build_facts(ledger=after, pod=None, stale_pods=(CRASHING,)))
    assert decision.rule == "released"
    assert not has(decision, CreatePod)
    assert has(decision, DeletePod)


def test_an_agent_that_never_began_has_failed() -> None:
    fresh = build_ledger(LedgerState.PROVISIONING, turn=None, last_clean_turn=None, sandbox_faults=LAST)
    ended = bodies(decide_agent(build_facts(ledger=fresh, pod=CRASHING)))[0]
    assert isinstance(ended, ev.AgentEnded)
    assert (ended.outcome, ended.reason) == (Outcome.FAILED, "ProvisioningFailed")


@pytest.mark.behaviour("5.12")
def test_what_was_lost_is_tried_again_by_a_later_leader_and_what_was_stopped_is_not() -> None:
    lost = build_ledger(LedgerState.LOST, closed=True, ended_epoch=6, outcome=Outcome.LOST, message="why")
    assert decide_agent(build_facts(ledger=lost, epoch=6)).rule == "closed"
    (again,) = bodies(decide_agent(build_facts(ledger=lost, epoch=7)))
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
    ended, settled = bodies(decide_agent(facts))
    assert isinstance(ended, ev.AgentEnded)
    assert isinstance(settled, ev.HandleSettled)
    assert (ended.outcome, settled.outcome, ended.reason) == (Outcome.LOST, Outcome.LOST, "ParentLost")
    lost = replace(child, state=LedgerState.LOST, closed=True, ended_epoch=6, outcome=Outcome.LOST)
    assert decide_agent(replace(facts, ledger=lost, epoch=7)).rule == "closed"
    (again,) = bodies(decide_agent(replace(facts, ledger=lost, epoch=7, peers={"x": replace(gone, gone=False)})))
    assert isinstance(again, ev.AgentStateChanged)
    assert again.state is LedgerState.SPAWNING


def test_a_finished_agent_keeps_its_outcome_when_its_sandboxes_fail() -> None:
    done = build_ledger(LedgerState.DONE, sandbox_faults=2, outcome=Outcome.SUCCESS)
    decision = decide_agent(build_facts(ledger=done, pod=OVER))
    assert (decision.rule, bodies(decision), has(decision, CreatePod)) == ("held", [], False)
    assert decision.standing is not None
    assert (decision.standing.reason, decision.standing.stalled) == (TOO_MANY_FAILURES, True)
    assert has(decide_agent(build_facts(ledger=replace(done, sandbox_faults=0), pod=OVER)), CreatePod)


def test_an_agent_that_never_began_does_so_when_somebody_decides() -> None:
    since = InboxMessage("m", "prompt", "go on")
    held = build_blocked(TOO_MANY_FAILURES, turn=None, last_clean_turn=None, inbox=(since,))
    (started,) = bodies(decide_agent(build_facts(ledger=held)))
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
    assert decision.actions == (AbortTurn("uid-a-1", ENDED), DeletePod(leaving.name, leaving.uid, "7", STOP_GRACE))
    again = decide_agent(build_facts(object=object_, ledger=ended, pod=replace(leaving, grace=STOP_GRACE)))
    assert again.actions == ()


def test_a_turn_is_aborted_whose_namespace_is_being_deleted() -> None:
    leaving = build_pod(deleting=True, grace=650, deletes_at=NOW + 600, version="7")
    running = build_facts(ledger=build_ledger(turn=build_turn(1)), pod=leaving)
    decision = decide_agent(replace(running, namespace_going=True))
    assert decision.standing is not None
    assert decision.standing.reason == "NamespaceTerminating"
    removal = DeletePod(leaving.name, leaving.uid, "7", STOP_GRACE)
    assert decision.actions == (AbortTurn("uid-a-1", "its namespace is being deleted"), removal)
    assert not has(decide_agent(running), AbortTurn)  # a drain alone leaves the turn its time
