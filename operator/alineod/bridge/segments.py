"""The journal's files: JSON lines in segments, each named by the number of its first record. Knows no turns.

Every record is on the disk before anyone is told of it: a number that a reader has seen never comes to mean something
else, whatever happens to the machine. Only the newest segment is written to; what a crash left half written there is
cut off when it is opened. Records are found by the number in them: whoever else writes here may have spoiled or removed
some, and what is missing is said as a gap.
"""

import bisect
import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import msgspec

from alineod.files import sync_file, write_all
from alineod.wire.turns import JournalRecord

_SUFFIX = ".jsonl"
_DIGITS = 12
_LONGEST = 512 * 1024  # bytes of a line; what is longer is none of ours
_READ = 256 * 1024  # bytes at a time, where everything is read


@dataclass(frozen=True)
class Place:
    """A place to read on from: behind record `seq`, at `offset` bytes of the segment that begins with `first`."""

    seq: int
    first: int
    offset: int


@dataclass(frozen=True)
class Gap:
    """The records from `first` to `last`, which are not there."""

    first: int
    last: int


class Segments:
    """The segments of one directory, opened and mended.

    Args:
        reserved: the highest number that may have been given out; None where nobody knows.
    """

    def __init__(self, directory: Path, reserved: int | None = None) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        firsts = sorted(int(path.stem) for path in directory.glob(f"{'[0-9]' * _DIGITS}{_SUFFIX}"))
        self._firsts = [first for first in firsts if reserved is None or first <= reserved + 1]
        self._file: BinaryIO | None = None
        self.seq = 0  # of the newest record
        if self._firsts:
            self.seq = self._mend(self._firsts[-1], reserved or 0)

    def begin(self) -> None:
        """Write to a new segment from now on."""
        self.close()
        if self.seq + 1 not in self._firsts:
            self._firsts.append(self.seq + 1)

    def skip(self, seq: int) -> None:
        """Go on counting above `seq`, in a new segment."""
        self.seq = max(self.seq, seq)
        self.begin()

    def append(self, line: bytes) -> int:
        """Add one record, given without its line feed, whose number must be the next; returns when the disk has it."""
        file = self._file or self._open()
        stat = os.fstat(file.fileno())
        if not stat.st_nlink:  # someone removed it: what is written there would be gone with us
            self.begin()
            file = self._open()
            stat = os.fstat(file.fileno())
        try:
            write_all(file.fileno(), line + b"\n")
            os.fdatasync(file.fileno())
        except OSError:
            file.truncate(stat.st_size)  # a full disk must not leave half a record before the next one
            raise
        self.seq += 1
        return self.seq

    def find(self, after: int) -> Place:
        """A place from which everything behind record `after` is read."""
        at = bisect.bisect_right(self._firsts, after + 1) - 1
        return Place(after, self._firsts[max(0, at)] if self._firsts else 1, 0)

    def read(self, place: Place, budget: int) -> tuple[list[bytes | Gap], Place]:
        """What there is from `place` on, read from about `budget` bytes, and the place behind it.

        Records come with their line feeds, in order, each once. There may be none in these bytes.
        """
        found: list[bytes | Gap] = []
        while budget > 0 and place.seq < self.seq:
            for line in self._lines(place.first, place.offset):
                budget -= len(line)
                number, offset = _number(line), place.offset + len(line)
                if number is None or not place.seq < number <= self._last(place.first):
                    place = Place(place.seq, place.first, offset)
                else:
                    found += [*_find_gap(place.seq, number), line]
                    place = Place(number, place.first, offset)
                if budget <= 0 or place.seq >= self.seq:
                    break
            else:
                place = self._go_on(place, found)
        return found, place

    def all(self) -> Iterator[bytes | Gap]:
        """Every record there is, oldest first."""
        place = self.find(0)
        while place.seq < self.seq:
            found, place = self.read(place, _READ)
            yield from found

    def drop(self, first: int) -> None:
        """Remove a whole segment; the newest stays."""
        if first in self._firsts[:-1]:
            self._firsts.remove(first)
            self._path(first).unlink(missing_ok=True)

    def finished(self) -> list[tuple[int, int]]:
        """First and last record of every segment but the newest, oldest first."""
        return [(first, later - 1) for first, later in itertools.pairwise(self._firsts)]

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> BinaryIO:
        if not self._firsts:
            self._firsts.append(self.seq + 1)
        self._directory.mkdir(parents=True, exist_ok=True)
        self._file = self._path(self._firsts[-1]).open("ab", buffering=0)
        sync_file(self._directory)
        return self._file

    def _lines(self, first: int, offset: int = 0) -> Iterator[bytes]:
        path = self._path(first)
        if not path.exists():
            return
        with path.open("rb") as file:
            file.seek(offset)
            yield from iter(lambda: file.readline(_LONGEST), b"")

    def _last(self, first: int) -> int:
        """The highest number that the segment may hold."""
        later = bisect.bisect_right(self._firsts, first)
        return self._firsts[later] - 1 if later < len(self._firsts) else self.seq

    def _go_on(self, place: Place, found: list[bytes | Gap]) -> Place:
        """Where to read after the end of a segment; behind the last one everything that is missing is missing."""
        later = bisect.bisect_right(self._firsts, place.first)
        if later < len(self._firsts):
            return Place(place.seq, self._firsts[later], 0)
        found += _find_gap(place.seq, self.seq + 1)
        return Place(self.seq, place.first, place.offset)

    def _mend(self, first: int, reserved: int) -> int:
        """Cut off what is torn or damaged at the end of a segment; returns its last number.

        Damage in the middle stays, where `reserved` says that the numbers behind it are ours.
        """
        seq, good, offset = first - 1, 0, 0
        for line in self._lines(first):
            offset += len(line)
            number = _number(line)
            if number is not None and seq < number <= max(reserved, seq + 1):
                seq, good = number, offset
        if offset > good:
            os.truncate(self._path(first), good)
            sync_file(self._path(first))
        return seq

    def _path(self, first: int) -> Path:
        return self._directory / f"{first:0{_DIGITS}d}{_SUFFIX}"


def _find_gap(seq: int, number: int) -> list[Gap]:
    """What is missing between record `seq` and record `number`."""
    return [Gap(seq + 1, number - 1)] if number > seq + 1 else []


def _number(line: bytes) -> int | None:
    """The number of a record; None for what is none."""
    try:
        return msgspec.json.decode(line, type=JournalRecord).seq if line.endswith(b"\n") else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
