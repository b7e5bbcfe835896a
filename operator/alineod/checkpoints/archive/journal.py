"""Copies one turn's records out of the bridge's journal, a directory of files with one JSON record per line.

The directory belongs to the agent's user and is read as the home is: links are not followed, a line that cannot be
read is left out, and no line however long is held whole in memory beyond a limit.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import msgspec

from alineod.wire.base import Message

MAX_LINE = 8 * 1024 * 1024
_SAFELY = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class _Key(Message, frozen=True):
    turn: int
    turn_id: str


def copy_turn(journal: Path, turn: int, turn_id: str, out: IO[bytes]) -> int:
    """Write the records of the turn to `out`, in the order of the journal; returns how many."""
    wanted = _Key(turn=turn, turn_id=turn_id)
    count = 0
    for line in _read_lines(journal):
        if _parse_key(line) == wanted:
            out.write(line.rstrip(b"\n") + b"\n")
            count += 1
    return count


def _read_lines(journal: Path) -> Iterator[bytes]:
    try:
        directory = os.open(journal, _SAFELY | os.O_DIRECTORY)
    except OSError:
        return
    try:
        with os.scandir(directory) as entries:
            names = sorted(entry.name for entry in entries)
        for name in names:
            yield from _read_file(name, directory)
    finally:
        os.close(directory)


def _read_file(name: str, directory: int) -> Iterator[bytes]:
    try:
        fd = os.open(name, _SAFELY, dir_fd=directory)
    except OSError:
        return
    with os.fdopen(fd, "rb") as file:
        if stat.S_ISREG(os.fstat(fd).st_mode):
            yield from iter(lambda: file.readline(MAX_LINE), b"")


def _parse_key(line: bytes) -> _Key | None:
    try:
        return msgspec.json.decode(line, type=_Key)
    except msgspec.DecodeError:
        return None
