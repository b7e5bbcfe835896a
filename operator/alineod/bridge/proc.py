"""The processes of the container, as the kernel tells of them. Knows nothing of who they are."""

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_MEMORY = (Path("/sys/fs/cgroup/memory.events"), Path("/sys/fs/cgroup/memory/memory.oom_control"))
"""Where the kernel counts whom it has killed for memory in this container, by version 2 or 1 of its groups."""
_END_LIMIT = 5.0  # s for processes to be gone that were killed; one that waits for a disk goes only when that is done
_END_STEP = 0.01
_log = logging.getLogger("alineod.bridge")


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
    deadline, seen_none = asyncio.get_running_loop().time() + _END_LIMIT, 0
    while seen_none < 2:  # one that becomes another program has no environment for a moment
        found = [process for process in read_table() if wanted <= _read_environment(process.pid)]
        for process in found:
            send(process.pid, signal.SIGKILL)
        seen_none = 0 if found else seen_none + 1
        if asyncio.get_running_loop().time() > deadline:
            _log.warning("these do not end: %s", found)
            return
        await asyncio.sleep(_END_STEP)


def count_killed_for_memory(places: Iterable[Path] = _MEMORY) -> int:
    """How many processes of the container the kernel has killed because memory ran out; 0 where it does not say."""
    for path in places:
        with contextlib.suppress(OSError, ValueError):
            counts = dict(line.split() for line in path.read_text().splitlines())
            return int(counts.get("oom_kill", 0))
    return 0


def _read_environment(pid: int) -> set[bytes]:
    """What it was started with; empty for who has ended, or is none of our business."""
    if pid == os.getpid():
        return set()
    with contextlib.suppress(OSError):
        return set((_PROC / str(pid) / "environ").read_bytes().split(b"\0"))
    return set()
