"""Acknowledging: what is seen when, and what an append says when it is not acknowledged."""

import asyncio
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from alineod.domain.events import Row
from alineod.domain.fold import fold
from alineod.domain.state import State
from alineod.errors import AlineoError, Conflict, Fenced, Unavailable
from alineod.ledger import sql
from alineod.ledger.queue import Bounds
from alineod.ledger.records import prepare_entries
from alineod.ledger.sqlite import Limits
from tests.unit.ledger.conftest import AWAY, LIMITS, Gate, Open, settle, until
from tests.unit.ledger.entries import build_entry, build_text


@pytest.mark.behaviour("9.3")
async def test_nothing_is_seen_before_it_is_acknowledged(open_file: Open, path: Path) -> None:
    gate = Gate()
    ledger = open_file(gate)
    heard: list[Row] = []
    ledger.subscribe(heard.extend)
    task = asyncio.ensure_future(ledger.append([build_entry(1)]))
    await until(lambda: gate.calls == 1)

    with closing(sql.open_reader(path)) as reader:
        assert sql.read_head(reader).seq == 1  # it is committed,
    assert not task.done()  # and nobody knows
    assert (ledger.state, ledger.acknowledged_seq, await ledger.read(), heard) == (State(), 0, [], [])
    assert ledger.replication.committed_seq == 1
    assert ledger.replication.failing is not None
    assert ledger.replication.failing.failure is AWAY
    assert ledger.replication.waiting_since is not None

    gate.let()
    rows = await task
    assert (ledger.acknowledged_seq, await ledger.read(), heard) == (1, rows, rows)
    assert (ledger.replication.failing, ledger.replication.waiting_since) == (None, None)


async def test_what_comes_during_a_confirmation_is_confirmed_together(open_file: Open) -> None:
    gate = Gate()
    ledger = open_file(gate)
    first = asyncio.ensure_future(ledger.append([build_entry(1)]))
    await until(lambda: gate.calls == 1)
    others = [asyncio.ensure_future(ledger.append([build_entry(n), build_entry(n + 100)])) for n in range(2, 42)]
    await asyncio.sleep(0)
    gate.let(2)
    rows = [row for answer in await settle(first, *others) for row in answer]  # type: ignore[attr-defined]
    assert [row.seq for row in rows] == list(range(1, 82))
    assert gate.calls == 2
    assert ledger.state == fold(State(), rows)


async def test_a_batch_has_a_limit_and_an_append_of_any_size_is_one(open_file: Open) -> None:
    gate = Gate()
    gate.let(1000)
    ledger = open_file(gate)
    big = [build_entry(n) for n in range(2500)]
    answers = await settle(*(ledger.append(big[start : start + 300]) for start in range(0, 2500, 300)))
    assert [row.seq for rows in answers for row in rows] == list(range(1, 2501))  # type: ignore[attr-defined]
    assert gate.calls >= 3
    whole = await ledger.append([build_entry(n, agent="default/b") for n in range(2500)])
    assert [row.seq for row in whole] == list(range(2501, 5001))


async def test_an_append_that_waits_too_long_may_be_made_again(open_file: Open) -> None:
    gate = Gate()
    ledger = open_file(gate, Limits(append=20.0, failing=0.05, close=0.2))
    with pytest.raises(Unavailable) as caught:
        await ledger.append([build_text("first")])
    assert caught.value.reason == "NotAcknowledged"
    assert caught.value.message == (
        "The event was not acknowledged in time and may still come to stand: ask again with the same id."
        " The bucket is away."
    )
    with pytest.raises(Unavailable):  # queued behind the first, taken out again before its transaction
        await ledger.append([build_text("never", id="never")])
    gate.let(1000)
    await until(lambda: ledger.acknowledged_seq == 1)
    [row] = await ledger.append([build_text("again")])
    assert row.seq == 1
    assert row.body.text == "first"  # type: ignore[union-attr]
    assert await ledger.read() == [row]


@pytest.mark.behaviour("9.1")
async def test_a_fenced_writer_ends_and_says_so_at_once(open_file: Open) -> None:
    gate, ends = Gate(), list[AlineoError]()
    ledger = open_file(gate, fatal=ends.append)
    tasks = [asyncio.ensure_future(ledger.append([build_entry(1)]))]
    await until(lambda: gate.calls == 1)
    tasks.append(asyncio.ensure_future(ledger.append([build_entry(2)])))
    await asyncio.sleep(0)
    gate.fail(Fenced("ReplicaOvertaken", "Another process leads."))
    assert [type(outcome) for outcome in await settle(*tasks)] == [Fenced, Fenced]
    await until(lambda: bool(ends))
    assert [end.reason for end in ends] == ["ReplicaOvertaken"]
    with pytest.raises(Fenced):
        await ledger.append([build_entry(3)])
    assert ledger.acknowledged_seq == 0


@pytest.mark.behaviour("9.1")
async def test_a_later_term_in_the_file_ends_the_writer(open_file: Open, path: Path) -> None:
    gate, ends = Gate(), list[AlineoError]()
    gate.let(1000)
    ledger = open_file(gate, fatal=ends.append)
    await ledger.append([build_entry(1)])
    with closing(sql.open_writer(path)) as later:
        sql.write_epoch(later, 2)
    with pytest.raises(Fenced):
        await ledger.append([build_entry(2)])
    await until(lambda: bool(ends))
    assert ends[0].reason == "LaterTerm"
    assert [row.seq for row in await ledger.read()] == [1]


async def test_a_conflict_is_its_caller_s_alone(open_file: Open) -> None:
    gate = Gate()
    ledger = open_file(gate)
    first = asyncio.ensure_future(ledger.append([build_text("x", id="x")]))
    await until(lambda: gate.calls == 1)
    contradicts = ledger.append([build_entry(1), build_text("x", id="x", agent="n/o")])
    others = [asyncio.ensure_future(call) for call in (contradicts, ledger.append([build_entry(1)]))]
    await asyncio.sleep(0)
    gate.let(1000)
    outcomes = await settle(first, *others)
    assert isinstance(outcomes[1], Conflict)
    assert [row.seq for row in outcomes[2]] == [2]  # type: ignore[attr-defined]


async def test_closing_fails_what_is_not_acknowledged(open_file: Open) -> None:
    gate, ends = Gate(), list[AlineoError]()
    ledger = open_file(gate, fatal=ends.append)
    task = asyncio.ensure_future(ledger.append([build_entry(1)]))
    await until(lambda: gate.calls == 1)
    late = asyncio.ensure_future(ledger.append([build_entry(2)]))
    await asyncio.sleep(0)
    await ledger.close()
    one, two = await settle(task, late)
    assert isinstance(one, Unavailable)
    assert isinstance(two, Unavailable)
    assert ends == []


async def test_closing_waits_for_what_is_being_written(open_file: Open) -> None:
    gate = Gate()
    gate.let(1000)
    ledger = open_file(gate, Limits(failing=20.0, close=20.0))
    tasks = [asyncio.ensure_future(ledger.append([build_entry(n)])) for n in range(200)]
    await asyncio.sleep(0)
    await ledger.close()
    rows: Sequence[Sequence[Row]] = await asyncio.gather(*tasks)
    assert [row.seq for [row] in rows] == list(range(1, 201))


async def test_a_crowd_is_turned_away(open_file: Open) -> None:
    gate = Gate()
    ledger = open_file(gate, replace(LIMITS, queue=Bounds(entries=10)))
    tasks = [asyncio.ensure_future(ledger.append([build_entry(0)]))]
    await until(lambda: gate.calls == 1)
    tasks += [asyncio.ensure_future(ledger.append([build_entry(n)])) for n in range(1, 13)]
    await asyncio.sleep(0)
    assert [task.exception().reason for task in tasks if task.done()] == ["QueueFull"] * 2  # type: ignore[union-attr]
    gate.let(1000)
    await settle(*tasks)


async def test_rows_that_were_reported_as_failed_but_stand_are_heard_of(open_file: Open, path: Path) -> None:
    """A commit may fail in the report and succeed on the disk; the next batch finds its rows before its own."""
    gate = Gate()
    gate.let(1000)
    ledger = open_file(gate)
    heard: list[Row] = []
    ledger.subscribe(heard.extend)
    await ledger.append([build_entry(1)])
    with closing(sql.open_writer(path)) as other:
        sql.write_batch(other, 1, [prepare_entries([build_entry(2), build_entry(3)])], 0)
    assert [row.seq for row in await ledger.append([build_entry(2), build_entry(4)])] == [2, 4]
    assert [row.seq for row in heard] == [1, 2, 3, 4]
    assert ledger.state == fold(State(), heard)
