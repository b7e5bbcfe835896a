"""The journal's files: JSON lines in segments, each named by the number of its first record. Knows no turns.

Record number n is line n - first of its segment, so that a place is found without parsing. Only the newest segment is
written to; what a crash left half written there is cut off when it is opened. Every record is on the disk before anyone
is told of it: a number that a reader has seen never comes to mean something else, whatever happens to the machine.
"""

import bisect
import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import msgspec

from alineod.bridge.files import sync_file, write_all

_SUFFIX = ".jsonl"
_DIGITS = 12


@dataclass(frozen=True)
class Place:
    """A place to read on from: behind record `seq`, at `offset` bytes of the segment that begins with `first`."""

    seq: int
    first: int
    offset: int


class _Numbered(msgspec.Struct):
    seq: int


class Segments:
    """The segments of one directory, opened and mended."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._firsts = sorted(int(path.stem) for path in directory.glob(f"{'[0-9]' * _DIGITS}{_SUFFIX}"))
        self._file: BinaryIO | None = None
        self.seq = 0  # of the newest record
        if self._firsts:
            self.seq = self._mend(self._firsts[-1])

    def begin(self) -> None:
        """Write to a new segment from now on."""
        self.close()
        if self.seq + 1 not in self._firsts:
            self._firsts.append(self.seq + 1)

    def append(self, line: bytes) -> int:
        """Add one record, given without its line feed, whose number must be the next; returns when the disk has it."""
        file = self._file or self._open()
        end = os.fstat(file.fileno()).st_size
        try:
            write_all(file.fileno(), line + b"\n")
            os.fdatasync(file.fileno())
        except OSError:
            file.truncate(end)  # a full disk must not leave half a record before the next one
            raise
        self.seq += 1
        return self.seq

    def find(self, after: int) -> Place:
        """The place behind record `after`, or behind the newest record that is gone if that is later."""
        if not self._firsts:
            return Place(after, 1, 0)
        first = self._firsts[max(0, bisect.bisect_right(self._firsts, after + 1) - 1)]
        seq, offset = first - 1, 0
        for line in self._lines(first):
            if seq >= after:
                break
            seq, offset = seq + 1, offset + len(line)
        return Place(seq, first, offset)

    def read(self, place: Place, budget: int) -> tuple[list[bytes], Place]:
        """Records with their line feeds from `place` on, about `budget` bytes of them, and the place behind them."""
        lines: list[bytes] = []
        while budget > 0 and place.seq < self.seq:
            for line in self._lines(place.first, place.offset):
                place = Place(place.seq + 1, place.first, place.offset + len(line))
                lines.append(line)
                budget -= len(line)
                if budget <= 0 or place.seq >= self.seq:
                    break
            else:
                later = [first for first in self._firsts if first > place.first]
                if not later:
                    break  # someone took the file away
                place = Place(max(place.seq, later[0] - 1), later[0], 0)
        return lines, place

    def all(self) -> Iterator[bytes]:
        """Every record there is, oldest first."""
        for first in self._firsts:
            yield from self._lines(first)

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
        path = self._path(self._firsts[-1])
        self._file = path.open("ab", buffering=0)
        sync_file(self._directory)
        return self._file

    def _lines(self, first: int, offset: int = 0) -> Iterator[bytes]:
        path = self._path(first)
        if not path.exists():
            return
        with path.open("rb") as file:
            file.seek(offset)
            yield from file

    def _mend(self, first: int) -> int:
        """Cut off what is torn, damaged or out of order at the end of a segment; returns its last number."""
        seq, good = first - 1, 0
        for line in self._lines(first):
            if not line.endswith(b"\n") or _number(line) != seq + 1:
                break
            seq, good = seq + 1, good + len(line)
        path = self._path(first)
        if path.exists() and path.stat().st_size > good:
            os.truncate(path, good)
            sync_file(path)
        return seq

    def _path(self, first: int) -> Path:
        return self._directory / f"{first:0{_DIGITS}d}{_SUFFIX}"


def _number(line: bytes) -> int | None:
    try:
        return msgspec.json.decode(line, type=_Numbered).seq
    except msgspec.DecodeError:
        return None
