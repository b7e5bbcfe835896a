"""What every ledger promises, whatever it is made of."""

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from alineod.domain.events import Row
from alineod.domain.fold import fold
from alineod.domain.state import State
from alineod.errors import Conflict, Refused, Unavailable
from alineod.ledger.memory import MemoryLedger
from alineod.ledger.open import Opening, open_ledger
from alineod.ledger.port import Ledger
from tests.unit.ledger.entries import build_entry, build_text


class StillClock:
    """Always the same moment."""

    def now(self) -> datetime:
        return datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0


@pytest.fixture(params=["memory", "sqlite"])
async def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Ledger]:
    made: Ledger
    if request.param == "memory":
        made = MemoryLedger(StillClock())
    else:
        made = await open_ledger(Opening(tmp_path, "default", 1), StillClock())
    yield made
    await made.close()


async def test_an_empty_ledger(ledger: Ledger) -> None:
    assert (ledger.acknowledged_seq, ledger.state) == (0, State())
    assert await ledger.read() == []
    assert len(ledger.secret) == 32
    assert ledger.epoch >= 1


@pytest.mark.behaviour("8.3", "8.4")
async def test_rows_are_numbered_without_gaps(ledger: Ledger) -> None:
    first = await ledger.append([build_entry(1), build_entry(2)])
    second = await ledger.append([build_entry(3)])
    assert [row.seq for row in (*first, *second)] == [1, 2, 3]
    assert second[0].prev == first[1].hash
    assert first[0].time == StillClock().now().timestamp()
    assert ledger.acknowledged_seq == 3


async def test_an_append_of_nothing(ledger: Ledger) -> None:
    assert await ledger.append([]) == []


async def test_the_same_again_stands_once(ledger: Ledger) -> None:
    first = await ledger.append([build_entry(1), build_entry(2)])
    again = await ledger.append([build_entry(2), build_entry(3), build_entry(1), build_entry(3)])
    assert [row.seq for row in again] == [2, 3, 1, 3]
    assert again[2] == first[0]
    assert await ledger.read() == [first[0], first[1], again[1]]


async def test_the_first_body_under_an_id_stands(ledger: Ledger) -> None:
    [first] = await ledger.append([build_text("first")])
    assert await ledger.append([build_text("second")]) == [first]


async def test_all_of_an_append_or_nothing(ledger: Ledger) -> None:
    await ledger.append([build_text("x", id="taken")])
    with pytest.raises(Conflict):
        await ledger.append([build_entry(1), build_text("x", id="taken", agent="default/other")])
    with pytest.raises(Refused):
        await ledger.append([build_entry(2), build_text("x", id="")])
    assert ledger.acknowledged_seq == 1
    assert [row.seq for row in await ledger.append([build_entry(3)])] == [2]


async def test_the_state_is_the_fold_of_what_stands(ledger: Ledger) -> None:
    before = ledger.state
    await ledger.append([build_entry(1)])
    await ledger.append([build_text("y"), build_entry(1)])
    assert before == State()
    assert ledger.state == fold(State(), await ledger.read())
    assert ledger.state.seq == 2


async def test_listeners_hear_every_row_once_in_order_after_the_fold(ledger: Ledger) -> None:
    heard: list[Row] = []

    def listen(rows: Sequence[Row]) -> None:
        assert ledger.state.seq == rows[-1].seq
        heard.extend(rows)

    def fail(rows: Sequence[Row]) -> None:
        raise RuntimeError("deaf")

    ledger.subscribe(fail)
    unsubscribe = ledger.subscribe(listen)
    await ledger.append([build_entry(1), build_entry(1), build_entry(2)])
    await ledger.append([build_entry(2)])
    await ledger.append([build_entry(3)])
    unsubscribe()
    unsubscribe()
    await ledger.append([build_entry(4)])
    assert [row.seq for row in heard] == [1, 2, 3]
    assert heard == (await ledger.read())[:3]


async def test_reading_by_run_agent_and_place(ledger: Ledger) -> None:
    wanted = [
        build_entry(1), build_entry(2, agent="default/other"), build_entry(3, run="default/b"),
        build_entry(4, agent=None), build_entry(5),
    ]  # fmt: skip
    rows = await ledger.append(wanted)
    assert await ledger.read(agent="default/survey-lead") == [rows[0], rows[2], rows[4]]
    assert await ledger.read(run="default/b") == [rows[2]]
    assert await ledger.read(run="default/survey", agent="default/survey-lead") == [rows[0], rows[4]]
    assert await ledger.read(run="default/survey", after=1, limit=2) == [rows[1], rows[3]]
    assert await ledger.read(after=5) == []
    assert await ledger.read(after=99) == []
    assert await ledger.read(after=-3) == rows
    assert await ledger.read(limit=0) == []


@pytest.mark.behaviour("11.4")
async def test_what_is_returned_is_what_is_read(ledger: Ledger) -> None:
    rows = await ledger.append([build_text("a\x00b\u2028c\ud800"), build_entry(1, value=float("nan"), big=2**63)])
    assert await ledger.read() == rows


async def test_a_closed_ledger_takes_nothing(ledger: Ledger) -> None:
    await ledger.append([build_entry(1)])
    await ledger.close()
    await ledger.close()
    with pytest.raises(Unavailable) as caught:
        await ledger.append([build_entry(2)])
    assert caught.value.reason == "LedgerClosed"


async def test_replication_without_a_bucket(ledger: Ledger) -> None:
    await ledger.append([build_entry(1)])
    assert (ledger.replication.configured, ledger.replication.acknowledged_seq) == (False, 1)
