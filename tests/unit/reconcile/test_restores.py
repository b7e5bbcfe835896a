"""How many agents are brought back at the same time, what they wait for, and what they come back with."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from alineod.domain import events as ev
from alineod.domain.announce import compute_announcement
from alineod.errors import Unavailable
from alineod.kube.objects import AGENTS, PODS, SWARMS, Json, Ref
from alineod.reconcile.prompts import queue_prompt
from tests.support.memory_bucket import MemoryBucket
from tests.unit.reconcile.simulation import NAMESPACE, Simulation

SWARM: Json = {
    "metadata": {"name": "survey", "namespace": NAMESPACE},
    "spec": {
        "defaults": {"harness": {"model": {"provider": "openai", "id": "m"}}},
        "agents": [{"name": f"a{number}", "prompt": "p"} for number in range(5)],
    },
}


def _allow(simulation: Simulation, at_once: int) -> None:
    simulation.door = simulation.world = replace(simulation.world, restores_at_once=at_once)


@pytest.mark.behaviour("5.16")
async def test_no_more_than_the_release_allows_and_in_the_end_all() -> None:
    simulation = Simulation()
    _allow(simulation, 2)
    simulation.gateway.write(SWARMS, SWARM)
    await simulation.settle()
    for number in range(5):
        simulation.delete_pod(f"survey-a{number}")
    most = 0
    for _ in range(60):
        await simulation.step()
        made = [pod for pod in simulation.gateway.read_all(PODS) if pod["metadata"]["name"].endswith("-2")]
        back = [agent for agent in simulation.gateway.read_all(AGENTS) if agent["status"].get("restore")]
        most = max(most, len(made) - len(back))
    assert most == 2
    assert len(back) == 5


def build_unscheduled(pod: Json) -> Json:
    said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes are available"}
    return {"phase": "Pending", "conditions": [said]}


def build_without_image(pod: Json) -> Json:
    waiting = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "agent"'}
    return {"phase": "Pending", "initContainerStatuses": [{"name": "restore", "state": {"waiting": waiting}}]}


def build_without_secret(pod: Json) -> Json:
    waiting = {"reason": "CreateContainerConfigError", "message": 'secret "s" not found'}
    return {"phase": "Pending", "containerStatuses": [{"name": "agent", "state": {"waiting": waiting}}]}


async def _lose_both(simulation: Simulation) -> None:
    _allow(simulation, 1)
    for name in ("a0", "a1"):
        simulation.delete_pod(f"survey-{name}")


def _read_ready(simulation: Simulation, name: str) -> Json:
    conditions: list[Json] = simulation.read(AGENTS, f"survey-{name}")["status"]["conditions"]
    return next(condition for condition in conditions if condition["type"] == "Ready")


def _is_back(simulation: Simulation, name: str) -> bool:
    agent = simulation.ledger.state.agents[f"{NAMESPACE}/survey-{name}"]
    return agent.restored is not None and agent.restored.incarnation == 2


@pytest.mark.behaviour("5.17")
@pytest.mark.parametrize(
    ("build", "reason", "words"),
    [
        (build_unscheduled, "Unschedulable", "0/2 nodes are available"),
        (build_without_image, "ImagePullBackOff", "container restore"),
        (build_without_secret, "CreateContainerConfigError", 'secret "s" not found'),
    ],
)
async def test_who_waits_for_something_outside_says_so_and_gives_its_place(
    build: Callable[[Json], Json], reason: str, words: str
) -> None:
    simulation = Simulation()
    simulation.gateway.write(SWARMS, SWARM)
    await simulation.settle()
    await _lose_both(simulation)
    held = Ref(PODS, NAMESPACE, "survey-a0-2")
    while not [pod for pod in simulation.gateway.read_all(PODS) if pod["metadata"]["name"] == held.name]:
        await simulation.step()
    raw = simulation.gateway.objects.read(held)
    elsewhere = {**raw, "spec": {**raw["spec"], "nodeName": "no node of the simulation"}}
    simulation.gateway.objects.replace(held, {**elsewhere, "status": build(raw)})
    await simulation.settle()
    assert _is_back(simulation, "a1")
    assert not _is_back(simulation, "a0")
    said = _read_ready(simulation, "a0")
    assert (said["status"], said["reason"]) == ("False", reason)
    assert words in said["message"]
    simulation.gateway.objects.replace(held, raw)
    await simulation.settle()
    assert _is_back(simulation, "a0")


@pytest.mark.behaviour("4.25", "5.17")
async def test_who_waits_for_the_bucket_gives_its_place_and_is_never_started_blank() -> None:
    bucket = MemoryBucket()
    simulation = Simulation(bucket=bucket)
    simulation.kubelets.checkpointers = True
    first, *others = SWARM["spec"]["agents"]
    agents = [{**first, "checkpoint": True}, *others]
    simulation.gateway.write(SWARMS, {**SWARM, "spec": {**SWARM["spec"], "agents": agents}})
    await simulation.settle()
    bucket.failure = Unavailable("BucketUnreachable", "the bucket is away")
    await _lose_both(simulation)
    await simulation.run_for(60)
    assert _is_back(simulation, "a1")
    assert not _is_back(simulation, "a0")
    assert _read_ready(simulation, "a0")["reason"] == "RestoreWaiting"
    bucket.failure = None
    await simulation.settle()
    restored = simulation.read(AGENTS, "survey-a0")["status"]["restore"]
    assert (restored["rung"], restored["turn"]) == ("Restore", 1)


async def _with_two_checkpoints(bucket: MemoryBucket) -> Simulation:
    simulation = Simulation(bucket=bucket)
    simulation.kubelets.checkpointers = True
    agents = [{"name": "a0", "prompt": "p", "checkpoint": True}]
    simulation.gateway.write(SWARMS, {**SWARM, "spec": {**SWARM["spec"], "agents": agents}})
    await simulation.settle()
    await queue_prompt(simulation.world, f"{NAMESPACE}/survey-a0", "go on", "k")
    await simulation.settle()
    return simulation


@pytest.mark.behaviour("4.16", "4.22", "4.24")
@pytest.mark.parametrize(
    ("damaged", "turn", "came"),
    [((2,), 1, "with its conversation up to turn 1"), ((1, 2), None, "blank")],
)
async def test_damaged_checkpoints_are_passed_over_and_that_is_said_loudly(
    damaged: tuple[int, ...], turn: int | None, came: str
) -> None:
    bucket = MemoryBucket()
    simulation = await _with_two_checkpoints(bucket)
    for stored in list(bucket.list("")):
        if any(f"/{number:06d}-" in stored.key for number in damaged):
            bucket.put(stored.key, b"rotten")
    simulation.delete_pod("survey-a0")
    await simulation.settle()
    agent = simulation.ledger.state.agents[f"{NAMESPACE}/survey-a0"]
    assert agent.restored is not None
    assert agent.restored.checkpoint_turn == turn
    assert [one.checkpoint.turn for one in agent.set_aside] == list(damaged)
    (row,) = [row for row in simulation.stored.rows if isinstance(row.body, ev.AgentRestored)]
    said = compute_announcement(row)
    assert said is not None
    assert said.warning
    assert came in said.note
    assert "the checkpoint of turn 2 could not be used: damaged" in said.note
    conditions: list[Json] = simulation.read(AGENTS, "survey-a0")["status"]["conditions"]
    (cut,) = [condition for condition in conditions if condition["type"] == "Interrupted"]
    assert (cut["status"], cut["reason"]) == ("True", "CleanTurnLost")
    assert "its checkpoint could not be used (damaged)" in cut["message"]
