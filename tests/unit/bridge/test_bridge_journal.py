"""The journal on disk and as its readers get it."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alineod.bridge import follower as follower_module
from alineod.bridge.journal import Journal
from alineod.bridge.mark import Mark, read_mark
from alineod.bridge.segments import Segments
from alineod.errors import Conflict, Refused
from alineod.wire.base import encode
from alineod.wire.turns import JournalRecord, Session

Open = Callable[[Path], Journal]


@pytest.fixture
def open_journal() -> Iterator[Open]:
    opened: list[Journal] = []

    def opening(path: Path) -> Journal:
        opened.append(Journal(path, itertools.count().__next__))
        return opened[-1]

    yield opening
    for journal in opened:
        journal.close()


def numbers(raw: bytes) -> list[int]:
    return [json.loads(line)["seq"] for line in raw.split(b"\n") if line]


async def read(journal: Journal, after: int = 0) -> list[int]:
    return numbers(b"".join([chunk async for chunk in journal.read(after)]))


async def take(stream: AsyncIterator[bytes], count: int) -> list[dict[str, Any]]:
    """The next `count` records of a stream."""
    records: list[dict[str, Any]] = []
    async for chunk in stream:
        records += [json.loads(line) for line in chunk.split(b"\n") if line]
        if len(records) >= count:
            return records
    return records


def firsts(path: Path) -> list[int]:
    """The first numbers of the segments on disk."""
    return sorted(int(file.stem) for file in path.glob("*.jsonl"))


def remove_all(path: Path) -> None:
    for file in path.glob("*.jsonl"):
        file.unlink()


def fill(journal: Journal, turns: int, events: int) -> None:
    first = journal.seq // (events + 2) + 1
    for turn in range(first, first + turns):
        journal.begin_turn(turn, f"id-{turn}", {})
        for _ in range(events):
            journal.append(turn, f"id-{turn}", "message", {"text": "x"})
        journal.append(turn, f"id-{turn}", "turn.ended", {})


async def test_numbers_go_on_over_turns_and_reopenings(tmp_path: Path, open_journal: Open) -> None:
    for _ in range(3):
        journal = open_journal(tmp_path)
        fill(journal, turns=2, events=3)
        journal.close()
    journal = open_journal(tmp_path)
    assert journal.seq == 30
    for after in range(31):
        assert await read(journal, after) == list(range(after + 1, 31))
    assert [record.seq for record in journal.records()] == list(range(1, 31))


def build_line(seq: int, text: str) -> bytes:
    return encode(JournalRecord(seq=seq, time=0.0, turn=1, turn_id="id", event="message", data={"text": text}))


@settings(max_examples=60)
@given(cut=st.integers(0, 400), junk=st.binary(max_size=30))
def test_whatever_a_crash_leaves_at_the_end_the_records_before_it_stand(
    tmp_path_factory: pytest.TempPathFactory, cut: int, junk: bytes
) -> None:
    path = tmp_path_factory.mktemp("journal")
    segments = Segments(path)
    lines = [build_line(n, "y" * n) for n in range(1, 9)]
    for line in lines:
        segments.append(line)
    segments.close()
    file = path / "000000000001.jsonl"
    whole = file.read_bytes()
    file.write_bytes(whole[: max(0, len(whole) - cut)] + junk)

    mended = Segments(path)
    kept = list(mended.all())
    assert kept == [line + b"\n" for line in lines[: mended.seq]]
    left = whole[: max(0, len(whole) - cut)].count(b"\n")
    assert mended.seq >= left
    mended.append(build_line(mended.seq + 1, ""))
    mended.close()
    assert Segments(path).seq == mended.seq


async def test_a_record_is_made_safe_and_made_to_fit(tmp_path: Path, open_journal: Open) -> None:
    journal = open_journal(tmp_path)
    journal.append(1, "id", "tool.ended", {"text": "\0" + "x" * 300_000, "half": "\ud800"})
    (one,) = [json.loads(raw) async for raw in journal.read(0)]
    assert one["data"]["text"].startswith("\ufffdxxx")
    assert "left out" in one["data"]["text"]
    assert one["data"]["half"] == "\ufffd"


async def test_text_survives_the_bridge_until_the_message_is_whole(tmp_path: Path, open_journal: Open) -> None:
    journal = open_journal(tmp_path)
    journal.begin_turn(1, "id", {})
    journal.add_text(1, "id", "half a ")
    journal.add_text(1, "id", "sentence é\0")
    assert open_journal(tmp_path).surviving_text == "half a sentence é\ufffd"
    journal.reset_text(1, "id")
    assert open_journal(tmp_path).surviving_text == ""
    journal.add_text(1, "id", "again")
    journal.append(1, "id", "message", {"text": "again"})
    assert open_journal(tmp_path).surviving_text == ""


async def test_a_follower_reads_what_is_there_and_then_what_comes(tmp_path: Path, open_journal: Open) -> None:
    journal = open_journal(tmp_path)
    fill(journal, turns=1, events=1)
    async with aclosing(journal.follow(1)) as stream:
        assert [one["seq"] for one in await take(stream, 2)] == [2, 3]
        waiting = asyncio.create_task(take(stream, 3))
        await asyncio.sleep(0)
        journal.begin_turn(2, "id-2", {})
        journal.add_text(2, "id-2", "hel")
        journal.append(2, "id-2", "message", {"text": "hello"})
        events = [(one.get("seq"), one["event"]) for one in await waiting]
        assert events == [(4, "turn.started"), (None, "text.delta"), (5, "message")]
        journal.close()
        assert await take(stream, 1) == []


async def test_many_followers_each_get_everything(tmp_path: Path, open_journal: Open) -> None:
    journal = open_journal(tmp_path)
    fill(journal, turns=2, events=2)

    async def collect(after: int) -> list[int]:
        return numbers(b"".join([chunk async for chunk in journal.follow(after)]))

    readers = [asyncio.create_task(collect(after)) for after in range(8)]
    for _ in range(3):
        await asyncio.sleep(0)
        fill(journal, turns=1, events=2)
    journal.close()
    for after, got in enumerate(await asyncio.gather(*readers)):
        assert got == list(range(after + 1, 21))


async def test_a_slow_reader_is_bounded_and_loses_no_record(tmp_path: Path, open_journal: Open) -> None:
    journal = open_journal(tmp_path)
    journal.begin_turn(1, "id", {})
    async with aclosing(journal.follow(0)) as stream:
        assert len(await take(stream, 1)) == 1
        pending = asyncio.create_task(take(stream, 1))
        await asyncio.sleep(0)
        for _ in range(40):
            journal.append(1, "id", "message", {"text": "x" * 60_000})
            journal.add_text(1, "id", "y" * 1000)
        (one,) = journal._followers
        assert one._size <= follower_module._LIMIT
        seen = [record["seq"] for record in await pending if "seq" in record]
        while seen[-1] < 41:
            seen += [record["seq"] for record in await take(stream, 1) if "seq" in record]
        assert seen == list(range(2, 42))
        # It missed deltas: the running message is told from its beginning.
        reset, delta = await take(stream, 2)
        assert reset["event"] == "text.reset"
        assert delta["data"]["text"] == journal.surviving_text


async def test_an_idle_follower_is_told_that_the_line_is_alive(
    tmp_path: Path, open_journal: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower_module, "KEEP_ALIVE", 0.01)
    journal = open_journal(tmp_path)
    async with aclosing(journal.follow(0)) as stream:
        assert await anext(stream) == b"\n"


async def test_cursors(tmp_path: Path, open_journal: Open) -> None:
    journal = open_journal(tmp_path)
    fill(journal, turns=1, events=1)
    journal.check_cursor(0)
    journal.check_cursor(3)
    with pytest.raises(Refused, match="InvalidCursor"):
        journal.check_cursor(-1)
    with pytest.raises(Conflict, match=r"JournalReset: record 4 .* the newest is 3"):
        journal.check_cursor(4)


async def test_old_turns_go_once_a_reader_has_them_but_not_the_one_needed(tmp_path: Path, open_journal: Open) -> None:
    journal = open_journal(tmp_path)
    fill(journal, turns=30, events=1)
    journal.begin_turn(31, "id-31", {}, needed=4)
    assert len(firsts(tmp_path)) == 31  # nobody said that they are safe
    async with aclosing(journal.follow(30)) as stream:
        await take(stream, 1)
        journal.begin_turn(32, "id-32", {}, needed=4)
    assert firsts(tmp_path)[:2] == [4, 31]
    assert await read(journal) == [4, 5, 6, *range(31, 93)]
    assert await read(open_journal(tmp_path), 10) == list(range(31, 93))


async def read_all(journal: Journal, after: int = 0) -> list[tuple[int, str, Any]]:
    """Number and event of every record, and how many are missing in its place."""
    raw = b"".join([chunk async for chunk in journal.read(after)])
    records = [json.loads(line) for line in raw.split(b"\n") if line]
    return [(one["seq"], one["event"], one["data"].get("missing") if "data" in one else None) for one in records]


async def test_a_journal_that_someone_took_away_is_said_to_be_damaged(tmp_path: Path, open_journal: Open) -> None:
    journal = open_journal(tmp_path)
    fill(journal, turns=2, events=1)
    remove_all(tmp_path)
    assert await read_all(journal) == [(6, "journal.damaged", 6)]
    assert await read_all(journal, 4) == [(6, "journal.damaged", 2)]
    assert await read_all(journal, 6) == []
    journal.begin_turn(3, "id-3", {})
    assert await read_all(journal, 4) == [(6, "journal.damaged", 2), (7, "turn.started", None)]


def spoil(path: Path, seq: int, *, by: bytes | None) -> None:
    """Replace one record, or remove its whole segment."""
    for file in path.glob("*.jsonl"):
        lines = file.read_bytes().splitlines(keepends=True)
        hit = [json.loads(line)["seq"] == seq for line in lines]
        if any(hit) and by is None:
            file.unlink()
        elif any(hit):
            file.write_bytes(b"".join(by if bad else line for line, bad in zip(lines, hit, strict=True)))


SPOILT = [
    b"no json\n", b"", b"\0\xff\n", b'{"seq":1}\n', b'{"seq":12}\n', b'{"seq":"5"}\n', b'{"seq":5', b"\n" * 9,
    b'{"seq":' + b"1" * 3_000_000 + b"}\n", b"[" * 200_000 + b"\n",
]  # fmt: skip


@pytest.mark.parametrize("reopened", [True, False])
@pytest.mark.parametrize("by", SPOILT, ids=range(len(SPOILT)))
async def test_a_record_that_is_spoilt_is_told_as_missing_and_the_others_are_there(
    tmp_path: Path, open_journal: Open, by: bytes, reopened: bool
) -> None:
    journal = open_journal(tmp_path / "journal")
    fill(journal, turns=3, events=3)
    journal.mark_turn(3, "id-3", None, halfway=False)
    spoil(tmp_path / "journal", 8, by=by)
    if reopened:
        journal.close()
        journal = open_journal(tmp_path / "journal")
    last = 9 if by == b'{"seq":5' else 8  # torn: it takes the next one with it
    expected = [*range(1, 8), last, *range(last + 1, 16)]
    got = await read_all(journal)
    assert [seq for seq, _, _ in got] == expected
    assert [(seq, missing) for seq, event, missing in got if event == "journal.damaged"] == [(last, last - 7)]
    assert journal.append(4, "id-4", "message", {}).seq == 16
    assert (await read_all(journal, 14))[-1] == (16, "message", None)


@pytest.mark.parametrize("seq", [1, 6, 11])
async def test_a_segment_that_is_missing_is_told(tmp_path: Path, open_journal: Open, seq: int) -> None:
    journal = open_journal(tmp_path)
    fill(journal, turns=3, events=3)
    spoil(tmp_path, seq, by=None)
    assert [one for one in await read_all(journal) if one[1] == "journal.damaged"] == [(seq + 4, "journal.damaged", 5)]


async def test_numbers_go_on_above_what_was_lost(tmp_path: Path, open_journal: Open) -> None:
    journal = open_journal(tmp_path)
    fill(journal, turns=1, events=3)
    lost = journal.lose(1, "id-1", 6, 40, {})
    assert (lost.seq, lost.data) == (41, {"from": 6, "to": 40})
    again = open_journal(tmp_path)
    assert again.seq == 41
    assert [one[0] for one in await read_all(again)] == [1, 2, 3, 4, 5, 40, 41]


def test_what_is_kept_beside_the_journal_outlives_it(tmp_path: Path, open_journal: Open) -> None:
    session = Session(id="s", leaf="l")
    journal = open_journal(tmp_path)
    fill(journal, turns=1, events=3)
    journal.mark_turn(1, "id-1", session, halfway=True)
    journal.close()
    remove_all(tmp_path)
    again = open_journal(tmp_path)
    assert again.seq == 0
    mark = again.mark
    assert (mark.turn, mark.turn_id, mark.session, mark.halfway) == (1, "id-1", session, True)
    assert mark.reserved >= 5


async def test_every_number_given_out_is_reserved_first(tmp_path: Path, open_journal: Open) -> None:
    journal = open_journal(tmp_path)
    for _ in range(2500):
        seq = journal.append(1, "id", "message", {}).seq or 0
        assert open_mark(tmp_path).reserved >= seq


def open_mark(path: Path) -> Mark:
    mark = read_mark(path.with_name(f"begun-{path.name}.json"))
    assert mark is not None
    return mark
