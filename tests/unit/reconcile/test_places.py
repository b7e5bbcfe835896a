"""Who holds a place among those that are brought back: kept by who unpacks, whoever leads, and lost by nobody."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from alineod.domain.gone_rules import WAIT_INTERVAL
from alineod.errors import Unavailable
from alineod.kube.objects import AGENTS, PODS, SWARMS, Json, Ref, Resource
from alineod.reconcile.places import LIMITS, find_holders
from alineod.reconcile.world import Stage
from tests.support.memory_bucket import MemoryBucket
from tests.unit.reconcile.simulation import NAMESPACE, Simulation

AWAY = Unavailable("BucketUnreachable", "the bucket is away")


async def _live(agents: int, bucket: MemoryBucket | None = None) -> Simulation:
    """Agents that have ended a turn and are in the bucket, if there is one."""
    simulation = Simulation(bucket=bucket)
    simulation.kubelets.checkpointers = True
    model = {"harness": {"model": {"provider": "openai", "id": "m"}}, "checkpoint": True}
    entries = [{"name": f"a{number}", "prompt": "p"} for number in range(agents)]
    swarm = {"metadata": {"name": "s", "namespace": NAMESPACE}, "spec": {"defaults": model, "agents": entries}}
    simulation.gateway.write(SWARMS, swarm)
    await simulation.settle()
    return simulation


def _allow(simulation: Simulation, at_once: int) -> None:
    simulation.door = simulation.world = replace(simulation.world, restores_at_once=at_once)


def _lose_all(simulation: Simulation) -> None:
    for agent in simulation.gateway.read_all(AGENTS):
        simulation.delete_pod(agent["metadata"]["name"])


def _read_reasons(simulation: Simulation) -> list[str]:
    ready = [
        next(condition for condition in agent["status"]["conditions"] if condition["type"] == "Ready")
        for agent in simulation.gateway.read_all(AGENTS)
    ]
    return sorted(condition["reason"] for condition in ready)


def _find_back(simulation: Simulation) -> list[str]:
    """The agents that came back by Restore."""
    agents = simulation.ledger.state.agents.values()
    return sorted(a.alias for a in agents if a.restored is not None and a.restored.incarnation == 2)


def _refuse_pods(simulation: Simulation, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Returns those that were asked for, as they come."""
    create, asked = simulation.gateway.create, list[str]()

    async def refuse(kind: Resource, body: Json) -> Json:
        if kind == PODS:
            asked.append(body["metadata"]["name"])
            raise Unavailable("ApiUnavailable", "the API server does not answer")
        return await create(kind, body)

    monkeypatch.setattr(simulation.gateway, "create", refuse)
    return asked


@pytest.mark.behaviour("5.16")
async def test_a_place_for_a_pod_that_was_not_made_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node is lost, no pod can be made, and the node is found again: there is nobody to bring back any more."""
    simulation = await _live(3)
    _allow(simulation, 1)
    with monkeypatch.context() as patch:
        asked = _refuse_pods(simulation, patch)
        simulation.clock.advance(1.0)
        simulation.kubelets.cut_node("n1")
        await simulation.run_for(75)
        assert "s-a0-2" in asked
        simulation.kubelets.heal_node("n1")
        await simulation.run_for(20)
    assert len(find_holders(simulation.world)) == 0
    simulation.delete_pod("s-a2")
    await simulation.settle()
    assert _find_back(simulation) == ["a2"]


async def test_a_place_for_a_pod_that_went_before_it_was_recorded_is_given_back() -> None:
    simulation = await _live(2)
    _allow(simulation, 1)
    _lose_all(simulation)
    simulation.ledger.fail(AWAY, commits=False)
    for _ in range(3):
        await simulation.step()
    assert len(find_holders(simulation.world)) == 1
    simulation.delete_pod("s-a0")
    assert len(find_holders(simulation.world)) == 0


@pytest.mark.behaviour("5.16", "5.17")
@pytest.mark.parametrize("replaced", [False, True])
async def test_those_who_waited_for_the_bucket_are_not_brought_back_all_at_once(*, replaced: bool) -> None:
    bucket = MemoryBucket()
    simulation = await _live(5, bucket)
    _allow(simulation, 2)
    bucket.failure = AWAY
    _lose_all(simulation)
    await simulation.run_for(30)
    assert _read_reasons(simulation) == ["RestoreWaiting"] * 5
    assert len(find_holders(simulation.world)) == 0
    if replaced:
        await simulation.replace_leader()
        _allow(simulation, 2)
    bucket.failure, simulation.kubelets.slow = None, True
    await simulation.run_for(30)
    assert len(simulation.kubelets.unpacking) == 2
    assert _read_reasons(simulation).count("WaitingForPlace") == 3
    simulation.kubelets.slow = False
    await simulation.settle()
    assert _find_back(simulation) == ["a0", "a1", "a2", "a3", "a4"]


@pytest.mark.behaviour("5.16")
async def test_a_new_leader_counts_those_who_unpack() -> None:
    simulation = await _live(5, MemoryBucket())
    _allow(simulation, 2)
    simulation.kubelets.slow = True
    _lose_all(simulation)
    await simulation.run_for(10)
    assert len(simulation.kubelets.unpacking) == 2
    await simulation.replace_leader()
    _allow(simulation, 2)
    await simulation.run_for(10)
    assert len(simulation.kubelets.unpacking) == 2
    assert _read_reasons(simulation).count("WaitingForPlace") == 3
    simulation.kubelets.slow = False
    await simulation.settle()
    assert _find_back(simulation) == ["a0", "a1", "a2", "a3", "a4"]


HELD = Ref(PODS, NAMESPACE, "s-a0-2")


def delete(simulation: Simulation) -> None:
    """After five minutes the cluster deletes the pods of a silent node; nobody confirms it."""
    simulation.gateway.objects.end(HELD, None)


def say_lost(simulation: Simulation) -> None:
    _write(simulation, conditions=[{"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"},
                                   {"type": "ContainersReady", "status": "True"}])  # fmt: skip


def end_without_a_word(simulation: Simulation) -> None:
    _write(simulation, containerStatuses=[{"name": "agent", "restartCount": 0, "state": {"running": {}}}])


def say_nothing(simulation: Simulation) -> None:
    simulation.clock.advance(LIMITS[Stage.TOLD])


def _write(simulation: Simulation, **status: Any) -> None:
    simulation.gateway.write_status(HELD, {"phase": "Pending", **status})


@pytest.mark.behaviour("5.16", "5.17")
@pytest.mark.parametrize("happen", [delete, say_lost, end_without_a_word, say_nothing])
async def test_a_pod_that_does_not_come_on_keeps_nobody_out(happen: Callable[[Simulation], None]) -> None:
    """It unpacks on a node that is lost."""
    simulation = await _live(2, MemoryBucket())
    _allow(simulation, 1)
    _lose_all(simulation)
    simulation.kubelets.slow = True
    await simulation.run_for(5)
    simulation.kubelets.cut_node("n1")
    simulation.kubelets.slow = False
    await simulation.run_for(5)
    assert "WaitingForPlace" in _read_reasons(simulation)
    happen(simulation)
    await simulation.run_for(10)
    assert _find_back(simulation) == ["a1"]


async def test_who_waits_for_a_place_is_looked_at_when_one_is_given_back() -> None:
    simulation = await _live(12)
    _allow(simulation, 2)
    _lose_all(simulation)
    await simulation.settle(patience=WAIT_INTERVAL / 2)
    assert len(_find_back(simulation)) == 12
    assert len(simulation.world.term.gone) == 12  # each was asked for once
    assert not simulation.world.term.waiting
