"""What the metrics say of agents that come back, of those that do not, and of their turns."""

from dataclasses import replace

import pytest

from alineod.domain import events as ev
from alineod.domain.events import AnyBody, Outcome, Row, Rung
from alineod.kube.objects import PODS, SWARMS, Ref
from alineod.metrics import Metrics
from alineod.podspec.observe import parse_pod
from alineod.reconcile.count import OTHER, count_rows, show_states
from alineod.wire.archives import RestoreReport
from alineod.wire.base import encode
from tests.unit.app.leading import Hanging, Leading
from tests.unit.reconcile.simulation import NAMESPACE, Simulation, build_running
from tests.unit.reconcile.test_restores import SWARM


def count(*bodies: AnyBody) -> Metrics:
    metrics = Metrics()
    rows = [
        Row(seq=seq, time=0.0, id=str(seq), run="r/s", agent="r/s-a", body=body, prev="", hash="")
        for seq, body in enumerate(bodies)
    ]
    count_rows(rows, metrics)
    return metrics


def read(metrics: Metrics, name: str, **labels: str) -> float:
    return metrics.registry.get_sample_value(f"alineod_{name}", labels) or 0.0


async def live() -> Simulation:
    simulation = Simulation()
    simulation.gateway.write(SWARMS, SWARM)
    await simulation.settle()
    return simulation


@pytest.mark.behaviour("5.3")
async def test_each_rung_that_held_is_counted() -> None:
    simulation, metrics = await live(), Metrics()
    simulation.ledger.subscribe(lambda rows: count_rows(rows, metrics))
    simulation.delete_pod("survey-a0")
    simulation.delete_pod("survey-a1")
    raw = simulation.read(PODS, "survey-a2-1")
    status = build_running(parse_pod(raw), encode(RestoreReport(start="fresh")).decode())
    status["containerStatuses"][0]["restartCount"] = 1
    simulation.gateway.write_status(Ref(PODS, NAMESPACE, "survey-a2-1"), status)
    await simulation.settle()
    counts = {rung: read(metrics, "agent_returns_total", rung=str(rung)) for rung in Rung}
    assert counts == {Rung.REATTACH: 0, Rung.RESUME: 1, Rung.RESTORE: 2}
    assert read(metrics, "agent_blank_returns_total") == 2  # nothing of theirs was ever checkpointed

    leader = Leading(simulation, Hanging(simulation.sandboxes))
    async with leader.running():
        await leader.wait_for(phase="serving")
    assert read(leader.parts.metrics, "agent_returns_total", rung="Reattach") == 5
    assert read(leader.parts.metrics, "agent_returns_total", rung="Restore") == 0  # another process's


def test_a_return_with_a_conversation_is_no_blank_one() -> None:
    back = ev.AgentRestored(rung=Rung.RESTORE, incarnation=2, reason="r", checkpoint_turn=1)
    assert read(count(back), "agent_blank_returns_total") == 0


def test_ends_are_counted_by_outcome_and_releases_beside_them() -> None:
    lost = ev.AgentEnded(outcome=Outcome.LOST, reason="RestoreFailed")
    metrics = count(lost, lost, ev.AgentReleased(reason="RestoreFailed"))
    assert read(metrics, "agent_ends_total", outcome="lost") == 2
    assert read(metrics, "agent_ends_total", outcome="released") == 1


@pytest.mark.parametrize(
    ("reason", "counted"),
    [("OOMKilled", "OOMKilled"), ("PodGone", "PodGone"), ("JournalLost", "JournalLost"), ("Whatever-7f3a", OTHER)],
)
def test_interruptions_are_counted_by_reasons_that_do_not_grow(reason: str, counted: str) -> None:
    metrics = count(ev.AgentTurnInterrupted(turn=1, turn_id="t", reason=reason, message="m"))
    assert read(metrics, "turns_interrupted_total", reason=counted) == 1
    [family] = [f for f in metrics.registry.collect() if f.name == "alineod_turns_interrupted"]
    assert {sample.labels["reason"] for sample in family.samples} == {counted}


async def test_restores_under_way_and_those_that_wait() -> None:
    simulation, metrics = await live(), Metrics()
    simulation.world = replace(simulation.world, restores_at_once=2)
    seen = []
    for number in range(5):
        simulation.delete_pod(f"survey-a{number}")
    for _ in range(30):
        show_states(simulation.world, metrics)
        seen.append((read(metrics, "restores_in_flight"), read(metrics, "restores_waiting")))
        await simulation.step()
    assert seen[0] == (0, 5)
    assert (2, 3) in seen
    assert seen[-1] == (0, 0)
    assert max(in_flight for in_flight, _ in seen) == 2
