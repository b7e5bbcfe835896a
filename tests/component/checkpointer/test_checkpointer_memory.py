"""The memory of the real processes that pack, upload and restore: as flat for a large home as for a small one."""

import asyncio
import os
import re
from asyncio.subprocess import Process
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.sandbox import Sandbox, StandIn, running, until

BULK = 150  # MB that no compression makes smaller
FILES = 20_000
LONG = 600.0  # s; on a machine that is busy with other things
GROWTH = 16  # MB that allocators may differ by; what is held whole would be ten times that


def fill_small(home: Path) -> None:
    (home / "notes").write_text("a few words")


def fill_bulk(home: Path) -> None:
    with (home / "bulk").open("wb") as file:
        for _ in range(BULK):
            file.write(os.urandom(1_000_000))


def fill_files(home: Path) -> None:
    for number in range(FILES):
        directory = home / f"d{number % 20}"
        directory.mkdir(exist_ok=True)
        (directory / f"a file with a name that takes some room {number}").write_bytes(b"x" * 100)


def read_peak(pid: int) -> float:
    """The most memory the process ever had, in MB; 0 when it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) / 1000 if found else 0.0


async def watch_to_its_end(process: Process) -> float:
    """Its peak, which only ever grows; the process takes the last of it with it."""
    peak = 0.0
    while process.returncode is None:
        peak = max(peak, read_peak(process.pid))
        await asyncio.sleep(0.002)
    assert process.returncode == 0
    return peak


async def measure(base: Path, operator: StandIn, fill: Callable[[Path], None]) -> tuple[float, float]:
    """The peaks of a sidecar that packs and uploads such a home, and of a restore of it."""
    first, second = Sandbox(base / "first", operator.url), Sandbox(base / "second", operator.url)
    operator.recorded.clear()
    await asyncio.to_thread(fill, first.home)
    async with running(first):
        assert first.process is not None
        await first.cut(1, operator.grant(1), LONG)
        await until(lambda: operator.recorded, LONG)
        packed = read_peak(first.process.pid)
    restored = await watch_to_its_end(await second.start_restore())
    assert sum(1 for _ in second.home.rglob("*")) == sum(1 for _ in first.home.rglob("*"))
    assert operator.bucket is not None
    operator.bucket.delete(operator.recorded[0].key)
    return packed, restored


@pytest.mark.behaviour("4.26")
async def test_memory_does_not_grow_with_the_home(base: Path, operator: StandIn) -> None:
    small = await measure(base / "small", operator, fill_small)
    for fill in (fill_bulk, fill_files):
        large = await measure(base / fill.__name__, operator, fill)
        for what, before, after in zip(("pack and upload", "restore"), small, large, strict=True):
            assert after < before + GROWTH, f"{fill.__name__}: {what} took {after:.0f} MB, a small home {before:.0f}"
