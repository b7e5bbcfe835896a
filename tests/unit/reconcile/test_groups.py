"""Records in groups: what belongs together, what ends a group, and what a record costs."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from alineod.errors import Unavailable
from alineod.reconcile.groups import MOST, group_records
from alineod.wire.turns import JournalRecord

BROKEN = Unavailable("BridgeNotAnswering", "the journal broke off")


def build_records(*events: str) -> list[JournalRecord]:
    return [JournalRecord(time=0.0, turn=1, turn_id="t", event=event, seq=n) for n, event in enumerate(events, 1)]


async def tell(records: list[JournalRecord], error: Exception | None = None) -> AsyncIterator[JournalRecord]:
    for record in records:
        yield record
    if error is not None:
        raise error


async def collect(journal: AsyncIterator[JournalRecord], into: list[list[int | None]]) -> None:
    async for group in group_records(journal):
        into.append([record.seq for record in group])


@pytest.mark.parametrize(
    ("events", "sizes"),
    [
        ((), []),
        (("message",), [1]),
        (("message",) * 3, [3]),
        (("message", "turn.ended", "checkpoint.cut"), [2, 1]),
        (("message",) * MOST, [MOST]),
        (("message",) * (2 * MOST + 5), [MOST, MOST, 5]),
    ],
)
async def test_every_record_is_in_one_group_in_order(events: tuple[str, ...], sizes: list[int]) -> None:
    groups = list[list[int | None]]()
    await collect(tell(build_records(*events)), groups)
    assert [len(group) for group in groups] == sizes
    assert [seq for group in groups for seq in group] == list(range(1, len(events) + 1))


async def test_what_was_heard_before_the_journal_broke_off_is_a_group() -> None:
    groups = list[list[int | None]]()
    with pytest.raises(Unavailable, match="broke off"):
        await collect(tell(build_records("message", "message"), BROKEN), groups)
    assert groups == [[1, 2]]


async def test_a_group_does_not_wait_for_the_next_record() -> None:
    async def stay_silent() -> AsyncIterator[JournalRecord]:
        yield build_records("message")[0]
        await asyncio.Event().wait()

    journal = group_records(stay_silent())
    async with asyncio.timeout(10):
        assert [record.seq for record in await anext(journal)] == [1]
    await journal.aclose()


async def test_the_reader_waits_while_a_whole_group_is_not_taken() -> None:
    read = list[int | None]()

    async def count() -> AsyncIterator[JournalRecord]:
        for record in build_records(*["message"] * (3 * MOST)):
            read.append(record.seq)
            yield record

    journal = group_records(count())
    await anext(journal)
    for _ in range(10 * MOST):
        await asyncio.sleep(0)
    assert MOST < len(read) <= 2 * MOST + 1
    await journal.aclose()


async def test_a_group_costs_one_timer_however_many_records_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """1,000 agents speak at once: a timer for each of their records was most of what the loop did."""
    loop, timers = asyncio.get_running_loop(), list[float]()
    real = loop.call_at

    def call_at(when: float, *args: Any, **named: Any) -> asyncio.TimerHandle:
        timers.append(when)
        return real(when, *args, **named)

    async def speak() -> AsyncIterator[JournalRecord]:
        for record in build_records(*["text.delta"] * 50):
            yield record
            await asyncio.sleep(0)  # one at a time, as they come out of a socket
        await asyncio.Event().wait()

    monkeypatch.setattr(loop, "call_at", call_at)
    journal = group_records(speak())
    assert len(await anext(journal)) == 50
    assert len(timers) == 1
    await journal.aclose()
