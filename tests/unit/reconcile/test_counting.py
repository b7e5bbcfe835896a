"""A swarm's status counts the ledger on, but agents that report do not keep its passes going."""

from typing import Any

import pytest

from alineod.domain import events as ev
from alineod.domain.events import Entry
from alineod.domain.facts import Trouble
from alineod.kube.objects import SWARMS, Json, Ref
from alineod.reconcile.passes import COUNT_EVERY, run_pass
from alineod.reconcile.wake import compute_wakes, find_counting
from tests.unit.reconcile.simulation import NAMESPACE, Simulation

SWARM: Json = {
    "metadata": {"name": "s", "namespace": NAMESPACE},
    "spec": {"agents": [{"name": "a", "prompt": "p", "harness": {"model": {"provider": "openai", "id": "m"}}}]},
}
REF = Ref(SWARMS, NAMESPACE, "s")


@pytest.fixture
async def simulation() -> Simulation:
    made = Simulation()
    made.gateway.write(SWARMS, SWARM)
    await made.settle()
    made.clock.advance(COUNT_EVERY)
    await report(made, 0)
    await run_pass(made.world, REF)
    return made


async def report(simulation: Simulation, number: int) -> int:
    """An agent says something, which changes nothing but the ledger; returns its seq."""
    body = ev.HarnessEvent(type="message", turn=1, incarnation=1, seq=1000 + number, data={})
    entry = Entry(id=f"late/{number}", run=f"{NAMESPACE}/s", agent=f"{NAMESPACE}/s-a", body=body)
    [row] = await simulation.ledger.append([entry])
    return row.seq


def read_seq(simulation: Simulation) -> int:
    return int(simulation.read(SWARMS, "s")["status"]["ledger"]["seq"])


async def test_events_alone_are_counted_once_in_a_while(simulation: Simulation) -> None:
    before = read_seq(simulation)
    simulation.clock.advance(COUNT_EVERY - 1)
    last = await report(simulation, 1)
    assert await run_pass(simulation.world, REF) == 1.0
    assert read_seq(simulation) == before
    simulation.clock.advance(1.0)
    await run_pass(simulation.world, REF)
    assert read_seq(simulation) == last


async def test_whatever_else_changes_is_shown_at_once_with_the_count(simulation: Simulation) -> None:
    last = await report(simulation, 1)
    simulation.world.term.ledger_trouble = Trouble("BucketUnreachable", "away")
    await run_pass(simulation.world, REF)
    assert read_seq(simulation) == last


async def test_every_event_has_its_swarm_counted_after_a_while(simulation: Simulation) -> None:
    await report(simulation, 1)
    [row] = await simulation.ledger.read(after=simulation.ledger.acknowledged_seq - 1)
    assert compute_wakes([row], simulation.ledger.state) == set()  # it is no news to anybody
    assert find_counting([row, row]) == {REF}


async def test_agents_that_report_do_not_keep_the_passes_of_their_swarm_going(
    simulation: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between any two passes somebody has reported."""
    passes, look = 0, simulation._look

    async def look_and_report(ref: Ref) -> Any:
        nonlocal passes
        again = await look(ref)
        if ref.resource is SWARMS:
            passes += 1
            await report(simulation, passes)
        return again

    monkeypatch.setattr(simulation, "_look", look_and_report)
    await report(simulation, 999)
    simulation.clock.advance(COUNT_EVERY)
    simulation.wake(REF)
    await simulation.settle()
    assert passes == 2  # one that counts, and one that its write has woken
