"""Sandboxes of which it is not sure whether they are any good."""

from dataclasses import replace

import pytest

from alineod.domain.actions import Drive, Probe
from alineod.domain.agent_rules import decide_agent
from alineod.domain.causes import End, EndKind
from alineod.domain.ends import NODE_LOST_AFTER, find_deletion, find_end
from alineod.domain.events import LedgerState, Rung
from alineod.domain.facts import AgentFacts, PodFacts, PodPhase
from tests.unit.domain.builders import (
    NOW,
    build_bridge,
    build_facts,
    build_ledger,
    build_pod,
    running,
)  # fmt: skip
from tests.unit.domain.ladder import (
    CRASHING,
    DRAINED,
    LEAVING,
    build_held,
)

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


def test_a_checkpointer_that_ends_again_and_again_is_no_end_of_an_agent_at_work() -> None:
    crashing = replace(CRASHING, agent_running=True, bridge_ready=True)
    assert find_end(build_facts(ledger=running(), pod=crashing)) is None


@pytest.mark.parametrize("over", [False, True])
@pytest.mark.parametrize("said", [None, DRAINED], ids=["a person's doing", "the cluster says why"])
def test_a_pod_that_is_deleted_went_because_of_that_whatever_its_containers_say(over: bool, said: End | None) -> None:
    killed = End(EndKind.DISRUPTION, "ContainerKilled", "exit code 137")
    phase = PodPhase.FAILED if over else PodPhase.RUNNING
    leaving = build_pod(deleting=True, grace=30, phase=phase, container_end=killed, end=said)
    end = find_deletion(leaving)
    assert end is not None
    assert end.reason == (said.reason if said else "PodDeleted")
    if over:
        assert find_end(build_facts(pod=leaving)) == end


def test_who_deletes_a_pod_in_a_turn_reads_how_long_that_may_run() -> None:
    standing = decide_agent(build_facts(ledger=running(), pod=LEAVING)).standing
    assert standing is not None
    assert "turn 1 may run on for sandbox.drainGrace, at most until " in standing.message
    idle = decide_agent(build_facts(pod=LEAVING)).standing
    assert idle is not None
    assert "may run on" not in idle.message


COMING = build_pod(agent_running=False, bridge_ready=False)
NEW = build_ledger(LedgerState.PROVISIONING, turn=None, last_clean_turn=None)
FAILING = build_bridge(ready=False, reason="SetupFailed", message="exit 3")


@pytest.mark.parametrize(
    ("facts", "replaced"),
    [
        (build_facts(ledger=NEW, pod=COMING, bridge=None), True),
        (build_facts(ledger=build_ledger(pod=build_held(rung=Rung.RESTORE)), pod=COMING, bridge=None), True),
        (build_facts(bridge=FAILING), True),
        (build_facts(pod=COMING, bridge=None), True),
        (build_facts(pod=build_pod(agent_running=False, bridge_ready=False, restarts=1), bridge=None), False),
        (build_facts(pod=replace(COMING, container_end=End(EndKind.DISRUPTION, "R", "m")), bridge=None), False),
        (build_facts(ledger=NEW), False),
        (build_facts(bridge=build_bridge(ready=False)), False),
        (build_facts(ledger=running(), bridge=None), False),
    ],
    ids=[
        "never was up",
        "coming back",
        "its setup failed",
        "restored, and its image is not there",
        "was restarted",
        "has just ended",
        "just came up",
        "is not ready for a moment",
        "in a turn",
    ],
)
def test_a_sandbox_that_did_not_come_up_is_made_anew_when_its_spec_is_mended(facts: AgentFacts, replaced: bool) -> None:
    assert find_end(facts) is None
    end = find_end(replace(facts, outdated=True))
    assert (end is not None and end.reason == "SpecChanged" and not end.own_fault) is replaced
