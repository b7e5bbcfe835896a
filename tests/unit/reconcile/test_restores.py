"""How many agents are brought back at the same time."""

from dataclasses import replace

import pytest

from alineod.kube.objects import AGENTS, PODS, SWARMS, Json
from tests.unit.reconcile.simulation import NAMESPACE, Simulation

SWARM: Json = {
    "metadata": {"name": "survey", "namespace": NAMESPACE},
    "spec": {
        "defaults": {"harness": {"model": {"provider": "openai", "id": "m"}}},
        "agents": [{"name": f"a{number}", "prompt": "p"} for number in range(5)],
    },
}


@pytest.mark.behaviour("5.16")
async def test_no_more_than_the_release_allows_and_in_the_end_all() -> None:
    simulation = Simulation()
    simulation.world = replace(simulation.world, restores_at_once=2)
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
