"""A volume that is full, read-only, damaged or gone under a running ledger. As root: the volumes are real ones."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from alineod.clock import SystemClock
from alineod.errors import AlineoError, Damaged, Unavailable
from alineod.ledger import open as module
from alineod.ledger import pace, start
from alineod.ledger.acknowledge import ReplicaAcknowledger
from alineod.ledger.cli import main as ledger_command
from alineod.ledger.open import open_ledger
from alineod.ledger.sqlite import Limits, SqliteLedger
from tests.component.ledger.conftest import World
from tests.component.ledger.test_replication import Sidecars, until
from tests.component.ledger.test_trouble_bucket import build_noise
from tests.unit.ledger.entries import build_entry

CLOCK = SystemClock()
MEGABYTE = 1 << 20


def run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def small(world: World) -> Iterator[Path]:
    """A volume of 6 MB in memory, where the ledger goes."""
    place = world.directory / "volume"
    place.mkdir()
    run("mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(place))
    yield place
    run("umount", "--lazy", str(place))


@pytest.fixture
def fragile(world: World) -> Iterator[Callable[[], None]]:
    """A volume whose file system can be told that it has found an error, after which nobody may write to it."""
    image, place = world.directory / "image", world.directory / "volume"
    place.mkdir()
    with image.open("wb") as file:
        file.truncate(32 * MEGABYTE)
    run("mkfs.ext4", "-q", str(image))
    run("mount", "-o", "loop,errors=remount-ro", str(image), str(place))
    device = Path(run("findmnt", "-n", "-o", "SOURCE", str(place))).name

    def trigger() -> None:
        Path(f"/sys/fs/ext4/{device}/trigger_fs_error").write_text("1")

    yield trigger
    run("umount", "--lazy", str(place))


class Open:
    """Opens ledgers with short limits, notes what ends them, and closes them."""

    def __init__(self) -> None:
        self.ends: list[AlineoError] = []
        self.opened: list[SqliteLedger] = []

    async def __call__(self, world: World, *, remote: bool, volume: str = "volume", run: str = "run") -> SqliteLedger:
        where = world.build_remote(run) if remote else None
        opening = world.build_opening(volume, epoch=len(self.opened) + 1)
        self.opened.append(await open_ledger(opening, CLOCK, where, fatal=self.ends.append))
        return self.opened[-1]


@pytest.fixture
async def open_there(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Open]:
    limits = Limits(failing=0.2, close=0.5, volume=2.0)
    monkeypatch.setattr(module, "SqliteLedger", partial(SqliteLedger, limits=limits))
    opens = Open()
    yield opens
    for ledger in opens.opened:
        await ledger.close()


async def fill(ledger: SqliteLedger) -> int:
    """Append until it is held; how many were acknowledged."""
    for number in range(100):
        try:
            await ledger.append([build_entry(number + 1, text="x" * 100_000)])
        except Unavailable:
            return number
    raise AssertionError("there is room for everything")


def read_failing(ledger: SqliteLedger) -> AlineoError:
    failing = ledger.replication.failing
    assert failing is not None
    return failing.failure


async def test_a_full_volume_is_said_and_room_lets_it_go_on(world: World, small: Path, open_there: Open) -> None:
    ballast = small / "ballast"
    ledger = await open_there(world, remote=False)
    ballast.write_bytes(bytes(3 * MEGABYTE))
    written = await fill(ledger)
    assert read_failing(ledger).reason == "LedgerDiskFull"
    assert f"The volume of the ledger {small}" in read_failing(ledger).message
    await asyncio.sleep(3)  # longer than a replica's owner would wait: nobody else has a better volume
    assert (ledger.acknowledged_seq, open_there.ends) == (written, [])
    ballast.unlink()
    await until(lambda: ledger.acknowledged_seq == written + 1)
    assert ledger.replication.failing is None
    rows = await ledger.append([build_entry(n, text="x" * 100_000) for n in range(1, written + 3)])
    assert [row.seq for row in rows] == list(range(1, written + 3))
    assert await asyncio.to_thread(ledger_command, ["verify", "--dir", str(small)], {}) == 0


@pytest.mark.behaviour("9.4")
async def test_with_a_bucket_a_full_volume_leaves_the_term_to_another(
    world: World, small: Path, start_sidecar: Sidecars, open_there: Open
) -> None:
    sidecar = start_sidecar()
    ledger = await open_there(world, remote=True)
    (small / "ballast").write_bytes(bytes(3 * MEGABYTE))
    written = await fill(ledger)
    await until(lambda: bool(open_there.ends))
    assert [end.reason for end in open_there.ends] == ["LedgerDiskFull"]
    with pytest.raises(Unavailable):
        await ledger.append([build_entry(1000)])
    assert ledger.acknowledged_seq == written
    sidecar.kill()

    start_sidecar("run2")
    other = await open_there(world, remote=True, volume="other", run="run2")
    assert [row.id for row in await other.read()][:written] == [row.id for row in await ledger.read()]


async def test_a_volume_that_litestream_finds_full_before_sqlite_does_leaves_the_term_to_another(
    world: World, small: Path, start_sidecar: Sidecars, open_there: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start, "ReplicaAcknowledger", partial(ReplicaAcknowledger, patience=2.0))
    start_sidecar()
    ledger = await open_there(world, remote=True)
    await ledger.append([build_entry(1, text=build_noise(1))])
    # Room for the transaction, but not for Litestream's copy of it.
    (small / "ballast").write_bytes(bytes(shutil.disk_usage(small).free - int(1.4 * MEGABYTE)))
    with pytest.raises(Unavailable):
        await ledger.append([build_entry(2, text=build_noise(2))])
    assert ledger.replication.committed_seq == 2  # SQLite had room
    await until(lambda: bool(open_there.ends))
    assert [end.reason for end in open_there.ends] == ["LedgerDiskFull"]
    assert ledger.acknowledged_seq == 1


async def test_a_volume_that_becomes_read_only_leaves_the_term_to_another(
    world: World, fragile: Callable[[], None], start_sidecar: Sidecars, open_there: Open
) -> None:
    sidecar = start_sidecar()
    ledger = await open_there(world, remote=True)
    rows = await ledger.append([build_entry(1)])
    fragile()
    with pytest.raises(Unavailable):
        await ledger.append([build_entry(2)])
    assert read_failing(ledger).reason == "LedgerReadOnly"
    await until(lambda: bool(open_there.ends))
    assert [end.reason for end in open_there.ends] == ["LedgerReadOnly"]
    assert ledger.acknowledged_seq == 1
    sidecar.kill()

    start_sidecar("run2")
    other = await open_there(world, remote=True, volume="other", run="run2")
    assert await other.read() == rows


async def test_a_file_that_may_not_be_written_is_said_and_goes_on_when_it_may(world: World, open_there: Open) -> None:
    ledger = await open_there(world, remote=False)
    await ledger.append([build_entry(1)])
    [log] = world.directory.glob("volume/e*/ledger.db-wal")
    run("chattr", "+i", str(log))
    try:
        with pytest.raises(Unavailable):
            await ledger.append([build_entry(2)])
        assert read_failing(ledger).reason == "LedgerWriteFailed"
        assert ledger.acknowledged_seq == 1
    finally:
        run("chattr", "-i", str(log))
    await until(lambda: ledger.acknowledged_seq == 2)


@pytest.mark.behaviour("9.4")
async def test_bytes_that_change_under_a_leader_end_it_and_the_bucket_has_everything(
    world: World, start_sidecar: Sidecars, open_there: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "BROKEN_LIMIT", 3.0)
    sidecar = start_sidecar()
    ledger = await open_there(world, remote=True)
    rows = [row for n in range(40) for row in await ledger.append([build_entry(n * 100 + k) for k in range(100)])]
    scribble(world.directory / "volume/e000000001")
    outcomes = [await settle(ledger.append([build_entry(n)])) for n in range(4000, 4020)]
    await until(lambda: bool(open_there.ends))
    assert isinstance(open_there.ends[0], Damaged)
    # Whoever reads one of the pages first: SQLite, or Litestream.
    assert open_there.ends[0].reason in ("DatabaseDamaged", "ReplicationBroken")
    assert ledger.acknowledged_seq == 4000 + sum(outcome is None for outcome in outcomes)
    await ledger.close()
    sidecar.kill()

    start_sidecar("run2")
    again = await open_there(world, remote=True, run="run2")
    assert again.acknowledged_seq >= ledger.acknowledged_seq
    assert (await again.read(limit=5000))[: len(rows)] == rows
    assert [path.name for path in (world.directory / "volume").glob("damaged-*")]


async def settle(append: Awaitable[object]) -> AlineoError | None:
    try:
        await append
    except AlineoError as error:
        return error
    return None


def scribble(directory: Path) -> None:
    """Change every page of the tables and of the log, but for the first."""
    for name in ("ledger.db", "ledger.db-wal"):
        with (directory / name).open("r+b") as file:
            for place in range(8192, os.fstat(file.fileno()).st_size, 4096):
                file.seek(place)
                file.write(b"\xff" * 64)


async def test_a_volume_that_is_gone_ends_the_leader_and_the_bucket_has_everything(
    world: World, start_sidecar: Sidecars, open_there: Open
) -> None:
    sidecar = start_sidecar()
    ledger = await open_there(world, remote=True)
    rows = await ledger.append([build_entry(1), build_entry(2)])
    shutil.rmtree(world.directory / "volume")
    with pytest.raises(Damaged) as caught:
        await ledger.append([build_entry(3)])
    assert caught.value.reason == "LedgerGone"
    assert ledger.acknowledged_seq == 2
    await until(lambda: bool(open_there.ends))
    await ledger.close()
    sidecar.kill()

    start_sidecar("run2")
    again = await open_there(world, remote=True, run="run2")
    assert await again.read() == rows
