"""A ledger that acknowledges nothing: what is said, when, how often, and that everything is caught up afterwards."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from alineod.domain import events as ev
from alineod.domain.facts import Trouble
from alineod.errors import Unavailable
from alineod.kube.gateway import EventRecord, EventType
from alineod.kube.objects import AGENTS, SWARMS, Json, read_ref
from alineod.ledger.port import Failing, Replication
from alineod.reconcile import drive
from alineod.reconcile.gather_swarm import gather_swarm
from alineod.reconcile.prompts import queue_prompt
from alineod.reconcile.trouble import LedgerWatch, Said, compute_seen, decide_said
from tests.unit.reconcile.simulation import NAMESPACE, Simulation

AWAY = Unavailable("BucketUnreachable", "no answer from the bucket")
HOME: Json = {"metadata": {"name": "alineod-0", "namespace": "alineod", "uid": "pod-uid"}}
MODEL = {"harness": {"model": {"provider": "openai", "id": "m"}}}
SWARM: Json = {
    "metadata": {"name": "s", "namespace": NAMESPACE},
    "spec": {"defaults": MODEL, "agents": [{"name": "a", "prompt": "one"}, {"name": "b", "prompt": "two"}]},
}
TROUBLE, AGAIN = Trouble("BucketUnreachable", "away"), Trouble("BucketUnreachable", "away again")
OTHER = Trouble("BucketAccessDenied", "denied")


def build_replication(**change: Any) -> Replication:
    return replace(Replication(True, committed_seq=5, acknowledged_seq=4), **change)


@pytest.mark.parametrize(
    ("replication", "reason", "since"),
    [
        (build_replication(), None, None),
        (build_replication(failing=Failing(AWAY, since=99.5, time=1099.5)), None, None),  # a moment
        (build_replication(failing=Failing(AWAY, since=90.0, time=1090.0)), "BucketUnreachable", 1090.0),
        (build_replication(waiting_since=98.0), None, None),
        (build_replication(waiting_since=95.0), "BucketSlow", 1095.0),
        (build_replication(waiting_since=10.0, failing=Failing(AWAY, 50.0, 1050.0)), "BucketUnreachable", 1050.0),
    ],
)
def test_what_is_seen(replication: Replication, reason: str | None, since: float | None) -> None:
    seen = compute_seen(replication, 100.0, 1100.0)
    assert (seen and seen[0].reason, seen and seen[1]) == (reason, since)


@pytest.mark.parametrize(
    ("said", "seen", "now", "expected"),
    [
        (None, None, 10.0, None),
        (None, (TROUBLE, 7.0), 10.0, Said(TROUBLE, 7.0, 10.0, 10.0)),
        # it stays, with the first words and the first time, whatever the later ones are
        (Said(TROUBLE, 7.0, 1.0, 9.0), (AGAIN, 8.0), 10.0, Said(TROUBLE, 7.0, 1.0, 10.0)),
        # another reason takes its place when it has stood for a while, and keeps the time of the beginning
        (Said(TROUBLE, 7.0, 1.0, 9.0), (OTHER, 9.0), 10.0, Said(TROUBLE, 7.0, 1.0, 10.0)),
        (Said(TROUBLE, 7.0, 1.0, 11.0), (OTHER, 9.0), 12.0, Said(OTHER, 7.0, 12.0, 12.0)),
        # it is mended when nothing was seen for a while
        (Said(TROUBLE, 7.0, 1.0, 9.0), None, 10.0, Said(TROUBLE, 7.0, 1.0, 9.0)),
        (Said(TROUBLE, 7.0, 1.0, 9.0), None, 14.0, None),
    ],
)  # fmt: skip
def test_what_is_said(said: Said | None, seen: tuple[Trouble, float] | None, now: float, expected: Said | None) -> None:
    assert decide_said(said, seen, now) == expected


def test_a_bucket_that_takes_four_seconds_each_time_is_one_trouble() -> None:
    said, shown = None, list[bool]()
    for now in range(60):
        began = float(now - now % 4)
        said = decide_said(said, compute_seen(build_replication(waiting_since=began), float(now), 0.0), float(now))
        shown.append(said is not None)
    assert shown.index(True) == 3
    assert all(shown[3:])


@dataclass
class Watched:
    """A settled swarm of two, with a watch on its ledger."""

    simulation: Simulation
    told: list[EventRecord] = field(default_factory=list)
    mended: int = 0

    def __post_init__(self) -> None:
        self.watch = LedgerWatch(self.simulation.world, HOME, self.told.append, self._mend)

    def _mend(self) -> None:
        self.mended += 1
        for resource in (SWARMS, AGENTS):
            for obj in self.simulation.gateway.read_all(resource):
                self.simulation.wake(read_ref(resource, obj))

    async def look(self, seconds: int) -> None:
        """Time goes by, with a look and a round of everything each second."""
        for _ in range(seconds):
            self.simulation.clock.advance(1.0)
            self.watch.look()
            await self.simulation.step()

    def read_condition(self) -> Json:
        conditions: Iterable[Json] = self.simulation.read(SWARMS, "s")["status"]["conditions"]
        return next(condition for condition in conditions if condition["type"] == "LedgerReplicated")


@pytest.fixture
async def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    monkeypatch.setattr(drive, "RETRY", 0.001)
    simulation = Simulation()
    simulation.world = replace(simulation.world, bucket=object())  # type: ignore[arg-type]
    simulation.gateway.write(SWARMS, SWARM)
    await simulation.settle()
    return Watched(simulation)


async def test_it_is_said_on_every_swarm_in_two_events_and_not_again_and_again(watched: Watched) -> None:
    assert (watched.read_condition()["status"], watched.read_condition()["reason"]) == ("True", "Replicated")
    watched.simulation.ledger.fail(AWAY, commits=False)
    began = watched.simulation.clock.now()
    await watched.look(5)
    condition = watched.read_condition()
    assert (condition["status"], condition["reason"]) == ("False", "BucketUnreachable")
    assert condition["message"] == f"no answer from the bucket (since {began.strftime('%Y-%m-%dT%H:%M:%SZ')})"
    version = watched.simulation.read(SWARMS, "s")["metadata"]["resourceVersion"]
    await watched.look(60)
    assert watched.simulation.read(SWARMS, "s")["metadata"]["resourceVersion"] == version
    assert [(told.resource.kind, told.type, told.reason) for told in watched.told] == [
        ("Pod", EventType.WARNING, "BucketUnreachable"),
        ("Swarm", EventType.WARNING, "BucketUnreachable"),
    ]

    watched.simulation.ledger.mend()
    await watched.look(4)
    assert watched.mended == 0  # a bucket that flickers is not to wake everything each time
    await watched.look(7)
    assert (watched.read_condition()["status"], watched.read_condition()["reason"]) == ("True", "Replicated")
    assert [(told.resource.kind, told.type, told.reason) for told in watched.told[2:]] == [
        ("Pod", EventType.NORMAL, "LedgerReplicated"),
        ("Swarm", EventType.NORMAL, "LedgerReplicated"),
    ]
    assert watched.mended == 1


async def test_a_swarm_that_cannot_begin_says_why(watched: Watched) -> None:
    """Its first event is what cannot be acknowledged; its status can be written all the same."""
    watched.simulation.ledger.fail(AWAY, commits=False)
    await watched.look(3)
    late = {"metadata": {"name": "late", "namespace": NAMESPACE}, "spec": SWARM["spec"]}
    watched.simulation.gateway.write(SWARMS, late)
    await watched.look(3)
    conditions = {c["type"]: c for c in watched.simulation.read(SWARMS, "late")["status"]["conditions"]}
    assert conditions["LedgerReplicated"]["reason"] == "BucketUnreachable"
    assert f"{NAMESPACE}/late" not in watched.simulation.ledger.state.runs
    watched.simulation.ledger.mend()
    await watched.look(10)
    await watched.simulation.settle()
    assert f"{NAMESPACE}/late" in watched.simulation.ledger.state.runs


async def test_a_moment_is_not_said(watched: Watched) -> None:
    version = watched.simulation.read(SWARMS, "s")["metadata"]["resourceVersion"]
    watched.simulation.ledger.fail(AWAY, commits=False)
    await watched.look(1)
    watched.simulation.ledger.mend()
    await watched.look(10)
    assert watched.told == []
    assert watched.simulation.read(SWARMS, "s")["metadata"]["resourceVersion"] == version


@pytest.mark.behaviour("9.5")
async def test_without_a_bucket_it_says_so_and_trouble_with_the_volume_goes_before() -> None:
    simulation = Simulation()
    simulation.gateway.write(SWARMS, SWARM)
    await simulation.settle()
    facts, _ = await gather_swarm(simulation.world, f"{NAMESPACE}/s")
    assert facts.replicated is not None
    assert facts.replicated.reason == "NoBucket"
    simulation.ledger.fail(Unavailable("LedgerDiskFull", "the volume is full"), commits=False)
    watch = LedgerWatch(simulation.world, HOME, lambda record: None, lambda: None)
    simulation.clock.advance(5.0)
    watch.look()
    facts, _ = await gather_swarm(simulation.world, f"{NAMESPACE}/s")
    assert facts.replicated is not None
    assert facts.replicated.reason == "LedgerDiskFull"


@pytest.mark.behaviour("9.3")
@pytest.mark.parametrize("commits", [False, True])
async def test_a_turn_that_ends_while_the_bucket_is_away_is_recorded_whole_afterwards(
    watched: Watched, commits: bool
) -> None:
    simulation = watched.simulation
    asked = simulation.sandboxes.asked

    def go_away(what: str) -> None:
        if what == "after start turn" and asked[-1][1] == "go on":
            simulation.ledger.fail(AWAY, commits=commits)

    simulation.sandboxes.hook = go_away
    await queue_prompt(simulation.world, f"{NAMESPACE}/s-a", "go on", "k1")
    await watched.look(5)
    assert asked[-1][1] == "go on"
    simulation.sandboxes.hook = lambda what: None
    for name in ("a", "b"):
        with pytest.raises(Unavailable):
            await queue_prompt(simulation.world, f"{NAMESPACE}/s-{name}", "later", f"k2-{name}")
    await watched.look(30)
    turns = await simulation.ledger.read(agent=f"{NAMESPACE}/s-a")
    assert not any(isinstance(row.body, ev.AgentTurnEnded) and row.body.turn == 2 for row in turns)

    simulation.ledger.mend()
    await watched.look(10)
    for name in ("a", "b"):
        await queue_prompt(simulation.world, f"{NAMESPACE}/s-{name}", "later", f"k2-{name}")  # the same key
    for _ in range(200):
        await watched.look(1)
        await asyncio.sleep(0.002)
    await simulation.settle()
    assert sorted(prompt for _, prompt in asked) == ["go on", "later", "later", "one", "two"]
    rows = await simulation.ledger.read(agent=f"{NAMESPACE}/s-a", limit=10_000)
    assert [row.body.turn for row in rows if isinstance(row.body, ev.AgentTurnEnded)] == [1, 2, 3]
    records = [row.body for row in rows if isinstance(row.body, ev.HandleSettled)]
    assert [record.result for record in records] == ["did: one", "did: go on", "did: later"]
    await simulation.drivers.close()


@pytest.mark.parametrize("step", [3600.0, -3600.0])
async def test_a_clock_that_is_set_by_an_hour_changes_nothing(step: float) -> None:
    straight, stepped = Simulation(), Simulation()
    for simulation in (straight, stepped):
        simulation.gateway.write(SWARMS, SWARM)
        await simulation.settle()
        if simulation is stepped:
            simulation.clock.advance(step)
        await queue_prompt(simulation.world, f"{NAMESPACE}/s-a", "go on", "k1")
        await simulation.settle()
        simulation.delete_pod("s-b")
        await simulation.settle()
    assert [kind(row.body) for row in stepped.stored.rows] == [kind(row.body) for row in straight.stored.rows]
    assert stepped.ledger.state.agents.keys() == straight.ledger.state.agents.keys()
    for key, agent in straight.ledger.state.agents.items():
        assert stepped.ledger.state.agents[key].state == agent.state


def kind(body: object) -> str:
    return type(body).__name__
