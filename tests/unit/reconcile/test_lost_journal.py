"""A sandbox that has not the journal any more that was read: what was heard is recorded, and the agent goes on."""

import asyncio

import pytest

from alineod.domain import events as ev
from alineod.domain.events import LedgerState
from alineod.domain.facts import PodFacts
from alineod.errors import Conflict
from alineod.kube.objects import AGENTS, SWARMS
from alineod.reconcile.groups import LINGER
from alineod.reconcile.prompts import queue_prompt
from alineod.wire.turns import TurnAccepted, TurnRequest
from tests.unit.reconcile.sandboxes import Sandboxes
from tests.unit.reconcile.simulation import NAMESPACE, Simulation

KEY = f"{NAMESPACE}/s-a"
SWARM = {
    "metadata": {"name": "s", "namespace": NAMESPACE},
    "spec": {
        "defaults": {"harness": {"model": {"provider": "openai", "id": "m"}}},
        "agents": [{"name": "a", "prompt": "HANG"}],
    },
}


@pytest.mark.behaviour("3.5", "3.18")
async def test_a_turn_whose_journal_is_gone_is_interrupted_and_the_next_one_runs() -> None:
    simulation = Simulation()
    simulation.gateway.write(SWARMS, SWARM)
    await simulation.settle()
    await asyncio.sleep(2 * LINGER)
    await simulation.settle()
    for sandbox in simulation.sandboxes.pods.values():
        sandbox.forget()
    await simulation.replace_leader()
    await simulation.settle()
    await asyncio.sleep(2 * LINGER)
    await simulation.settle()
    bodies = [row.body for row in simulation.stored.rows]
    (cut,) = [body for body in bodies if isinstance(body, ev.AgentTurnInterrupted)]
    assert (cut.turn, cut.reason, cut.tools) == (1, "JournalLost", ["bash"])
    (lost,) = [body.data for body in bodies if isinstance(body, ev.HarnessEvent) and body.type == "journal.lost"]
    assert (lost["from"], lost["to"]) == (1, 2)
    said = {c["type"]: c for c in simulation.read(AGENTS, "s-a")["status"]["conditions"]}["Interrupted"]
    assert (said["status"], said["reason"]) == ("True", "JournalLost")
    await queue_prompt(simulation.world, KEY, "go on", "k")
    await simulation.settle()
    assert [turn_id.rpartition("-")[2] for turn_id, _ in simulation.sandboxes.asked] == ["1", "2"]
    assert simulation.ledger.state.agents[KEY].last_clean_turn == 2
    await simulation.drivers.close()


class Elsewhere(Sandboxes):
    """Bridges that have used the number of the next turn for something else."""

    async def start_turn(self, pod: PodFacts, token: str, request: TurnRequest) -> TurnAccepted:
        if pod.incarnation == 1 and request.turn == 2:
            raise Conflict("OtherPrompt", "turn 2 was given here with another prompt")
        return await super().start_turn(pod, token, request)


@pytest.mark.behaviour("3.5")
async def test_a_sandbox_with_a_past_that_the_ledger_does_not_know_is_given_up() -> None:
    simulation = Simulation()
    simulation.gateway.write(SWARMS, {**SWARM, "spec": {**SWARM["spec"], "agents": [{"name": "a", "prompt": "one"}]}})
    await simulation.settle()
    simulation.sandboxes = Elsewhere(**vars(simulation.sandboxes))
    await simulation.replace_leader()
    await queue_prompt(simulation.door, KEY, "two", "two")
    await simulation.settle()
    await queue_prompt(simulation.door, KEY, "three", "three")
    await simulation.settle()
    agent = simulation.ledger.state.agents[KEY]
    (cut,) = [row.body for row in simulation.stored.rows if isinstance(row.body, ev.AgentTurnInterrupted)]
    assert (cut.turn, cut.reason, cut.outside) == (2, "OtherPrompt", True)
    assert (agent.incarnation, agent.turn and agent.turn.number, agent.state) == (2, 3, LedgerState.DONE)
