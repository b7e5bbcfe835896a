"""A turn is cut that a former leader had heard of, or of which nobody hears any more: what is known is recorded."""

import asyncio

import pytest

from alineod.domain import events as ev
from alineod.kube.objects import AGENTS, SWARMS
from alineod.reconcile.groups import LINGER
from alineod.reconcile.prompts import queue_prompt
from alineod.wire.turns import Usage
from tests.unit.reconcile.sandboxes import Sandbox
from tests.unit.reconcile.simulation import NAMESPACE, Simulation

KEY = f"{NAMESPACE}/s-a"
SWARM = {
    "metadata": {"name": "s", "namespace": NAMESPACE},
    "spec": {
        "defaults": {"harness": {"model": {"provider": "openai", "id": "m"}}},
        "agents": [{"name": "a", "prompt": "begin"}],
    },
}
SAID = {"role": "assistant", "text": "let me see", "usage": {"inputTokens": 40, "outputTokens": 2}}


async def _in_a_turn() -> tuple[Simulation, Sandbox]:
    """One clean turn, then one that hangs in a tool after it has said and used something; all of it is recorded."""
    simulation = Simulation()
    simulation.gateway.write(SWARMS, SWARM)
    await _rest(simulation)
    await queue_prompt(simulation.world, KEY, "HANG", "k")
    await _rest(simulation)
    (sandbox,) = simulation.sandboxes.pods.values()
    sandbox.write(2, "x", "message", SAID)
    await _rest(simulation)
    assert simulation.ledger.state.agents[KEY].journal_seq == len(sandbox.records)
    return simulation, sandbox


async def _rest(simulation: Simulation) -> None:
    await simulation.settle()
    await asyncio.sleep(2 * LINGER)
    await simulation.settle()


@pytest.mark.behaviour("3.4", "11.10")
@pytest.mark.parametrize("end", ["pod", "agent", "swarm"])
@pytest.mark.parametrize("replaced", [True, False])
async def test_what_a_turn_had_said_begun_and_used_stands_in_its_interruption(end: str, replaced: bool) -> None:
    simulation, sandbox = await _in_a_turn()
    before = simulation.ledger.state.agents[KEY].usage
    sandbox.cut_off = True  # nothing more is heard of it
    if replaced:
        await simulation.replace_leader()
    if end == "pod":
        simulation.delete_pod("s-a")
    else:
        kind, name = (AGENTS, "s-a") if end == "agent" else (SWARMS, "s")
        uid = simulation.read(kind, name)["metadata"]["uid"]
        await simulation.gateway.delete(kind, NAMESPACE, name, uid=uid)
    await simulation.settle()
    (cut,) = [row.body for row in simulation.stored.rows if isinstance(row.body, ev.AgentTurnInterrupted)]
    assert (cut.turn, cut.text, cut.tools) == (2, "let me see", ["bash"])
    handle = simulation.ledger.state.agents[KEY].handle
    assert (handle.turn, handle.result) == (2, "let me see")
    assert cut.usage == Usage(input_tokens=40, output_tokens=2)
    assert simulation.ledger.state.agents[KEY].usage.input_tokens == before.input_tokens + 40
    await simulation.drivers.close()
