"""What fails while it is written or acknowledged: nothing is lost, nothing piles up, and it goes on by itself."""

import asyncio
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from alineod.domain.fold import fold
from alineod.domain.state import State
from alineod.errors import AlineoError, Damaged, Unavailable
from alineod.ledger.acknowledge import LocalAcknowledger
from alineod.ledger.port import Observe
from alineod.ledger.queue import Bounds
from tests.unit.ledger.conftest import AWAY, LIMITS, Gate, Open, SteppingClock, settle, until
from tests.unit.ledger.entries import build_entry, build_text


@contextmanager
def no_file_larger_than(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_volume_that_refuses_writes_holds_everything_and_goes_on_by_itself(open_file: Open, path: Path) -> None:
    gate = Gate()
    gate.let(1000)
    ledger = open_file(gate, replace(LIMITS, failing=0.1))
    await ledger.append([build_entry(1)])
    with no_file_larger_than(path.with_name("ledger.db-wal").stat().st_size + 50_000):
        with pytest.raises(Unavailable) as caught:
            await ledger.append([build_entry(2, text="x" * 200_000)])
        assert caught.value.reason == "NotAcknowledged"
        assert ledger.replication.failing is not None
        assert ledger.replication.failing.failure.reason == "LedgerWriteFailed"
        assert str(path) in caught.value.message
        assert ledger.acknowledged_seq == 1
    await until(lambda: ledger.acknowledged_seq == 2)  # nobody asked again
    assert ledger.replication.failing is None
    assert [row.seq for row in await ledger.append([build_entry(2, text="x" * 200_000)])] == [2]


async def test_a_volume_that_stays_bad_ends_the_process_where_another_one_could_do_better(
    open_file: Open, path: Path
) -> None:
    gate, ends = Gate(), list[AlineoError]()
    gate.let(1000)
    ledger = open_file(gate, replace(LIMITS, volume=0.2), fatal=ends.append)
    await ledger.append([build_entry(1)])
    with no_file_larger_than(path.with_name("ledger.db-wal").stat().st_size):
        with pytest.raises(Unavailable) as caught:
            await ledger.append([build_entry(2)])
        assert caught.value.reason == "LedgerWriteFailed"
        await until(lambda: bool(ends))
    assert ends == [caught.value]
    with pytest.raises(Unavailable):
        await ledger.append([build_entry(3)])


async def test_without_a_replica_a_bad_volume_is_waited_for(open_file: Open, path: Path) -> None:
    ends: list[AlineoError] = []
    ledger = open_file(LocalAcknowledger(), replace(LIMITS, failing=0.1, volume=0.2), fatal=ends.append)
    await ledger.append([build_entry(1)])
    with no_file_larger_than(path.with_name("ledger.db-wal").stat().st_size):
        for _ in range(5):
            with pytest.raises(Unavailable):
                await ledger.append([build_entry(2)])
    await until(lambda: ledger.acknowledged_seq == 2)
    assert ends == []


@pytest.mark.parametrize("name", ["ledger.db", "ledger.db-wal"])
async def test_nothing_is_acknowledged_into_a_file_that_is_gone(open_file: Open, path: Path, name: str) -> None:
    ends: list[AlineoError] = []
    ledger = open_file(LocalAcknowledger(), fatal=ends.append)
    await ledger.append([build_entry(1)])
    path.with_name(name).unlink()
    with pytest.raises(Damaged) as caught:
        await ledger.append([build_entry(2)])
    assert caught.value.reason == "LedgerGone"
    await until(lambda: bool(ends))
    assert ledger.acknowledged_seq == 1


async def test_whoever_waits_when_it_begins_to_fail_waits_no_longer_than_who_comes_after(open_file: Open) -> None:
    gate = Gate(silent=True)
    ledger = open_file(gate, replace(LIMITS, append=3600.0, failing=0.1))
    waiting = asyncio.ensure_future(ledger.append([build_entry(1)]))
    await until(lambda: gate.calls == 1)
    gate.report(AWAY)
    [outcome] = await settle(waiting)
    assert isinstance(outcome, Unavailable)
    assert (outcome.reason, outcome.retry_after) == ("NotAcknowledged", 5.0)


async def test_what_nobody_waits_for_any_more_takes_no_room(open_file: Open) -> None:
    """An hour without a bucket: every pass asks again and again, and the queue is as empty as before."""
    gate = Gate()
    ledger = open_file(gate, replace(LIMITS, failing=0.001, queue=Bounds(entries=40)))
    for _ in range(200):
        outcomes = await settle(*(ledger.append([build_text(f"{n}", id=f"{n}")]) for n in range(20)))
        assert {outcome.reason for outcome in outcomes} == {"NotAcknowledged"}  # type: ignore[attr-defined]
    gate.silent = True
    gate.let(1000)
    await until(lambda: ledger.replication.failing is None)
    rows = await settle(*(ledger.append([build_text(f"{n}", id=f"{n}")]) for n in range(20)))
    assert sorted(row.seq for [row] in rows) == list(range(1, 21))  # type: ignore[misc]
    assert ledger.acknowledged_seq == 20


async def test_large_appends_are_turned_away_by_their_bytes(open_file: Open) -> None:
    gate = Gate()
    ledger = open_file(gate, replace(LIMITS, queue=Bounds(bytes=1 << 20)))
    tasks = [asyncio.ensure_future(ledger.append([build_entry(0)]))]
    await until(lambda: gate.calls == 1)
    large = "x" * 400_000
    tasks += [asyncio.ensure_future(ledger.append([build_entry(n, text=large)])) for n in range(1, 5)]
    await asyncio.sleep(0)
    assert [task.exception().reason for task in tasks if task.done()] == ["QueueFull"] * 2  # type: ignore[union-attr]
    gate.let(1000)
    await settle(*tasks)


async def test_what_the_ledger_does_is_told(open_file: Open) -> None:
    told: list[tuple[object, ...]] = []
    observe = Observe(
        append=lambda seconds: told.append(("append",)),
        commit=lambda events, seconds: told.append(("commit", events)),
        confirm=lambda seconds: told.append(("confirm",)),
        fail=lambda reason: told.append(("fail", reason)),
    )
    gate = Gate()
    gate.let(1000)
    ledger = open_file(gate, observe=observe)
    await ledger.append([build_entry(1), build_entry(2)])
    assert told == [("commit", 2), ("fail", "BucketUnreachable"), ("confirm",), ("append",)]


async def test_a_clock_that_is_set_back_or_on_changes_no_order(open_file: Open) -> None:
    clock = SteppingClock()
    ledger = open_file(LocalAcknowledger(), clock=clock)
    times = []
    for step in (0, 3600, -7200, 3600):
        clock.step += timedelta(seconds=step)
        times += [row.time for row in await ledger.append([build_entry(len(times))])]
    assert [later - times[0] for later in times[1:]] == [
        pytest.approx(3600, abs=60), pytest.approx(-3600, abs=60), pytest.approx(0, abs=60)
    ]  # fmt: skip
    rows = await ledger.read()
    assert [row.seq for row in rows] == [1, 2, 3, 4]
    assert fold(State(), rows) == ledger.state
