"""Terms one after another and beside each other, with the real Litestream and a real bucket."""

import asyncio
import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from alineod.bucket.s3 import S3Bucket, S3Options
from alineod.clock import SystemClock
from alineod.errors import AlineoError, Damaged, Fenced, Refused, Unavailable
from alineod.ledger import schema, sql
from alineod.ledger.build import verify_file
from alineod.ledger.control import ControlSocket
from alineod.ledger.fence import Fence
from alineod.ledger.litestream import build_config, build_environment, find_program
from alineod.ledger.open import open_ledger
from alineod.ledger.records import prepare_entries
from alineod.ledger.replica import Replica, build_ledger_prefix
from alineod.ledger.restore import restore_replica
from alineod.ledger.sqlite import SqliteLedger
from tests.component.ledger.conftest import Program, World
from tests.support.seaweed import REGION
from tests.unit.ledger.entries import build_entry

Sidecars = Callable[..., Program]
CLOCK = SystemClock()


async def open_world(world: World, name: str, epoch: int, **options: Any) -> SqliteLedger:
    """A pod of its own: its volume, its sidecar's directory."""
    return await open_ledger(world.build_opening(name, epoch), CLOCK, world.build_remote(name), **options)


@pytest.mark.behaviour("9.1", "9.2", "9.4")
async def test_a_leader_that_was_replaced_acknowledges_nothing_more(world: World, start_sidecar: Sidecars) -> None:
    """Its own Litestream still says that everything is in the bucket; that is true, and of no use."""
    ended: list[AlineoError] = []
    start_sidecar("a")
    start_sidecar("b")
    former = await open_world(world, "a", 1, fatal=ended.append)
    rows = await former.append([build_entry(1)])
    leader = await open_world(world, "b", 2)
    for number in (2, 3):
        with pytest.raises(Fenced) as caught:
            await former.append([build_entry(number, text="too late")])
        assert caught.value.message.startswith("owner of b began term 2 of the ledger in some/prefix/")
    rows += await leader.append([build_entry(2)])
    assert (await leader.read(), leader.acknowledged_seq) == (rows, 2)
    await former.close()
    await leader.close()
    assert isinstance(ended[0], Fenced)


async def test_a_leader_is_fenced_before_its_successor_reads(world: World, start_sidecar: Sidecars) -> None:
    """From its claim on; what the former one still commits and uploads is nobody's."""
    start_sidecar("a")
    former = await open_world(world, "a", 1)
    await former.append([build_entry(1)])

    def stop(step: str) -> None:
        if step == "build":
            raise Unavailable("Stopped", "Here the successor dies.")

    with pytest.raises(Unavailable, match="Stopped"):
        await open_world(world, "b", 2, step=stop)
    with pytest.raises(Fenced):
        await former.append([build_entry(2)])
    await former.close()

    start_sidecar("c")
    third = await open_world(world, "c", 3)
    assert third.epoch == 3
    assert [row.seq for row in await third.read()] in ([1], [1, 2])
    await third.close()


async def test_the_object_follows_the_terms(world: World, start_sidecar: Sidecars) -> None:
    start_sidecar("a")
    await (await open_world(world, "a", 7)).close()
    seen = Fence(world.build_bucket(), build_ledger_prefix(world.bucket, world.instance)).read()
    assert seen is not None
    assert (seen.current.epoch, seen.current.data, seen.current.owner) == (7, 7, "owner of a")


@pytest.mark.behaviour("9.10")
async def test_a_bucket_without_conditional_writes_is_refused_unless_chosen(
    world: World, start_sidecar: Sidecars
) -> None:
    """A store that ignores conditions, made of a real one by leaving them out."""
    bucket = world.build_bucket()
    assert isinstance(bucket, S3Bucket)
    put = bucket._client.put_object

    def ignore(**given: Any) -> Any:
        return put(**{name: value for name, value in given.items() if not name.startswith("If")})

    bucket._client.put_object = ignore
    with pytest.raises(Refused) as caught:
        bucket.probe(f"probe/{world.instance}")
    assert caught.value.reason == "ConditionalWritesIgnored"
    assert "use a store that keeps conditional writes, or set bucket.fencing to LeaseOnly" in caught.value.message
    trusting = S3Bucket(S3Options(world.store.bucket, world.store.endpoint, REGION, conditional=False), CLOCK)
    trusting._client = bucket._client
    trusting.probe(f"probe/{world.instance}")


@pytest.fixture
def busy_replica(world: World) -> Iterator[tuple[Path, ControlSocket]]:
    """A database whose replica is tidied up all the time: levels, snapshots and retention of seconds."""
    database, socket = world.directory / "ledger.db", world.directory / "socket"
    with closing(sql.open_writer(database)) as connection:
        schema.migrate(connection, 0)
        sql.write_identity(connection, sql.Identity(world.instance, b"1" * 32, 1))
    config = dict(build_config(database, Replica(world.bucket, world.instance, 1), socket)) | {
        "levels": [{"interval": "1s"}, {"interval": "2s"}],
        "snapshot": {"interval": "3s", "retention": "4s"},
        "l0-retention": "1s",
        "l0-retention-check-interval": "1s",
    }
    path = world.directory / "litestream.json"
    path.write_text(json.dumps(config))
    command = [find_program(world.build_env()), "replicate", "-no-expand-env", "-config", path]
    process = subprocess.Popen(command, env=build_environment(world.build_env()))
    while not socket.exists():
        time.sleep(0.02)
    yield database, ControlSocket(socket, world.bucket)
    process.kill()
    process.wait()


async def test_a_replica_is_whole_while_it_is_tidied_up(world: World, busy_replica: tuple[Path, ControlSocket]) -> None:
    """Whatever was confirmed before the listing is in what it brings back."""
    database, control = busy_replica
    prefix = Replica(world.bucket, world.instance, 1).prefix
    until, written, restored = time.monotonic() + 15, 0, 0
    with closing(sql.open_writer(database)) as connection:
        while time.monotonic() < until or restored < 3:
            for _ in range(40):
                written += 1
                sql.write_batch(connection, 1, [prepare_entries([build_entry(written)])], 0)
                await asyncio.to_thread(control.sync, database, 5.0)
            target = world.directory / f"restored{written}.db"
            await restore_replica(world.build_bucket(), prefix, target, world.build_env())
            assert verify_file(target).seq == written
            restored += 1


async def test_a_hole_in_a_replica_is_found(world: World, start_sidecar: Sidecars) -> None:
    sidecar = start_sidecar("a")
    ledger = await open_world(world, "a", 1)
    for number in range(1, 5):
        await ledger.append([build_entry(number)])
    await ledger.close()
    sidecar.kill()
    bucket, prefix = world.build_bucket(), Replica(world.bucket, world.instance, 1).prefix
    uploads = [found.key for found in bucket.list(f"{prefix}0000/")]
    for found in list(bucket.list(prefix)):
        if found.key not in (uploads[0], uploads[-1]):
            bucket.delete(found.key)
    with pytest.raises(Damaged) as caught:
        await restore_replica(bucket, prefix, world.directory / "restored.db", world.build_env())
    assert "The replica lacks transaction" in caught.value.message
