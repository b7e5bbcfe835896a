"""The queue as it runs: workers, failures, draining. Nothing here depends on how long anything takes."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from alineod.clock import SystemClock
from alineod.errors import AlineoError, Conflict, Refused, Unavailable
from alineod.kube.queue import WorkQueue, classify
from alineod.kube.schedule import Outcome, QueueOptions

FAST = QueueOptions(workers=2, rate=10_000, burst=1_000, first_delay=0.001, longest_delay=0.01, longest_pass=5)


@asynccontextmanager
async def running(
    work: Callable[[str], Awaitable[float | None]], options: QueueOptions = FAST
) -> AsyncIterator[tuple[WorkQueue[str], list[Outcome]]]:
    outcomes: list[Outcome] = []
    queue = WorkQueue(work, SystemClock(), options=options, report=lambda outcome, seconds: outcomes.append(outcome))
    task = asyncio.create_task(queue.run())
    try:
        yield queue, outcomes
    finally:
        await queue.drain(5)
        await asyncio.wait_for(task, 5)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110  (what is waited for has no event)
            await asyncio.sleep(0.001)


async def test_every_key_is_looked_at_and_never_twice_at_once() -> None:
    seen: list[str] = []
    at_once: set[str] = set()
    most = 0

    async def work(key: str) -> None:
        nonlocal most
        assert key not in at_once
        at_once.add(key)
        most = max(most, len(at_once))
        await asyncio.sleep(0.001)
        at_once.discard(key)
        seen.append(key)

    async with running(work) as (queue, outcomes):
        for _ in range(3):
            for key in "abcde":
                queue.add(key)
            await asyncio.sleep(0)
        await until(lambda: queue.idle and set(seen) == set("abcde"))
    assert most <= FAST.workers
    assert set(outcomes) == {Outcome.DONE}


async def test_everything_else_has_a_turn_of_the_loop_between_the_beginnings_of_two_passes() -> None:
    """After a take-over every worker is free: their first steps together would hold the loop up for all of them."""
    turns, began = 0, list[int]()

    async def take_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def work(key: str) -> None:
        began.append(turns)
        await asyncio.sleep(0.001)

    other = asyncio.create_task(take_turns())
    async with running(work, replace(FAST, workers=5)) as (queue, _):
        for key in "abcde":
            queue.add(key)
        await until(lambda: queue.idle and len(began) == 5)
    other.cancel()
    assert len(set(began)) == 5


async def test_a_wish_for_a_later_look_is_kept() -> None:
    seen: list[str] = []

    async def work(key: str) -> float | None:
        seen.append(key)
        return 0.001 if len(seen) < 4 else None

    async with running(work) as (queue, _):
        queue.add_after("a", 0.001)
        await until(lambda: len(seen) == 4)
        await until(lambda: queue.idle)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (Conflict("Conflict", "look again"), Outcome.CONFLICT),
        (Unavailable("Timeout", "later"), Outcome.UNAVAILABLE),
        (Refused("Invalid", "no"), Outcome.REFUSED),
        (KeyError("bug"), Outcome.BUG),
        (TimeoutError(), Outcome.BUG),
    ],
)
async def test_a_failed_pass_is_tried_again(
    error: Exception, outcome: Outcome, caplog: pytest.LogCaptureFixture
) -> None:
    tries: list[str] = []

    async def work(key: str) -> None:
        tries.append(key)
        if len(tries) < 3:
            raise error

    with caplog.at_level(logging.WARNING):
        async with running(work) as (queue, outcomes):
            queue.add("a")
            await until(lambda: len(outcomes) == 3)
    assert outcomes == [outcome, outcome, Outcome.DONE]
    assert classify(error) is outcome
    assert bool(caplog.records) is (outcome is not Outcome.CONFLICT)
    assert any(record.exc_info for record in caplog.records) is (outcome is Outcome.BUG)
    if isinstance(error, AlineoError) and caplog.records:
        assert error.message in caplog.text


async def test_a_pass_that_hangs_is_ended() -> None:
    hanging = QueueOptions(workers=1, rate=1000, burst=10, longest_pass=0.01, first_delay=60, longest_delay=60)

    async def work(key: str) -> None:
        if key == "stuck":
            await asyncio.Event().wait()

    async with running(work, hanging) as (queue, outcomes):
        queue.add("stuck")
        queue.add("other")
        await until(lambda: sorted(outcomes) == [Outcome.BUG, Outcome.DONE])


async def test_draining_waits_for_passes_and_starts_no_more() -> None:
    started, go, ended = list[str](), asyncio.Event(), list[str]()

    async def work(key: str) -> None:
        started.append(key)
        await go.wait()
        ended.append(key)

    queue = WorkQueue(work, SystemClock(), options=FAST)
    task = asyncio.create_task(queue.run())
    for key in "abc":
        queue.add(key)
    await until(lambda: len(started) == 2)
    draining = asyncio.create_task(queue.drain(10))
    await asyncio.sleep(0)
    go.set()
    assert await draining is True
    await asyncio.wait_for(task, 5)
    assert sorted(ended) == sorted(started)
    assert queue.depth == 1


async def test_draining_cancels_what_does_not_end() -> None:
    started = asyncio.Event()

    async def work(key: str) -> None:
        started.set()
        await asyncio.Event().wait()

    queue = WorkQueue(work, SystemClock(), options=FAST)
    task = asyncio.create_task(queue.run())
    queue.add("a")
    await started.wait()
    assert await queue.drain(0.01) is False
    await asyncio.wait_for(task, 5)


async def test_depth_and_age_are_those_of_keys_without_a_worker() -> None:
    queue = WorkQueue(lambda key: asyncio.sleep(0), SystemClock(), options=FAST)
    assert (queue.depth, queue.compute_age(), queue.idle) == (0, 0.0, True)
    queue.add("a")
    assert (queue.depth, queue.idle) == (1, False)
    assert queue.compute_age() >= 0.0
