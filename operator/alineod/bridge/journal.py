"""The journal of a pod: every event of its turns with a number, for whoever follows, across restarts of the bridge.

Numbered records are kept in segments, one a turn. Text deltas have no number and are not kept, except that the text of
the message being written lies beside the segments, so that a bridge that is killed can say what survived.
"""

import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from alineod.bridge.follower import Follower
from alineod.bridge.safe import fit_data, safe_data, safe_text
from alineod.bridge.segments import Segments
from alineod.errors import Refused
from alineod.wire.base import encode
from alineod.wire.turns import JournalRecord

_BATCH = 256 * 1024  # bytes read from disk at a time, for one reader
_KEPT_TURNS = 16  # segments that stay although they were read


class Journal:
    """Opens the journal in `directory`. `now` gives Unix seconds."""

    def __init__(self, directory: Path, now: Callable[[], float]) -> None:
        self._segments = Segments(directory)
        self._partial = Partial(directory / "partial.txt")
        self._now = now
        self._followers: set[Follower] = set()
        self._turn = (0, "")  # the one that runs
        self._closed = False
        self._safe = 0  # the highest number a reader says it has

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
                yield msgspec.json.decode(line, type=JournalRecord)

    def begin_turn(self, turn: int, turn_id: str, data: dict[str, Any], needed: int = 0) -> JournalRecord:
        """Record `turn.started` at the head of a new segment. The segment that begins with `needed` is kept."""
        self._drop_read(needed)
        self._segments.begin()
        self._partial.clear()
        self._turn = (turn, turn_id)
        return self.append(turn, turn_id, "turn.started", data)

    def append(self, turn: int, turn_id: str, event: str, data: dict[str, Any]) -> JournalRecord:
        """Record an event; on disk when this returns."""
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
        if event in ("message", "turn.ended"):
            self._partial.clear()
        self._tell(line)
        return record

    def add_text(self, turn: int, turn_id: str, delta: str) -> None:
        """Tell more text of the running message to followers, and keep it until the message is recorded."""
        text = safe_text(delta)
        self._partial.add(text)
        self._tell(self._encode_live(turn, turn_id, "text.delta", {"text": text}))

    def reset_text(self, turn: int, turn_id: str) -> None:
        """Tell followers that the running message's text is void."""
        self._partial.clear()
        self._tell(self._encode_live(turn, turn_id, "text.reset", {}))

    def check_cursor(self, after: int) -> None:
        """Refuse a number that was never given out."""
        if not 0 <= after <= self.seq:
            raise Refused("InvalidCursor", f"after={after} is not between 0 and {self.seq}, the newest record here")

    async def read(self, after: int) -> AsyncIterator[bytes]:
        """The records behind `after`, to the newest one now."""
        async for _, chunk in self._stored(after):
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
                if self._closed:
                    return
                # Nothing was awaited since the last read: between what was read and what is queued there is no gap.
                async for chunk in follower.live(self._running_text()):
                    yield chunk
        finally:
            self._followers.discard(follower)

    async def _stored(self, after: int) -> AsyncIterator[tuple[int, bytes]]:
        place = self._segments.find(after)
        while (got := self._segments.read(place, _BATCH))[0]:
            lines, place = got
            yield place.seq, b"".join(lines)

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
        reset = self._encode_live(*self._turn, "text.reset", {})
        return reset + b"\n" + self._encode_live(*self._turn, "text.delta", {"text": self._partial.text}) + b"\n"

    def _tell(self, line: bytes) -> None:
        for follower in self._followers:
            follower.push(self.seq, line + b"\n")

    def _drop_read(self, needed: int) -> None:
        """Forget old turns that a reader has: a pod that lives for months must not fill its volume."""
        for first, last in self._segments.finished()[:-_KEPT_TURNS]:
            if last <= self._safe and first != needed:
                self._segments.drop(first)


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
