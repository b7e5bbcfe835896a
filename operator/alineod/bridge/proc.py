"""The processes of the container, as the kernel tells of them. Knows nothing of who they are."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_END_LIMIT = 5.0  # s for processes to be gone that were killed; one that waits for a disk is not before it is done
_END_STEP = 0.01


@dataclass(frozen=True)
class Process:
    """One line of the process table. `state` is the kernel's letter."""

    pid: int
    parent: int
    state: str


def parse_stat(text: str) -> Process:
    """A process as /proc/<pid>/stat tells it; its name may hold anything, spaces and brackets too."""
    head, _, tail = text.rpartition(")")
    state, parent = tail.split()[:2]
    return Process(int(head.split(" ", 1)[0]), int(parent), state)


def read_table() -> list[Process]:
    """Every process we could signal; none where /proc is of another namespace, whose numbers mean others here."""
    if os.getpid() != int((_PROC / "self").readlink().name):
        return []
    table = []
    for path in _PROC.glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError):  # it ended meanwhile
            table.append(parse_stat(path.read_text(errors="replace")))
    return table


def send(pid: int, signum: int) -> None:
    """Signal it, if it is still there and ours to signal."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signum)


async def end_marked(marks: Mapping[str, str]) -> None:
    """End whoever was started with all of `marks` in its environment, and whom it starts meanwhile."""
    wanted = {f"{name}={value}".encode() for name, value in marks.items()}
    deadline = asyncio.get_running_loop().time() + _END_LIMIT
    while found := [process for process in read_table() if wanted <= _read_environment(process.pid)]:
        for process in found:
            send(process.pid, signal.SIGKILL)
        if asyncio.get_running_loop().time() > deadline:
            return
        await asyncio.sleep(_END_STEP)


def _read_environment(pid: int) -> set[bytes]:
    """What it was started with; empty for who has ended, or is none of our business."""
    if pid == os.getpid():
        return set()
    with contextlib.suppress(OSError):
        return set((_PROC / str(pid) / "environ").read_bytes().split(b"\0"))
    return set()
