"""Agents that a person applies by themselves: before their swarm, in a circle, under names that are taken."""

import pytest

from alineod.domain import events as ev
from alineod.domain.events import Row
from alineod.domain.state import State
from alineod.kube.objects import AGENTS, EVENTS, PODS, SWARMS, Json, Ref
from alineod.kube.store import Store
from alineod.reconcile.wake import wake_all
from tests.unit.reconcile.simulation import NAMESPACE, Simulation

MODEL: Json = {"harness": {"model": {"provider": "openai", "id": "m"}}}


def _agent(name: str, *waits: str) -> Json:
    wait: Json = {"waitFor": list(waits)} if waits else {}
    return {
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"swarm": "survey", "prompt": "p"} | MODEL | wait,
    }


def _swarm() -> Json:
    return {"metadata": {"name": "survey", "namespace": NAMESPACE}, "spec": {"agents": []}}


def _stalled(simulation: Simulation, name: str) -> tuple[str, str]:
    conditions = simulation.read(AGENTS, name)["status"]["conditions"]
    found = next(c for c in conditions if c["type"] == "Stalled")
    return (found["reason"], found["message"]) if found["status"] == "True" else ("", "")


def test_the_start_of_a_swarm_wakes_agents_that_were_there_before_it() -> None:
    store, woken = Store(), set[Ref]()
    store.put(AGENTS, _agent("early"))
    body = ev.RunStarted(uid="u", cluster_uid="c", instance="i")
    started = Row(seq=1, time=1.0, id="s", run=f"{NAMESPACE}/survey", agent=None, body=body, prev="", hash="")
    wake_all([started], State(), store, woken.add)
    assert Ref(AGENTS, NAMESPACE, "early") in woken


@pytest.mark.behaviour("6.4")
async def test_agents_that_wait_in_a_circle_say_so_with_its_path() -> None:
    simulation = Simulation()
    for agent in (_agent("a", "b"), _agent("b", "c", "lone"), _agent("c", "a"), _agent("lone"), _agent("after", "a")):
        simulation.gateway.write(AGENTS, agent)
    simulation.gateway.write(SWARMS, _swarm())
    await simulation.settle()
    for name in ("a", "b", "c"):
        reason, message = _stalled(simulation, name)
        assert reason == "WaitCycle"
        assert "a waits for b waits for c waits for a" in message
    assert _stalled(simulation, "after") == ("", "")
    assert simulation.read(AGENTS, "lone")["status"]["phase"] == "Done"


@pytest.mark.behaviour("10.11")
async def test_a_pod_of_somebody_else_is_left_alone_and_named() -> None:
    simulation = Simulation()
    metadata = {"name": "a-1", "namespace": NAMESPACE, "labels": {"alineo.dev/agent": "other"}}
    simulation.gateway.write(PODS, {"metadata": metadata, "spec": {}})
    simulation.gateway.write(AGENTS, _agent("a"))
    simulation.gateway.write(SWARMS, _swarm())
    await simulation.settle()
    reason, message = _stalled(simulation, "a")
    assert reason == "PodNameTaken"
    assert "a-1" in message
    assert simulation.read(PODS, "a-1")["metadata"]["labels"] == {"alineo.dev/agent": "other"}


@pytest.mark.behaviour("10.6")
async def test_a_swarm_of_another_release_is_left_alone_and_the_release_says_so_once() -> None:
    simulation = Simulation()
    simulation.gateway.write(SWARMS, _swarm())
    simulation.gateway.write_status(Ref(SWARMS, NAMESPACE, "survey"), {"instance": "second"})
    await simulation.settle()
    simulation.wake_all()
    await simulation.settle()
    (told,) = simulation.gateway.read_all(EVENTS)
    assert told["reason"] == "LeftAlone"
    assert "belongs to the release second" in told["note"]
    assert simulation.read(SWARMS, "survey")["status"] == {"instance": "second"}
    assert not simulation.ledger.state.runs
