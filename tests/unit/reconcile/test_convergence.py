"""From any mix of a ledger, pods, bridges and a clock a healthy world comes to rest, and rest costs nothing."""

import os

import pytest
from hypothesis import HealthCheck, given, settings

from alineod.kube.objects import AGENTS, PODS
from tests.unit.reconcile.mixes import MIXES, Mix, build_simulation
from tests.unit.reconcile.simulation import Simulation
from tests.unit.reconcile.virtual_time import FakeClock, play

EXAMPLES = int(os.environ.get("ALINEO_EXAMPLES", "60"))
LONG = 3700.0  # s, longer than anything waits
ROUNDS = 5000  # of passes; a bridge that hangs is asked every 2 s
ATTEMPTS = 12  # turns that may follow one another until nothing is due


async def _come_to_rest(simulation: Simulation) -> None:
    """Nothing goes wrong any more: every turn ends, every node is there."""
    for _ in range(ATTEMPTS):
        await simulation.settle(LONG, rounds=ROUNDS)
        running = simulation.kubelets.find_running()
        if not running:
            return
        for pod in running:
            simulation.sandboxes.finish(pod, "done")
    pytest.fail("one turn followed another without end")


async def _check_rest(simulation: Simulation) -> None:
    """Nothing is done, whoever looks and whenever."""
    assert simulation.find_next() is None, f"somebody asks for work at rest: {simulation.wishes}"
    for seconds in (0, 3600):
        before = (simulation.calls, len(simulation.stored.rows), simulation.changes)
        simulation.clock.advance(seconds)
        simulation.wake_all()
        await simulation.settle()
        assert (simulation.calls, len(simulation.stored.rows), simulation.changes) == before


def _check_swarm(simulation: Simulation) -> None:
    """No pod is left that nobody has, and no object that says something else than the ledger."""
    agents = simulation.ledger.state.agents
    held = {agent.pod.uid for agent in agents.values() if agent.pod and not agent.closed and not agent.released}
    assert {pod["metadata"]["uid"] for pod in simulation.gateway.read_all(PODS)} <= held
    for obj in simulation.gateway.read_all(AGENTS):
        agent = agents[f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"]
        assert agent.closed or agent.released or not agent.turn_running
        conditions = {c["type"]: c["status"] for c in obj["status"]["conditions"]}
        assert conditions["Reconciling"] == "False", obj["status"]["conditions"]


@settings(
    max_examples=EXAMPLES, deadline=None, derandomize="ALINEO_EXAMPLES" not in os.environ, database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
@given(MIXES)
def test_any_mix_comes_to_rest_in_a_healthy_world(mix: Mix) -> None:
    async def life(clock: FakeClock) -> None:
        simulation = await build_simulation(mix, clock)
        await _come_to_rest(simulation)
        await _check_rest(simulation)
        _check_swarm(simulation)

    play(life)
