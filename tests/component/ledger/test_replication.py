"""The ledger with the real Litestream and a real bucket."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from alineod.clock import SystemClock
from alineod.domain.events import Row
from alineod.domain.fold import fold
from alineod.domain.state import State
from alineod.errors import AlineoError, Damaged, Denied, NotFound, Unavailable
from alineod.ledger.cli import main as ledger_command
from alineod.ledger.litestream import KNOWN_KEYS, build_config, find_program, render_config
from alineod.ledger.open import open_ledger
from alineod.ledger.places import Volume
from alineod.ledger.replica import Replica
from alineod.ledger.sqlite import SqliteLedger
from alineod.settings import BucketSettings
from tests.component.ledger.conftest import Program, World
from tests.support.seaweed import Seaweed, running_seaweed
from tests.unit.ledger.entries import build_entry

Sidecars = Callable[..., Program]
CLOCK = SystemClock()


async def open_world(world: World, volume: str = "volume", epoch: int = 1, run: str = "run") -> SqliteLedger:
    return await open_ledger(world.build_opening(volume, epoch), CLOCK, world.build_remote(run))


async def open_in_vain(world: World, reason: str) -> AlineoError:
    """Open until this is why it waits."""
    said: list[AlineoError] = []
    opening = asyncio.create_task(open_ledger(world.build_opening(), CLOCK, world.build_remote(), report=said.append))
    await until(lambda: reason in [error.reason for error in said])
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    return next(error for error in said if error.reason == reason)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110  (it waits for another process)
            await asyncio.sleep(0.02)


@pytest.mark.behaviour("9.3", "9.4", "9.6")
async def test_what_was_acknowledged_comes_back_from_the_bucket_alone(world: World, start_sidecar: Sidecars) -> None:
    sidecar = start_sidecar()
    first = await open_world(world)
    rows = await first.append([build_entry(n) for n in range(1, 50)])
    rows += await first.append([build_entry(50)])
    sidecar.kill()
    shutil.rmtree(world.directory / "volume")

    start_sidecar("run2")
    again = await open_world(world, "volume2", epoch=2, run="run2")
    assert await again.read() == rows
    assert again.state == fold(State(), rows)
    assert (again.secret, again.epoch) == (first.secret, 2)
    assert [row.seq for row in await again.append([build_entry(50), build_entry(51)])] == [50, 51]
    await again.close()
    await first.close()


async def test_what_the_bucket_never_got_is_kept_by_the_volume(world: World, start_sidecar: Sidecars) -> None:
    sidecar = start_sidecar()
    ledger = await open_world(world)
    await ledger.append([build_entry(1)])
    sidecar.kill()
    unconfirmed = asyncio.ensure_future(ledger.append([build_entry(2)]))
    await until(lambda: ledger.replication.committed_seq == 2)
    assert ledger.acknowledged_seq == 1
    await ledger.close()
    with pytest.raises(Unavailable):
        await unconfirmed

    start_sidecar()
    again = await open_world(world)
    assert [row.seq for row in await again.read()] == [1, 2]
    assert again.epoch == 2
    await again.close()


async def test_a_later_term_in_the_bucket_goes_before_what_a_volume_adds(world: World, start_sidecar: Sidecars) -> None:
    sidecar = start_sidecar("a")
    first = await open_world(world, "a", run="a")
    await first.append([build_entry(1)])
    sidecar.kill()
    lost = asyncio.ensure_future(first.append([build_entry(2, text="never acknowledged")]))
    await until(lambda: first.replication.committed_seq == 2)
    await first.close()
    with pytest.raises(Unavailable):
        await lost

    start_sidecar("b")
    second = await open_world(world, "b", epoch=2, run="b")
    await second.append([build_entry(2, text="another")])
    await second.close()

    start_sidecar("a")
    third = await open_world(world, "a", epoch=3, run="a")
    rows = await third.read()
    assert [row.body.data.get("text") for row in rows] == [None, "another"]  # type: ignore[union-attr]
    assert third.epoch == 3
    await third.close()


async def test_a_new_cluster_counts_on_from_the_bucket(world: World, start_sidecar: Sidecars) -> None:
    """Its lease begins at one; the terms in the bucket do not."""
    start_sidecar("old")
    await (await open_world(world, "old", epoch=41, run="old")).close()
    start_sidecar("new")
    ledger = await open_world(world, "new", epoch=1, run="new")
    assert ledger.epoch == 42
    await ledger.close()


async def test_a_damaged_volume_is_set_aside_for_the_same_term_in_the_bucket(
    world: World, start_sidecar: Sidecars
) -> None:
    sidecar = start_sidecar()
    ledger = await open_world(world)
    rows = await ledger.append([build_entry(1), build_entry(2)])
    await ledger.close()
    sidecar.kill()
    path = Volume(world.directory / "volume").file(1)
    path.with_name("ledger.db-wal").unlink()
    path.write_bytes(b"scribble" * 4096)
    start_sidecar("run2")
    again = await open_world(world, run="run2")
    assert await again.read() == rows
    assert (world.directory / "volume/damaged-e000000001/ledger.db").read_bytes().startswith(b"scribble")
    await again.close()


async def test_a_replica_with_a_hole_is_refused(world: World, start_sidecar: Sidecars) -> None:
    sidecar = start_sidecar()
    ledger = await open_world(world)
    await ledger.append([build_entry(1)])
    await ledger.close()
    sidecar.kill()
    bucket = world.build_bucket()
    for found in list(bucket.list(Replica(world.bucket, world.instance, 1).prefix)):
        bucket.put(found.key, b"x")
    with pytest.raises(Damaged) as caught:
        await open_world(world, "volume2", run="run2")
    assert caught.value.reason == "ReplicaDamaged"
    assert caught.value.message.startswith(
        f"The replica some/prefix/{world.instance}/ledger/e000000001/ in the bucket cannot be restored. Litestream"
    )
    assert not [path for path in (world.directory / "volume2").iterdir() if path.name.startswith("e")]


@pytest.mark.behaviour("9.8", "9.9")
async def test_a_bucket_that_is_away_lets_nothing_begin(world: World, start_sidecar: Sidecars) -> None:
    nobody = BucketSettings("alineo", "", "http://127.0.0.1:9", "us-east-1")
    away = World(Seaweed(world.directory, "alineo", {"s3.port": 9}), world.instance, world.directory)
    with pytest.raises(Unavailable) as caught:
        await open_world(away)
    assert caught.value.reason == "BucketUnreachable"
    assert caught.value.message.startswith(f"bucket 'alineo' at {nobody.endpoint} cannot be reached")
    assert not (world.directory / "volume").exists()


@pytest.mark.behaviour("9.8")
async def test_wrong_keys_are_said_by_the_first_look(world: World) -> None:
    for keys in ({"AWS_SECRET_ACCESS_KEY": "wrong"}, {"AWS_ACCESS_KEY_ID": "nobody"}):
        with pytest.raises(Denied) as caught:
            await open_ledger(world.build_opening(), CLOCK, world.build_remote(**keys))
        assert caught.value.reason == "BucketAccessDenied"
        assert "check the access key, the secret key and what they may do" in caught.value.message


async def test_wrong_keys_of_the_sidecar_are_said_by_the_first_confirmation(
    world: World, start_sidecar: Sidecars
) -> None:
    start_sidecar(AWS_SECRET_ACCESS_KEY="wrong")
    said = await open_in_vain(world, "BucketAccessDenied")
    assert said.message.startswith(f"Access to the bucket {world.store.bucket}")


async def test_a_missing_bucket(world: World) -> None:
    missing = World(Seaweed(world.directory, "nowhere", world.store.ports), world.instance, world.directory)
    with pytest.raises(NotFound) as caught:
        await open_world(missing)
    assert caught.value.message.startswith(f"bucket 'nowhere' at {world.store.endpoint} does not exist; create it")


async def test_no_sidecar(world: World) -> None:
    said = await open_in_vain(world, "ReplicatorDown")
    assert said.message.startswith("The sidecar litestream has given no sign of life yet. Look at that container")
    assert f"Litestream does not answer on {world.directory}/run/litestream.sock" in said.message


async def test_starts_that_the_bucket_never_confirmed_leave_one_directory(
    world: World, start_sidecar: Sidecars
) -> None:
    for _ in range(3):
        await open_in_vain(world, "ReplicatorDown")
    assert len(Volume(world.directory / "volume").read_terms()) == 2  # the last one, and the one before it
    start_sidecar()
    ledger = await open_world(world)
    assert (ledger.epoch, await ledger.read()) == (4, [])
    assert [term.epoch for term in Volume(world.directory / "volume").read_terms()] == [4]
    await ledger.close()


@pytest.fixture
def own_store(tmp_path: Path) -> Iterator[Seaweed]:
    with running_seaweed(tmp_path / "own") as running:
        yield running


@pytest.mark.behaviour("9.3")
async def test_a_bucket_that_goes_and_comes_back(own_store: Seaweed, tmp_path: Path) -> None:
    world = World(own_store, "default", tmp_path)
    (tmp_path / "run").mkdir()
    sidecar = Program(
        "import os, sys; from alineod.ledger.sidecar import main; sys.exit(main(os.environ))",
        env={**world.build_env(), "ALINEOD_RUN_DIR": str(tmp_path / "run")},
    )
    ledger = await open_world(world)
    heard: list[Row] = []
    ledger.subscribe(heard.extend)
    await ledger.append([build_entry(1)])

    own_store.kill()
    waiting = [asyncio.ensure_future(ledger.append([build_entry(n)])) for n in range(2, 12)]
    await until(lambda: ledger.replication.failing is not None)
    assert (ledger.acknowledged_seq, len(heard), len(await ledger.read())) == (1, 1, 1)
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert {getattr(outcome, "reason", None) for outcome in outcomes} == {"NotAcknowledged"}

    own_store.start()
    await until(lambda: ledger.replication.failing is None)
    rows = await ledger.append([build_entry(n) for n in range(2, 12)])
    assert [row.seq for row in rows] == list(range(2, 12))
    assert heard[1:] == rows
    await ledger.close()
    sidecar.kill()


def find_child(parent: int, name: str) -> int | None:
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    found = [pid for pid in children if name in Path(f"/proc/{pid}/cmdline").read_text()]
    return int(found[0]) if found else None


async def test_the_sidecar_starts_litestream_again_and_ends_it_with_itself(
    world: World, start_sidecar: Sidecars
) -> None:
    sidecar = start_sidecar()
    ledger = await open_world(world)
    first = find_child(sidecar.process.pid, "litestream")
    assert first is not None
    os.kill(first, signal.SIGKILL)
    assert [row.seq for row in await ledger.append([build_entry(1)])] == [1]
    second = find_child(sidecar.process.pid, "litestream")
    assert second not in (None, first)
    await ledger.close()
    assert await asyncio.to_thread(sidecar.stop) == 0
    with pytest.raises(ProcessLookupError):
        os.kill(second or 0, 0)


async def test_dump_verify_and_stats_straight_from_the_bucket(
    world: World, start_sidecar: Sidecars, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    start_sidecar()
    ledger = await open_world(world)
    rows = await ledger.append([build_entry(1), build_entry(2)])
    await ledger.close()
    for name, value in world.store.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)
    env = {
        **world.build_env(), "ALINEOD_BUCKET_NAME": world.bucket.name, "ALINEOD_BUCKET_PREFIX": world.bucket.prefix,
        "ALINEOD_BUCKET_ENDPOINT": world.bucket.endpoint, "ALINEOD_INSTANCE": world.instance,
    }  # fmt: skip
    capfd.readouterr()
    assert await asyncio.to_thread(ledger_command, ["dump", "--bucket"], env) == 0
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [(line["seq"], line["id"], line["hash"]) for line in lines] == [(row.seq, row.id, row.hash) for row in rows]
    assert await asyncio.to_thread(ledger_command, ["verify", "--bucket", "--epoch", "1"], env) == 0
    assert capfd.readouterr().out == f"2 rows without a gap, chain intact; the last one is {rows[-1].hash}.\n"


def list_places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where each scalar of a configuration is."""
    match value:
        case dict():
            for key, inner in value.items():
                yield from list_places(inner, (*place, key))
        case list():
            for index, inner in enumerate(value):
                yield from list_places(inner, (*place, index))
        case _:
            yield place


def test_the_pinned_litestream_knows_every_key_we_render(world: World, tmp_path: Path) -> None:
    """It ignores what it does not know; what it does know it refuses with a value of the wrong kind."""
    program = find_program(os.environ)
    config = tmp_path / "litestream.json"

    def load(value: Any) -> subprocess.CompletedProcess[str]:
        config.write_text(json.dumps(value))
        command = [program, "databases", "-no-expand-env", "-json", "-config", config]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    rendered = build_config(tmp_path / "ledger.db", Replica(world.bucket, "default", 1), tmp_path / "s")
    loaded = load(json.loads(render_config(rendered)))
    assert json.loads(loaded.stdout) == [{"path": str(tmp_path / "ledger.db"), "replica": "s3"}]
    probed = set()
    for place in list_places(rendered):
        spoilt = json.loads(json.dumps(rendered))
        inner = spoilt
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = {"no": "scalar"}
        assert "cannot unmarshal !!map" in load(spoilt).stderr, place
        probed.add(".".join("[]" if isinstance(key, int) else key for key in place))
    assert probed == KNOWN_KEYS
    assert load({**rendered, "l0-retentoin": {"no": "scalar"}}).returncode == 0
