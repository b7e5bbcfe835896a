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
from alineod.bridge.segments import Segments
from alineod.errors import Refused

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


@settings(max_examples=60, deadline=None)
@given(cut=st.integers(0, 400), junk=st.binary(max_size=30))
def test_whatever_a_crash_leaves_at_the_end_the_records_before_it_stand(
    tmp_path_factory: pytest.TempPathFactory, cut: int, junk: bytes
) -> None:
    path = tmp_path_factory.mktemp("journal")
    segments = Segments(path)
    lines = [b'{"seq":%d,"x":"%s"}' % (n, b"y" * n) for n in range(1, 9)]
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
    mended.append(b'{"seq":%d}' % (mended.seq + 1))
    mended.close()
    assert Segments(path).seq == mended.seq


async def test_a_record_is_made_safe_and_made_to_fit(tmp_path: Path, open_journal: Open) -> None:
    journal = open_journal(tmp_path)
    journal.append(1, "id", "tool.ended", {"text": "\0" + "x" * 300_000, "half": "\ud800"})
    (line,) = [json.loads(raw) async for raw in journal.read(0)]
    assert line["data"]["text"].startswith("\ufffdxxx")
    assert "left out" in line["data"]["text"]
    assert line["data"]["half"] == "\ufffd"


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


@pytest.mark.parametrize(("after", "fine"), [(0, True), (3, True), (4, False), (-1, False)])
async def test_cursors(tmp_path: Path, open_journal: Open, after: int, fine: bool) -> None:
    journal = open_journal(tmp_path)
    fill(journal, turns=1, events=1)
    if fine:
        journal.check_cursor(after)
    else:
        with pytest.raises(Refused, match="between 0 and 3"):
            journal.check_cursor(after)


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


async def test_a_journal_that_someone_took_away_ends_and_does_not_spin(tmp_path: Path, open_journal: Open) -> None:
    journal = open_journal(tmp_path)
    fill(journal, turns=2, events=1)
    remove_all(tmp_path)
    assert await read(journal) == []
