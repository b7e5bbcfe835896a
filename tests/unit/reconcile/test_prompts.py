"""What a prompt is told of its turn, and what is said of a turn whatever became of it and of its agent."""

from collections.abc import Sequence
from typing import Any

import pytest

from alineod.domain import events as ev
from alineod.domain.events import Entry, LedgerState, Outcome, Row
from alineod.errors import Conflict, NotFound
from alineod.kube.objects import AGENTS, SWARMS
from alineod.reconcile.prompts import Result, queue_prompt, read_result
from tests.unit.reconcile.simulation import NAMESPACE, Simulation

KEY = f"{NAMESPACE}/s-a"
MODEL = {"harness": {"model": {"provider": "openai", "id": "m"}}}


async def _started(policy: str = "Settle", prompt: str = "one") -> Simulation:
    simulation = Simulation()
    spec: dict[str, Any] = {"defaults": MODEL, "agents": [{"name": "a", "prompt": prompt}]}
    spec["supervision"] = {"onInterruption": policy}
    simulation.gateway.write(SWARMS, {"metadata": {"name": "s", "namespace": NAMESPACE}, "spec": spec})
    await simulation.settle()
    return simulation


async def _cut(policy: str) -> Simulation:
    """Its first turn was cut off."""
    simulation = await _started(policy, "HANG")
    simulation.kubelets.vanish("s-a")
    await simulation.settle()
    return simulation


async def _prompt(simulation: Simulation, text: str) -> int:
    return (await queue_prompt(simulation.world, KEY, text, f"key of {text}")).turn


async def _read(simulation: Simulation, turn: int) -> Result:
    return await read_result(simulation.world, KEY, turn, 0)


async def _finish(simulation: Simulation, text: str) -> None:
    """The turn that runs ends well, and what follows it has its time."""
    for _, pod in simulation.kubelets.find("s-a"):
        simulation.sandboxes.finish(pod, text)
    await simulation.settle()


async def _delete(simulation: Simulation) -> None:
    uid = simulation.read(AGENTS, "s-a")["metadata"]["uid"]
    await simulation.gateway.delete(AGENTS, NAMESPACE, "s-a", uid=uid)
    await simulation.settle()


async def test_a_decision_about_a_blocked_agent_goes_before_what_waited() -> None:
    simulation = await _started("Ask", "HANG")
    assert await _prompt(simulation, "queued before") == 2
    simulation.kubelets.vanish("s-a")
    await simulation.settle()
    assert simulation.ledger.state.agents[KEY].state is LedgerState.BLOCKED
    assert await _prompt(simulation, "the decision") == 2
    await simulation.settle()
    assert (await _read(simulation, 2)).result.endswith("the decision")
    assert (await _read(simulation, 3)).result == "did: queued before"
    await simulation.drivers.close()


@pytest.mark.parametrize("step", [-3600.0, 3600.0], ids=["back", "ahead"])
async def test_what_is_a_decision_does_not_depend_on_the_clock(step: float) -> None:
    simulation = await _cut("Ask")
    simulation.clock.advance(step)
    await _prompt(simulation, "the decision")
    await simulation.settle()
    assert (await _read(simulation, 2)).result.endswith("the decision")
    await simulation.drivers.close()


async def test_who_waits_for_a_turn_that_is_tried_again_gets_what_came_of_it() -> None:
    simulation = await _cut("Retry")
    assert (await _read(simulation, 1)).outcome is None
    await _finish(simulation, "at last")
    assert (await _read(simulation, 1)).result == "at last"
    assert (await _read(simulation, 2)).result == "at last"
    await simulation.drivers.close()


async def test_a_turn_has_its_own_result_also_when_its_agent_is_gone() -> None:
    simulation = await _started()
    assert await _prompt(simulation, "two") == 2
    await simulation.settle()
    await _delete(simulation)
    assert [(await _read(simulation, turn)).result for turn in (1, 2)] == ["did: one", "did: two"]
    await simulation.drivers.close()


async def test_what_was_accepted_and_is_never_delivered_is_recorded_and_said() -> None:
    simulation = await _started()
    assert await _prompt(simulation, "HANG") == 2
    await simulation.settle()
    assert await _prompt(simulation, "three") == 3
    await _delete(simulation)
    (dropped,) = [row.body for row in simulation.stored.rows if isinstance(row.body, ev.InboxDropped)]
    assert dropped == ev.InboxDropped(ids=["key of three"], reason="Deleted")
    result = await _read(simulation, 3)
    assert (result.turn, result.outcome, result.result) == (3, Outcome.ABORTED, "")
    assert "the Agent object was deleted" in result.error
    await simulation.drivers.close()


async def test_a_prompt_that_is_given_again_after_the_agent_s_end_gets_its_first_answer() -> None:
    simulation = await _started()
    assert await _prompt(simulation, "two") == 2
    await simulation.settle()
    await _delete(simulation)
    assert await _prompt(simulation, "two") == 2
    with pytest.raises(Conflict) as caught:
        await queue_prompt(simulation.world, KEY, "another", "key of two")
    assert caught.value.reason == "IdTaken"
    with pytest.raises(Conflict) as caught:
        await _prompt(simulation, "three")
    assert caught.value.reason == "NotLive"
    await simulation.drivers.close()


async def test_a_prompt_that_meets_the_agent_s_end_is_dropped_and_not_kept_for_later() -> None:
    simulation = await _started()
    append = simulation.ledger.append

    async def end_and_append(entries: Sequence[Entry]) -> list[Row]:
        simulation.ledger.append = append  # type: ignore[method-assign]
        await _delete(simulation)
        return await append(entries)

    simulation.ledger.append = end_and_append  # type: ignore[method-assign, assignment]
    with pytest.raises(Conflict) as caught:
        await _prompt(simulation, "two")
    assert caught.value.reason == "NotLive"
    assert simulation.ledger.state.agents[KEY].inbox == ()
    assert [row.body.ids for row in simulation.stored.rows if isinstance(row.body, ev.InboxDropped)] == [["key of two"]]
    await simulation.drivers.close()


async def test_a_turn_that_will_never_be_is_not_waited_for() -> None:
    simulation = await _started()
    with pytest.raises(NotFound):
        await _read(simulation, 9)
    await simulation.drivers.close()


async def test_a_prompt_that_is_delivered_while_it_is_answered_is_told_the_turn_it_became() -> None:
    simulation = await _started()
    append = simulation.ledger.append

    async def append_and_deliver(entries: Sequence[Entry]) -> list[Row]:
        rows = await append(entries)
        if isinstance(rows[0].body, ev.InboxQueued):
            simulation.ledger.append = append  # type: ignore[method-assign]
            await simulation.settle()
        return rows

    simulation.ledger.append = append_and_deliver  # type: ignore[method-assign, assignment]
    assert await _prompt(simulation, "two") == 2
    assert (await _read(simulation, 2)).result == "did: two"
    await simulation.drivers.close()


async def test_who_waits_for_a_cut_turn_hears_what_survived_when_somebody_has_decided() -> None:
    simulation = await _cut("Ask")
    assert (await _read(simulation, 1)).outcome is None
    await _prompt(simulation, "the decision")
    await simulation.settle()
    result = await _read(simulation, 1)
    assert (result.turn, result.outcome, result.error_kind) == (1, Outcome.FAILED, "interrupted")
    assert "turn 2 was given instead" in result.error
    await simulation.drivers.close()


async def test_a_prompt_is_followed_by_its_key_whatever_is_cut_before_it() -> None:
    simulation = await _started("Retry", "HANG")
    assert await _prompt(simulation, "two") == 2
    simulation.kubelets.vanish("s-a")
    await simulation.settle()
    await _finish(simulation, "at last")
    assert (await _read(simulation, 2)).result == "at last"  # the second attempt at the first turn has that number
    mine = await read_result(simulation.world, KEY, None, 0, "key of two")
    assert (mine.turn, mine.result) == (3, "did: two")
    with pytest.raises(NotFound):
        await read_result(simulation.world, KEY, None, 0, "nobody's")
    await simulation.drivers.close()
