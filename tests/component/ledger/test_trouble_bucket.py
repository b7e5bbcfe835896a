"""A bucket that is away, slow, silent, full or refusing: nothing is acknowledged or lost, and it goes on by itself."""

import asyncio
import os
import random
import re
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest

from alineod.clock import SystemClock
from alineod.domain.events import Row
from alineod.domain.facts import Trouble
from alineod.errors import AlineoError, Unavailable
from alineod.kube.gateway import EventRecord
from alineod.kube.objects import SWARMS
from alineod.ledger import pace, replicate, start
from alineod.ledger.acknowledge import ReplicaAcknowledger
from alineod.ledger.failures import LOCAL_REASONS, REPLICATOR_DOWN
from alineod.ledger.open import open_ledger
from alineod.ledger.sqlite import SqliteLedger
from alineod.metrics import Metrics
from alineod.reconcile.count import observe_ledger
from alineod.reconcile.gather_swarm import gather_swarm
from alineod.reconcile.trouble import LedgerWatch
from tests.component.ledger.conftest import Program, World
from tests.component.ledger.test_replication import Sidecars, find_child, until
from tests.support.bad_door import Answer, Behaviour, Door, Late, Narrow, Open, Silent, bad_door
from tests.support.seaweed import Seaweed, running_seaweed
from tests.unit.ledger.entries import build_entry
from tests.unit.reconcile.simulation import NAMESPACE, Simulation

CLOCK = SystemClock()


@pytest.fixture
def door(store: Seaweed) -> Iterator[Door]:
    with bad_door(store.ports["s3.port"]) as opened:
        yield opened


@pytest.fixture
def world(store: Seaweed, door: Door, tmp_path: Path, request: pytest.FixtureRequest) -> World:
    """Sees the store through the door."""
    behind = Seaweed(tmp_path, store.bucket, {"s3.port": door.port})
    return World(behind, f"i{abs(hash(request.node.nodeid)) % 10**12}", tmp_path)


Opens = Callable[..., Awaitable[SqliteLedger]]


@pytest.fixture
async def open_there() -> AsyncIterator[Opens]:
    opened: list[SqliteLedger] = []

    async def open_one(world: World) -> SqliteLedger:
        opened.append(await open_ledger(world.build_opening(), CLOCK, world.build_remote()))
        return opened[-1]

    yield open_one
    for ledger in opened:
        await ledger.close()


@dataclass(frozen=True)
class Wrong:
    """What is wrong, and the reasons that say so; which of them comes first depends on what asked the store."""

    name: str
    behaviour: Behaviour
    reasons: frozenset[str]


WRONGS = [
    Wrong("denied", Answer(403, "AccessDenied"), frozenset({"BucketAccessDenied"})),
    Wrong("missing", Answer(404, "NoSuchBucket"), frozenset({"BucketNotFound"})),
    # Its client tries these again by itself, and says nothing meanwhile.
    Wrong("busy", Answer(503, "SlowDown"), frozenset({"BucketSlow", "BucketUnreachable", "ReplicatorStuck"})),
    Wrong("broken", Answer(507, "InsufficientStorage"), frozenset({"BucketUnreachable", "ReplicatorStuck"})),
    Wrong("silent", Silent(), frozenset({"BucketSlow", "ReplicatorStuck"})),
]


async def expect_held(ledger: SqliteLedger, number: int) -> Unavailable:
    """An append that is answered soon, and not with an acknowledgement."""
    with pytest.raises(Unavailable) as caught:
        await ledger.append([build_entry(number)])
    assert caught.value.reason == "NotAcknowledged"
    assert caught.value.retry_after is not None
    return caught.value


async def append_at_last(ledger: SqliteLedger, *numbers: int, text: str = "") -> list[Row]:
    """As every caller does: again under the same ids until it is acknowledged."""
    async with asyncio.timeout(60):
        while True:
            try:
                return await ledger.append([build_entry(number, text=text) for number in numbers])
            except Unavailable:
                await asyncio.sleep(0.2)


def build_noise(seed: int) -> str:
    """A million characters that can be packed into half of that."""
    return random.Random(seed).randbytes(500_000).hex()


@pytest.mark.behaviour("9.3")
@pytest.mark.parametrize("wrong", WRONGS, ids=lambda wrong: wrong.name)
async def test_trouble_comes_and_goes(
    world: World, door: Door, start_sidecar: Sidecars, open_there: Opens, wrong: Wrong
) -> None:
    start_sidecar()
    ledger = await open_there(world)
    await ledger.append([build_entry(1)])

    door.behaviour = wrong.behaviour
    error = await expect_held(ledger, 2)
    failing = ledger.replication.failing
    assert failing is not None
    assert failing.failure.reason in wrong.reasons
    assert failing.failure.message in error.message
    for number in (3, 4):
        await expect_held(ledger, number)
    assert (ledger.acknowledged_seq, [row.seq for row in await ledger.read()]) == (1, [1])
    assert ledger.replication.committed_seq == 2  # the others wait for nobody

    door.behaviour = Open()
    await until(lambda: ledger.acknowledged_seq == 2)
    rows = await append_at_last(ledger, 2, 3, 4)
    assert [row.seq for row in rows] == [2, 3, 4]
    assert ledger.replication.failing is None


async def test_a_bucket_that_takes_longer_than_a_try_is_given_longer(
    world: World, door: Door, start_sidecar: Sidecars, open_there: Opens
) -> None:
    start_sidecar()
    ledger = await open_there(world)
    door.behaviour = Late(3.0)
    await expect_held(ledger, 1)
    await until(lambda: ledger.acknowledged_seq == 1)
    assert [row.seq for row in await append_at_last(ledger, 2)] == [2]


async def test_a_litestream_that_is_stuck_is_replaced(world: World, start_sidecar: Sidecars, open_there: Opens) -> None:
    sidecar = start_sidecar()
    ledger = await open_there(world)
    await ledger.append([build_entry(1)])
    stuck = find_child(sidecar.process.pid, "litestream")
    assert stuck is not None
    os.kill(stuck, signal.SIGSTOP)
    await expect_held(ledger, 2)
    failing = ledger.replication.failing
    assert failing is not None
    assert failing.failure.reason == "ReplicatorStuck"
    await until(lambda: ledger.acknowledged_seq == 2)
    assert find_child(sidecar.process.pid, "litestream") not in (None, stuck)


async def test_a_ledger_that_waits_for_a_silent_bucket_can_be_closed(
    world: World, door: Door, start_sidecar: Sidecars, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "SHORT", 600.0)
    start_sidecar()
    ledger = await open_ledger(world.build_opening(), CLOCK, world.build_remote())
    door.behaviour = Silent()
    appending = asyncio.create_task(ledger.append([build_entry(1)]))
    await until(lambda: ledger.replication.committed_seq == 1)
    async with asyncio.timeout(60):
        await ledger.close()
    with pytest.raises(Unavailable):
        await appending
    assert ledger.acknowledged_seq == 0


async def test_a_sidecar_that_is_gone_holds_everything_until_it_is_back(
    world: World, start_sidecar: Sidecars, open_there: Opens
) -> None:
    sidecar = start_sidecar()
    ledger = await open_there(world)
    sidecar.kill()
    await expect_held(ledger, 1)
    failing = ledger.replication.failing
    assert failing is not None
    assert failing.failure.reason == "ReplicatorUnreachable"
    start_sidecar()
    await until(lambda: ledger.acknowledged_seq == 1)


@pytest.mark.parametrize("stop", [signal.SIGSTOP, signal.SIGKILL])
async def test_a_sidecar_that_hangs_or_stays_away_leaves_the_term_to_another_pod(
    world: World, start_sidecar: Sidecars, monkeypatch: pytest.MonkeyPatch, stop: signal.Signals
) -> None:
    monkeypatch.setattr(start, "ReplicaAcknowledger", partial(ReplicaAcknowledger, patience=3.0))
    monkeypatch.setattr(replicate, "SIGN_LIMIT", 2.0)
    sidecar, ends = start_sidecar(), list[AlineoError]()
    ledger = await open_ledger(world.build_opening(), CLOCK, world.build_remote(), fatal=ends.append)
    await ledger.append([build_entry(1)])
    litestream = find_child(sidecar.process.pid, "litestream")
    assert litestream is not None
    for process in (sidecar.process.pid, litestream):
        os.kill(process, stop)
    with pytest.raises(Unavailable):
        await ledger.append([build_entry(2)])
    await until(lambda: bool(ends))
    assert [end.reason for end in ends] == [REPLICATOR_DOWN]
    assert REPLICATOR_DOWN in LOCAL_REASONS
    assert re.match(r"The sidecar litestream is silent for \d+ s\. Look at that container", ends[0].message)
    await ledger.close()


async def test_a_narrow_way_to_the_bucket_lets_a_large_ledger_begin_and_a_large_event_through(
    world: World, door: Door, start_sidecar: Sidecars, open_there: Opens
) -> None:
    start_sidecar()
    ledger = await open_there(world)
    for number in range(1, 4):
        await ledger.append([build_entry(number, text=build_noise(number))])
    await ledger.close()

    door.behaviour = Narrow(300_000)
    began = time.monotonic()
    async with asyncio.timeout(150):
        again = await open_ledger(world.build_opening(), CLOCK, world.build_remote())
    assert time.monotonic() - began > pace.SHORT + pace.STUCK_LIMIT, "the way was not narrow enough to show anything"
    assert again.acknowledged_seq == 3
    door.behaviour = Narrow(150_000)
    assert len(await append_at_last(again, 9, text=build_noise(9))) == 1
    await again.close()


@pytest.fixture
def start_own(tmp_path: Path) -> Iterator[Callable[..., tuple[Seaweed, World]]]:
    """A store of its own and a sidecar for it."""
    sidecars: list[Program] = []
    with running_seaweed(tmp_path / "own") as own:
        world = World(own, "default", tmp_path)
        (tmp_path / "run").mkdir()
        code = "import os, sys; from alineod.ledger.sidecar import main; sys.exit(main(os.environ))"
        sidecars.append(Program(code, env={**world.build_env(), "ALINEOD_RUN_DIR": str(tmp_path / "run")}))
        yield lambda: (own, world)
    for sidecar in sidecars:
        sidecar.kill()


async def test_a_store_that_stands_still_or_is_killed(
    start_own: Callable[[], tuple[Seaweed, World]], open_there: Opens
) -> None:
    own, world = start_own()
    ledger = await open_there(world)
    await ledger.append([build_entry(1)])

    own.pause()
    await expect_held(ledger, 2)
    own.resume()
    await until(lambda: ledger.acknowledged_seq == 2)

    own.kill()
    await expect_held(ledger, 3)
    await asyncio.to_thread(own.start)
    await until(lambda: ledger.acknowledged_seq == 3)
    assert ledger.replication.failing is None


@pytest.mark.behaviour("9.3", "9.4")
async def test_a_store_that_is_full_is_said_and_goes_on_with_more_room(
    start_own: Callable[[], tuple[Seaweed, World]], open_there: Opens
) -> None:
    own, world = start_own()
    ledger = await open_there(world)
    await ledger.append([build_entry(1)])
    own.kill()
    await asyncio.to_thread(own.start, "-volume.max=1", "-master.volumeSizeLimitMB=1")
    written = 1 + await fill(ledger)
    failing = ledger.replication.failing
    assert failing is not None
    assert failing.failure.reason in ("BucketUnreachable", "BucketSlow")
    own.kill()
    await asyncio.to_thread(own.start)
    await until(lambda: ledger.acknowledged_seq == written + 1)


async def fill(ledger: SqliteLedger) -> int:
    """Append until it is held; how many were acknowledged."""
    for number in range(60):
        try:
            await ledger.append([build_entry(number + 2, text=os.urandom(200_000).hex())])
        except Unavailable:
            return number
    raise AssertionError("there is room for everything")


async def test_what_people_are_told_comes_and_goes_with_the_bucket(
    world: World, door: Door, start_sidecar: Sidecars, open_there: Opens
) -> None:
    start_sidecar()
    ledger = await open_there(world)
    metrics = Metrics()
    observe_ledger(ledger, CLOCK, metrics)
    simulation = Simulation()
    simulation.gateway.write(SWARMS, {"metadata": {"name": "s", "namespace": NAMESPACE}, "spec": {"agents": []}})
    told: list[EventRecord] = []
    seen = replace(simulation.world, ledger=ledger, clock=CLOCK, bucket=world.build_bucket())
    watch = LedgerWatch(seen, {"metadata": {"name": "o", "namespace": "n", "uid": "u"}}, told.append, lambda: None)

    async def read(expected: bool) -> Trouble | None:
        async with asyncio.timeout(60):
            while (seen.term.ledger_trouble is not None) is not expected:
                await asyncio.sleep(0.1)
                watch.look()
        return (await gather_swarm(seen, f"{NAMESPACE}/s"))[0].replicated

    door.behaviour = Answer(403, "AccessDenied")
    await expect_held(ledger, 1)
    first = await read(True)
    assert first is not None
    assert first.reason == "BucketAccessDenied"
    assert first.message.startswith(f"Access to the bucket {world.bucket.name} at {world.bucket.endpoint} is denied.")
    await asyncio.sleep(3)  # several more tries, each with another request's number in its answer
    watch.look()
    assert await read(True) == first
    for name in ("failing_seconds", "lag_seconds", "lag_events"):
        assert (metrics.registry.get_sample_value(f"alineod_ledger_{name}") or 0) >= 1

    door.behaviour = Open()
    assert await read(False) is None
    assert [(record.resource.kind, record.reason) for record in told] == [
        ("Pod", "BucketAccessDenied"), ("Swarm", "BucketAccessDenied"),
        ("Pod", "LedgerReplicated"), ("Swarm", "LedgerReplicated"),
    ]  # fmt: skip
    assert metrics.registry.get_sample_value("alineod_ledger_failing_seconds") == 0
