"""At every outside call of a swarm's life the process may die; the end is the same and nothing happens twice."""

import asyncio
from collections import Counter

import pytest

from alineod.domain import events as ev
from alineod.kube.objects import AGENTS, PODS, SWARMS, Json
from alineod.reconcile.prompts import queue_prompt
from tests.unit.reconcile.simulation import NAMESPACE, Died, Simulation

PARTS = 4  # of the calls, so that they can be tried side by side
SETUP = {"sandbox": {"setup": "true"}}
SWARM: Json = {
    "metadata": {"name": "survey", "namespace": NAMESPACE},
    "spec": {
        "defaults": {"harness": {"model": {"provider": "openai", "id": "m"}}},
        "agents": [
            {"name": "lead", "prompt": "plan"},
            {"name": "left", "parent": "lead", "waitFor": ["lead"], "prompt": "part one"},
            {"name": "writer", "parent": "lead", "waitFor": ["left"], "prompt": "report"},
        ],
    },
}

EDITED: Json = {
    **SWARM, "spec": SWARM["spec"] | {"agents": [SWARM["spec"]["agents"][0] | SETUP, *SWARM["spec"]["agents"][1:]]},
}  # fmt: skip


async def _prompt(simulation: Simulation, agent: str, text: str) -> None:
    """As a person does who repeats the call with the same key until it is answered."""
    while True:
        try:
            await queue_prompt(simulation.door, f"{NAMESPACE}/survey-{agent}", text, text)
        except Died:
            await simulation.settle()
        else:
            return


async def live(simulation: Simulation) -> Simulation:
    """A swarm's life: its turns, a turn that is cut off, two sandboxes that come back, an entry that is changed."""
    simulation.gateway.write(SWARMS, SWARM)
    await simulation.settle()
    await _prompt(simulation, "left", "HANG here")
    await simulation.settle()
    simulation.delete_pod("survey-left")
    await simulation.settle()
    simulation.gateway.write(SWARMS, EDITED)
    await simulation.settle()
    await _prompt(simulation, "left", "go on")
    simulation.delete_pod("survey-lead")
    await simulation.settle()
    await _prompt(simulation, "lead", "what was it?")
    await simulation.settle()
    return simulation


def summarise(simulation: Simulation) -> Json:
    """What may not depend on when the process died."""
    agents = simulation.ledger.state.agents.values()
    return {
        "agents": {
            # What a cut turn had begun is told as far as it was heard, and a death may come before that.
            a.alias: (a.state, a.outcome, a.turn and a.turn.number, a.incarnation, a.handle.result.rsplit("\n", 1)[-1])
            for a in agents
        },
        "pods": sorted(pod["metadata"]["name"] for pod in simulation.gateway.read_all(PODS)),
        "objects": sorted(obj["metadata"]["name"] for obj in simulation.gateway.read_all(AGENTS)),
        "phases": {o["metadata"]["name"]: o["status"]["phase"] for o in simulation.gateway.read_all(AGENTS)},
        "sandboxes": {o["metadata"]["name"]: o["spec"].get("sandbox") for o in simulation.gateway.read_all(AGENTS)},
        "asked": sorted(prompt.rsplit("\n", 1)[-1] for _, prompt in simulation.sandboxes.asked),
    }


def check(simulation: Simulation) -> None:
    rows = simulation.stored.rows
    assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
    ids = Counter(turn for turn, _ in simulation.sandboxes.asked)
    assert set(ids.values()) == {1}, f"a prompt reached the model twice: {ids}"
    ends = Counter((row.agent, row.body.turn) for row in rows if isinstance(row.body, TURN_ENDS))
    started = {(row.agent, row.body.turn) for row in rows if isinstance(row.body, ev.AgentTurnStarted)}
    assert set(ends) == started
    assert set(ends.values()) == {1}
    pods = Counter((row.agent, row.body.incarnation) for row in rows if isinstance(row.body, ev.AgentProvisioned))
    assert set(pods.values()) == {1}


TURN_ENDS = (ev.AgentTurnEnded, ev.AgentTurnFailed, ev.AgentTurnInterrupted)


async def test_a_life_without_a_death() -> None:
    simulation = await live(Simulation())
    check(simulation)
    summary = summarise(simulation)
    assert summary["pods"] == ["survey-lead-2", "survey-left-2", "survey-writer-1"]
    assert summary["phases"] == {"survey-lead": "Done", "survey-left": "Done", "survey-writer": "Done"}
    assert summary["sandboxes"] == {"survey-lead": SETUP["sandbox"], "survey-left": None, "survey-writer": None}
    left = simulation.ledger.state.agents[f"{NAMESPACE}/survey-left"]
    assert left.turn is not None
    assert left.turn.number == 3
    cut = [row.body for row in simulation.stored.rows if isinstance(row.body, ev.AgentTurnInterrupted)]
    assert [(body.turn, body.reason) for body in cut] == [(2, "PodGone")]


async def test_nothing_happens_while_nothing_happens() -> None:
    simulation = await live(Simulation())
    calls, rows = simulation.calls, len(simulation.stored.rows)
    simulation.clock.advance(3600)
    simulation.wake_all()
    await simulation.settle()
    assert (simulation.calls, len(simulation.stored.rows)) == (calls, rows)


@pytest.mark.parametrize("part", range(PARTS))
def test_the_process_may_die_at_every_call(part: int) -> None:
    whole = asyncio.run(live(Simulation()))
    expected = summarise(whole)
    assert whole.calls > 100
    failures = []
    for call in range(1 + part, whole.calls + 1, PARTS):
        simulation = asyncio.run(live(Simulation(call)))
        try:
            # On a busy machine one life takes a few calls more than the next; one that was over met no death.
            assert simulation.starts == 2 or simulation.calls < call
            check(simulation)
            assert summarise(simulation) == expected
        except AssertionError as error:
            failures.append(f"call {call}: {error}")
    if failures:
        pytest.fail(f"{len(failures)} of {whole.calls} deaths left traces:\n" + "\n".join(failures[:5]))
