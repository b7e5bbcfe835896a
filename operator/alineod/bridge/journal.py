"""The journal of a pod: every event of its turns with a number, for whoever follows, across restarts of the bridge.

Numbered records are kept in segments, one a turn; a reader is told of those that someone removed or spoiled. Text
deltas have no number and are not kept, except that the text of the message being written lies beside the segments, so
that a bridge that is killed can say what survived.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from alineod.bridge.follower import Follower
from alineod.bridge.mark import Mark, read_mark, write_mark
from alineod.bridge.safe import fit_data, safe_data, safe_text
from alineod.bridge.segments import Gap, Segments
from alineod.errors import Conflict, Refused
from alineod.wire.base import encode
from alineod.wire.turns import BridgeReason, JournalEvent, JournalRecord, Session

_BATCH = 256 * 1024  # bytes read from disk at a time, for one reader
_KEPT_TURNS = 16  # segments that stay although they were read
_POLL = 0.1  # s
_RESERVE = 1000  # numbers that are marked at a time as given out


class Journal:
    """Opens the journal in `directory`. `now` gives Unix seconds."""

    def __init__(self, directory: Path, now: Callable[[], float]) -> None:
        self._mark_path = directory.with_name(f"begun-{directory.name}.json")
        mark = read_mark(self._mark_path)
        self._segments = Segments(directory, mark.reserved if mark else None)
        self.mark = mark or Mark(reserved=self._segments.seq)  # as it was left; `mark_turn` sets it
        self._partial = Partial(directory / "partial.txt")
        self._now = now
        self._followers: set[Follower] = set()
        self._turn = (0, "")  # the one that runs
        self._closed = False
        self._told = 0  # the highest number that a reader was given
        self._safe = self.mark.safe  # the highest number a reader says it has

    @property
    def seq(self) -> int:
        """The number of the newest record; 0 when there is none."""
        return self._segments.seq

    @property
    def surviving_text(self) -> str:
        """What was said of the message being written; outlives the bridge."""
        return self._partial.text

    def records(self) -> Iterator[JournalRecord]:
        """Every numbered record there is, oldest first."""
        for line in self._segments.all():
            with contextlib.suppress(msgspec.DecodeError):
                if not isinstance(line, Gap):
                    yield msgspec.json.decode(line, type=JournalRecord)

    def begin_turn(self, turn: int, turn_id: str, data: dict[str, Any], needed: int = 0) -> JournalRecord:
        """Record `turn.started` at the head of a new segment. The segment that holds record `needed` is kept."""
        self._drop_read(needed)
        self._segments.begin()
        self._partial.clear()
        self._turn = (turn, turn_id)
        return self.append(turn, turn_id, JournalEvent.TURN_STARTED, data)

    def mark_turn(self, turn: int, turn_id: str, session: Session | None, halfway: bool) -> None:
        """Keep beside the journal that this turn has begun, and where the conversation must stand."""
        with contextlib.suppress(OSError):  # a second line of defence: without it the journal alone must do
            self._write_mark(turn=turn, turn_id=turn_id, session=session, halfway=halfway, safe=self._safe)

    def lose(self, turn: int, turn_id: str, first: int, last: int, data: dict[str, Any]) -> JournalRecord:
        """Record that the numbers from `first` to `last` stand for nothing here, and go on above them."""
        self._segments.skip(last)
        self._partial.clear()
        return self.append(turn, turn_id, JournalEvent.LOST, {"from": first, "to": last, **data})

    def append(self, turn: int, turn_id: str, event: str, data: dict[str, Any]) -> JournalRecord:
        """Record an event; on disk when this returns."""
        if self.seq >= self.mark.reserved:
            self._write_mark()
        record = JournalRecord(
            seq=self.seq + 1,
            time=self._now(),
            turn=turn,
            turn_id=turn_id,
            event=event,
            data=fit_data(safe_data(data)),
        )
        line = encode(record)
        self._segments.append(line)
        if event in (JournalEvent.MESSAGE, JournalEvent.TURN_ENDED):
            self._partial.clear()
        self._tell(line)
        return record

    def add_text(self, turn: int, turn_id: str, delta: str) -> None:
        """Tell more text of the running message to followers, and keep it until the message is recorded."""
        text = safe_text(delta)
        self._partial.add(text)
        self._tell(self._encode_live(turn, turn_id, JournalEvent.TEXT_DELTA, {"text": text}))

    def reset_text(self, turn: int, turn_id: str) -> None:
        """Tell followers that the running message's text is void."""
        self._partial.clear()
        self._tell(self._encode_live(turn, turn_id, JournalEvent.TEXT_RESET, {}))

    def check_cursor(self, after: int) -> None:
        """Refuse a number that is not here.

        Raises:
            Conflict: reason `JournalReset`; who has heard so much heard it of a journal that is not here any more.
        """
        if after < 0:
            raise Refused("InvalidCursor", f"after={after} is no record: they count from 1")
        if after > self.seq:
            raise Conflict(BridgeReason.JOURNAL_RESET, f"record {after} is not here any more: the newest is {self.seq}")

    async def read(self, after: int) -> AsyncIterator[bytes]:
        """The records behind `after`, to the newest one now."""
        async for seq, chunk in self._stored(after):
            self._told = max(self._told, seq)
            yield chunk

    async def follow(self, after: int) -> AsyncIterator[bytes]:
        """The records behind `after`, then what comes, until the journal closes; an empty line when nothing comes.

        To ask for what is behind `after` says that everything before it is safe elsewhere.
        """
        self._safe = max(self._safe, after)
        follower = Follower(after)
        self._followers.add(follower)
        try:
            while True:
                async for seq, chunk in self._stored(follower.seq):
                    follower.seq = seq
                    yield chunk
                    self._told = max(self._told, follower.seq)
                if self._closed:
                    return
                # Nothing was awaited since the last read: between what was read and what is queued there is no gap.
                async for chunk in follower.live(self._running_text()):
                    yield chunk
                    self._told = max(self._told, follower.seq)
        finally:
            self._followers.discard(follower)

    async def until_told(self, seq: int, seconds: float) -> None:
        """Wait until a reader was given this record, or the time is over."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(seconds, 0.0)):
                while self._told < seq:  # noqa: ASYNC110  (once, at the end of a sandbox)
                    await asyncio.sleep(_POLL)

    async def _stored(self, after: int) -> AsyncIterator[tuple[int, bytes]]:
        place = self._segments.find(after)
        while place.seq < self.seq:
            found, place = self._segments.read(place, _BATCH)
            if chunk := b"".join(self._describe(one) if isinstance(one, Gap) else one for one in found):
                yield place.seq, chunk
            else:
                await asyncio.sleep(0)

    def _describe(self, gap: Gap) -> bytes:
        """In the place of records that are gone, unless a reader has them: then they may have been dropped."""
        first = max(gap.first, self._safe + 1)
        if first > gap.last:
            return b""
        data = {"from": first, "to": gap.last, "missing": gap.last - first + 1}
        record = JournalRecord(
            seq=gap.last, time=self._now(), turn=0, turn_id="", event=JournalEvent.DAMAGED, data=data
        )  # of no turn: nobody knows whose they were
        return encode(record) + b"\n"

    def close(self) -> None:
        """Let followers read what is there and end."""
        self._closed = True
        for follower in self._followers:
            follower.end()
        self._segments.close()
        self._partial.close()

    def _encode_live(self, turn: int, turn_id: str, event: str, data: dict[str, Any]) -> bytes:
        return encode(JournalRecord(time=self._now(), turn=turn, turn_id=turn_id, event=event, data=data))

    def _running_text(self) -> bytes:
        """What was said so far of the running message, for a reader that heard none or only some of it."""
        if not self._partial.text:
            return b""
        reset = self._encode_live(*self._turn, JournalEvent.TEXT_RESET, {})
        text = self._encode_live(*self._turn, JournalEvent.TEXT_DELTA, {"text": self._partial.text})
        return reset + b"\n" + text + b"\n"

    def _tell(self, line: bytes) -> None:
        for follower in self._followers:
            follower.push(self.seq, line + b"\n")

    def _drop_read(self, needed: int) -> None:
        """Forget old turns that a reader has: a pod that lives for months must not fill its volume."""
        old = self._segments.finished()[:-_KEPT_TURNS]
        dropped = [first for first, last in old if last <= self._safe and not first <= needed <= last]
        if dropped:
            self._write_mark(safe=self._safe)
        for first in dropped:
            self._segments.drop(first)

    def _write_mark(self, **change: Any) -> None:
        mark = msgspec.structs.replace(self.mark, reserved=self.seq + _RESERVE, **change)
        write_mark(self._mark_path, mark)
        self.mark = mark


class Partial:
    """The text of the message being written, in a file that only grows until the message is whole."""

    def __init__(self, path: Path) -> None:
        self.text = path.read_bytes().decode("utf-8", "ignore") if path.exists() else ""
        self._file = path.open("ab", buffering=0)

    def add(self, text: str) -> None:
        self.text += text
        self._file.write(text.encode())

    def clear(self) -> None:
        if self.text:
            self.text = ""
            self._file.truncate(0)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._file.close()
