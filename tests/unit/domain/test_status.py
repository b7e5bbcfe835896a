"""Facts → the status a person reads."""

from dataclasses import replace
from typing import Any

import pytest

from alineod.crd.status import AgentStatus, ConditionStatus, ConditionType, Phase, SwarmStatus
from alineod.crd.swarm import SwarmSpec
from alineod.domain.actions import Standing
from alineod.domain.events import LedgerState, Outcome, Rung
from alineod.domain.facts import AgentFacts, SwarmFacts, SwarmObject, Trouble
from alineod.domain.state import Checkpoint, Interruption, Pod, Restored
from alineod.domain.status import PHASES, compute_agent_status, compute_swarm_status
from alineod.wire.turns import TurnState
from tests.unit.domain.builders import (
    RUN,
    build_facts,
    build_ledger,
    build_object,
    build_pod,
    build_run_state,
    build_spec,
    build_turn,
    running,
)  # fmt: skip

READY = Standing("Completed", "fine", ready=True)
CHECKPOINT = Checkpoint(1, 1, "000001-1.tar.zst", "ab", 10, 50.0, remote_ref="k")


def _conditions(facts: AgentFacts, standing: Standing = READY) -> dict[str, tuple[str, str]]:
    status = compute_agent_status(facts, standing, AgentStatus())
    return {str(c.type): (str(c.status), c.reason) for c in status.conditions}


@pytest.mark.behaviour("2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "2.7", "2.8", "2.9")
def test_every_ledger_state_has_its_phase() -> None:
    assert {state: str(phase) for state, phase in PHASES.items()} == {
        "spawning": "Waiting", "provisioning": "Provisioning", "running": "Running", "paused": "Paused",
        "blocked": "Blocked", "done": "Done", "failed": "Failed", "aborted": "Aborted", "lost": "Lost",
    }  # fmt: skip
    assert set(PHASES) == set(LedgerState)


@pytest.mark.behaviour("2.10")
def test_the_outcomes() -> None:
    assert {str(outcome) for outcome in Outcome} == {"success", "failed", "aborted", "lost", "budget-exceeded"}


@pytest.mark.behaviour("2.11", "2.12")
@pytest.mark.parametrize(
    ("standing", "expected"),
    [
        (Standing("R", "", ready=True), ("True", "False", "False")),
        (Standing("R", ""), ("False", "True", "False")),
        (Standing("R", "", stalled=True), ("False", "False", "True")),
    ],
)
def test_exactly_one_of_ready_reconciling_stalled(standing: Standing, expected: tuple[str, str, str]) -> None:
    said = _conditions(build_facts(), standing)
    assert tuple(said[name][0] for name in ("Ready", "Reconciling", "Stalled")) == expected


@pytest.mark.behaviour("2.11")
def test_a_condition_keeps_its_time_until_its_status_changes() -> None:
    first = compute_agent_status(build_facts(), READY, AgentStatus())
    later = compute_agent_status(build_facts(now=2000.0), Standing("Other", "words", ready=True), first)
    ready = {c.type: c for c in later.conditions}[ConditionType.READY]
    assert (ready.reason, ready.last_transition_time) == ("Other", first.conditions[0].last_transition_time)
    turned = compute_agent_status(build_facts(now=2000.0), Standing("Other", "words"), first)
    assert {c.type: c for c in turned.conditions}[ConditionType.READY].last_transition_time == "1970-01-01T00:33:20Z"
    assert all(c.observed_generation == 1 for c in later.conditions)


def test_the_same_facts_later_are_the_same_status() -> None:
    first = compute_agent_status(build_facts(), READY, AgentStatus())
    assert compute_agent_status(build_facts(now=9999.0), READY, first) == first


@pytest.mark.behaviour("2.13")
def test_running_is_true_while_a_turn_is_in_progress() -> None:
    assert _conditions(build_facts(ledger=running()))["Running"] == ("True", "TurnRunning")
    assert _conditions(build_facts())["Running"] == ("False", "TurnEnded")


@pytest.mark.behaviour("2.14")
def test_interrupted_says_which_turn_why_and_what_survived() -> None:
    turn = build_turn(2, state=TurnState.INTERRUPTED, text="half")
    ledger = build_ledger(turn=turn, interruption=Interruption(2, "PodGone", "the pod is gone", survived=4))
    status = compute_agent_status(build_facts(ledger=ledger), READY, AgentStatus())
    said = {c.type: c for c in status.conditions}[ConditionType.INTERRUPTED]
    assert (said.status, said.reason) == (ConditionStatus.TRUE, "PodGone")
    assert said.message == (
        "turn 2 was cut off: the pod is gone; 4 characters of its text survived; the last clean turn is 1"
    )
    assert _conditions(build_facts())["Interrupted"] == ("False", "NotInterrupted")


@pytest.mark.behaviour("2.16", "4.6")
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"checkpoints": (CHECKPOINT,)}, ("True", "Uploaded")),
        ({"checkpoints": ()}, ("False", "Pending")),
        ({"checkpoints": (CHECKPOINT,), "last_clean_turn": 2}, ("False", "Pending")),
        ({"checkpoints": (replace(CHECKPOINT, remote_ref=None, upload_error="refused"),)}, ("False", "UploadFailed")),
    ],
)
def test_checkpointed_is_about_the_newest_clean_turn(change: dict[str, Any], expected: tuple[str, str]) -> None:
    assert _conditions(build_facts(ledger=build_ledger(**change)))["Checkpointed"] == expected


def test_no_bucket_and_no_wish_are_said() -> None:
    assert _conditions(build_facts(has_bucket=False))["Checkpointed"] == ("False", "NoBucket")
    plain = build_object(spec=build_spec(checkpoint=False))
    assert _conditions(build_facts(object=plain))["Checkpointed"] == ("False", "NotRequested")


@pytest.mark.behaviour("2.15")
def test_lost_carries_the_last_error() -> None:
    ledger = build_ledger(LedgerState.LOST, reason="NoCheckpoint", message="all three were damaged", closed=True)
    assert _conditions(build_facts(ledger=ledger))["Lost"] == ("True", "NoCheckpoint")


@pytest.mark.behaviour("2.23")
def test_the_summary_points_and_holds_no_text() -> None:
    ledger = build_ledger(
        checkpoints=(CHECKPOINT,), outcome=Outcome.SUCCESS, pod=Pod("survey-lead-2", "uid-p", 2, Rung.RESTORE),
        restored=Restored(Rung.RESTORE, 2, "checkpoint", 70.0, 1), turn=build_turn(text="SECRET TEXT"),
    )  # fmt: skip
    status = compute_agent_status(build_facts(ledger=ledger), READY, AgentStatus())
    dumped = status.model_dump(mode="json", by_alias=True, exclude_none=True)
    assert dumped["phase"] == "Done"
    assert dumped["sandbox"] == {"pod": "survey-lead-2", "node": "n1", "incarnation": 2, "restarts": 0}
    assert dumped["restore"]["rung"] == "Restore"
    assert dumped["checkpoint"]["remoteRef"] == "k"
    assert "SECRET TEXT" not in str(dumped)


def _swarm(**change: Any) -> SwarmFacts:
    spec = SwarmSpec.parse({"agents": [{"name": "lead", "prompt": "p"}, {"name": "left", "prompt": "p"}]})
    fields: dict[str, Any] = {
        "now": 100.0, "key": RUN, "cluster_uid": "c", "instance": "default",
        "object": SwarmObject("uid-s", 3, spec, ""), "invalid": None, "ledger": build_run_state(),
        "agents": {"a": build_ledger()},
    }  # fmt: skip
    return SwarmFacts(**(fields | change))


@pytest.mark.behaviour("2.17")
@pytest.mark.parametrize(
    ("change", "condition", "expected"),
    [
        ({}, "Interrupted", ("False", "")),
        ({"agents": {"a": build_ledger(interruption=Interruption(1, "r", "m"))}}, "Interrupted", ("True", "lead")),
        ({"agents": {"a": build_ledger(LedgerState.LOST)}}, "Lost", ("True", "lead")),
        ({"replicated": Trouble("NoBucket", "none")}, "LedgerReplicated", ("False", "none")),
        ({}, "LedgerReplicated", ("True", "")),
    ],
)
def test_a_swarm_shows_what_is_true_of_any_agent(
    change: dict[str, Any], condition: str, expected: tuple[str, str]
) -> None:
    status = compute_swarm_status(_swarm(**change), READY, SwarmStatus())
    said = {str(c.type): (str(c.status), c.message) for c in status.conditions}
    assert said[condition] == expected


def test_a_swarm_counts_declared_agents_that_are_not_there_yet() -> None:
    counts = compute_swarm_status(_swarm(), READY, SwarmStatus()).agents
    assert counts is not None
    assert (counts.progress, counts.total, counts.done) == ("1/2", 2, 1)


@pytest.mark.behaviour("2.22")
@pytest.mark.parametrize("state", [LedgerState.FAILED, LedgerState.ABORTED, LedgerState.LOST])
def test_only_agents_that_are_done_count_as_done(state: LedgerState) -> None:
    agents = {"a": build_ledger(), "b": replace(build_ledger(state), key="b")}
    counts = compute_swarm_status(_swarm(agents=agents), READY, SwarmStatus()).agents
    assert counts is not None
    assert counts.progress == "1/2"


@pytest.mark.parametrize(("outdated", "expected"), [(True, ("False", "SpecChanged")), (False, ("True", "UpToDate"))])
def test_a_change_that_waits_for_the_next_sandbox_is_said(outdated: bool, expected: tuple[str, str]) -> None:
    facts = build_facts(pod=build_pod(made_of="digest"), outdated=outdated)
    assert _conditions(facts)["UpToDate"] == expected
    assert "UpToDate" not in _conditions(build_facts())  # nobody knows what it was made from


def test_an_agent_nobody_accepted_yet_waits() -> None:
    status = compute_agent_status(build_facts(ledger=None), Standing("SwarmNotFound", "m"), AgentStatus())
    assert (status.phase, status.observed_generation) == (Phase.WAITING, 1)
