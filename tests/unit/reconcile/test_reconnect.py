"""Who is waited for at the beginning of a term, and what counts as an answer."""

from dataclasses import replace
from typing import Any

import pytest

from alineod.domain.agent_rules import decide_agent
from alineod.domain.events import LedgerState
from alineod.domain.facts import Trouble
from alineod.domain.state import State
from alineod.errors import Conflict, Unavailable
from alineod.kube.objects import AGENTS, PODS, SWARMS, Ref
from alineod.reconcile import passes
from alineod.reconcile.passes import run_pass
from alineod.reconcile.reconnect import Progress, Reconnection, find_known
from tests.unit.domain.builders import NOW, build_bridge, build_facts, build_ledger, build_pod, running
from tests.unit.reconcile.simulation import NAMESPACE, Simulation
from tests.unit.reconcile.test_restores import SWARM

KEY = f"{NAMESPACE}/survey-a0"


def test_those_with_a_sandbox_that_have_not_ended_are_waited_for() -> None:
    agents = {
        "done": build_ledger(),
        "paused": build_ledger(LedgerState.PAUSED),
        "blocked": build_ledger(LedgerState.BLOCKED),
        "held": build_ledger(LedgerState.SPAWNING, pod=None),
        "provisioning": build_ledger(LedgerState.PROVISIONING, pod=None),
        "lost": build_ledger(LedgerState.LOST, closed=True),
        "released": build_ledger(released=True, pod=None),
    }
    state = State(agents={key: replace(agent, key=key) for key, agent in agents.items()})
    assert find_known(state) == {"done", "paused", "blocked"}


@pytest.mark.parametrize(
    ("facts", "rule", "answered"),
    [
        ({"bridge": None}, "probe", False),  # it was not asked before
        ({"bridge": None, "tries": 1}, "probe", True),  # this was the second try
        ({"bridge": None, "tries": 1, "asked_at": NOW}, "probe", False),  # the second one is still to come
        ({"bridge": None, "tries": 9}, "probe", True),
        ({"bridge": None, "pod": build_pod(node_lost_since=900.0)}, "probe", True),
        ({"bridge": build_bridge(ready=False, reason="SetupRunning")}, "probe", True),
        ({"stale_pods": (build_pod(name="old"),)}, "stale_pods", False),
        ({}, "reattach", True),
        ({"reattached": True, "ledger": running()}, "turn_running", True),
        ({"pod": None}, "pod_gone", True),
        ({"pod": None, "restores_left": 0}, "wait_for_place", True),
        ({"pod": build_pod(agent_running=False)}, "pod_coming", True),
        ({"invalid": Trouble("InvalidHarness", "m")}, "invalid", True),
    ],
)
def test_an_answer_is_all_but_a_reattach_that_is_still_tried(facts: dict[str, Any], rule: str, answered: bool) -> None:
    decision = decide_agent(build_facts(**{"reattached": False} | facts))
    assert (decision.rule, decision.answers) == (rule, answered)
    assert decision.queues is (rule == "wait_for_place")
    assert decision.back is (rule == "reattach")


def test_each_is_counted_once_and_strangers_are_not() -> None:
    reconnection = Reconnection()
    reconnection.begin({"a", "b"})
    for key in ("a", "a", "stranger"):
        reconnection.answer(key)
    assert (reconnection.compute_progress(), reconnection.read_waiting()) == (Progress(1, 2), ["b"])
    assert not reconnection.complete.is_set()
    reconnection.answer("b")
    assert reconnection.complete.is_set()


@pytest.fixture
async def simulation() -> Simulation:
    simulation = Simulation()
    simulation.gateway.write(SWARMS, SWARM)
    await simulation.settle()
    simulation.world.term.reconnection.begin({KEY})
    return simulation


@pytest.mark.parametrize(
    ("error", "answered"),
    [(Unavailable("NotAcknowledged", "m"), True), (ValueError("a bug"), True), (Conflict("Changed", "m"), False)],
)
async def test_a_pass_that_fails_is_an_answer_but_for_a_conflict(
    simulation: Simulation, monkeypatch: pytest.MonkeyPatch, error: Exception, answered: bool
) -> None:
    async def fail(*args: object) -> None:
        raise error

    monkeypatch.setattr(passes, "gather_agent", fail)
    with pytest.raises(type(error)):
        await run_pass(simulation.world, Ref(AGENTS, *KEY.split("/")))
    assert simulation.world.term.reconnection.complete.is_set() is answered


async def test_an_agent_that_went_meanwhile_is_waited_for_no_more(simulation: Simulation) -> None:
    agent = simulation.read(AGENTS, "survey-a0")["metadata"]
    await simulation.gateway.delete(AGENTS, NAMESPACE, agent["name"], uid=agent["uid"])
    await simulation.step()
    assert simulation.world.term.reconnection.complete.is_set()


async def test_a_pod_that_is_gone_is_answered_for_by_the_next_one(simulation: Simulation) -> None:
    simulation.delete_pod("survey-a0")
    await run_pass(simulation.world, Ref(AGENTS, *KEY.split("/")))
    assert simulation.world.term.reconnection.complete.is_set()
    assert simulation.read(PODS, "survey-a0-2")
