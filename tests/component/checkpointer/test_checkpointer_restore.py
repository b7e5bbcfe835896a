"""The restore container as a real process, with a real bucket and checkpoints that a real sidecar made."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from alineod.bucket.s3 import S3Bucket
from alineod.wire.archives import (
    CutRequest,
    InputFile,
    Source,
    SourceKind,
)
from alineod.wire.turns import Session
from tests.support.archives import build_members, file, join
from tests.support.checkpointing import assert_same, checkpoint, damage, fill
from tests.support.sandbox import BRIDGE_TOKEN, Sandbox, StandIn, running, until
from tests.support.seaweed import Seaweed
from tests.support.trees import read_tree


@pytest.mark.behaviour("1.6", "4.7", "4.12", "4.14", "4.23", "5.7")
async def test_a_sandbox_comes_back_elsewhere(base: Path, operator: StandIn, bucket: S3Bucket) -> None:
    first = Sandbox(base / "first", operator.url)
    session = Session(id="s", leaf="abc", file=".pi/session.jsonl", bytes=10)
    async with running(first):
        fill(first, 1)
        answer = await first.post("/v1/cut", CutRequest(turn=1, turn_id="t1", session=session, grant=operator.grant(1)))
        assert answer.status_code == 200
        await until(lambda: operator.recorded)
    report = operator.recorded[0]
    assert report.snapshot_ref == "000001-1.tar.zst"
    assert report.session == session
    head = bucket.head(report.key)
    assert head is not None
    assert (head.size, head.etag) == (report.bytes, report.md5)
    assert (first.checkpoints / report.snapshot_ref).stat().st_size == report.bytes

    operator.inputs = [InputFile(path="/inputs/peer.txt", text="hello"), InputFile(path="/inputs.json", text='{"a":1}')]
    second = Sandbox(base / "second", operator.url, ALINEO_INCARNATION="2")
    done = await second.restore()
    assert (done.start, done.turn, done.where, done.sha256) == ("checkpoint", 1, "remote", report.sha256)
    assert done.session == session
    assert done.tried == []
    assert_same(first, second)
    assert (second.inputs / "files" / "peer.txt").read_text() == "hello"
    assert (second.inputs / "inputs.json").read_text() == '{"a":1}'
    assert (second.control / "bridge-token").read_text() == BRIDGE_TOKEN
    assert (second.control / "bridge-token").stat().st_mode & 0o777 == 0o600


async def test_without_checkpoints_it_starts_fresh(base: Path, operator: StandIn) -> None:
    sandbox = Sandbox(base / "pod", operator.url)
    operator.too_early = 2
    done = await sandbox.restore()
    assert (done.start, done.turn, done.tried) == ("fresh", None, [])
    assert (sandbox.inputs / "inputs.json").read_text() == "{}\n"
    assert list((sandbox.inputs / "files").iterdir()) == []
    assert operator.calls == ["start"] * 3
    assert "the ledger does not hold this pod yet" in sandbox.log


@pytest.mark.behaviour("4.28")
async def test_a_pod_that_has_started_is_never_unpacked_over(base: Path, operator: StandIn) -> None:
    first = Sandbox(base / "first", operator.url)
    async with running(first):
        await checkpoint(first, operator, 1)
    second = Sandbox(base / "second", operator.url)
    assert (await second.restore()).start == "checkpoint"
    (second.home / ".pi" / "session.jsonl").write_text("a turn that was never checkpointed")
    before, calls = read_tree(second.home), len(operator.calls)
    done = await second.restore()
    assert (done.start, done.turn) == ("kept", 1)
    assert read_tree(second.home) == before
    assert len(operator.calls) == calls


@pytest.mark.behaviour("4.29")
async def test_what_a_claim_holds_gives_way_to_the_checkpoint(base: Path, operator: StandIn) -> None:
    first = Sandbox(base / "first", operator.url)
    async with running(first):
        await checkpoint(first, operator, 1)
    second = Sandbox(base / "second", operator.url)
    (second.home / "half").mkdir()
    (second.home / "half" / "written").write_text("by the turn that was cut off")
    assert (await second.restore()).start == "checkpoint"
    assert_same(first, second)


@pytest.mark.behaviour("4.22", "4.23")
async def test_a_damaged_one_makes_way_for_the_next_older(base: Path, operator: StandIn, bucket: S3Bucket) -> None:
    first = Sandbox(base / "first", operator.url)
    async with running(first):
        await checkpoint(first, operator, 1)
        older = read_tree(first.workspace)
        await checkpoint(first, operator, 2)
    damage(bucket, operator.recorded[1])
    second = Sandbox(base / "second", operator.url)
    done = await second.restore()
    assert (done.start, done.turn, done.where) == ("checkpoint", 1, "remote")
    assert [(one.turn, one.where) for one in done.tried] == [(2, "remote")]
    assert read_tree(second.workspace) == older


@pytest.mark.behaviour("4.24")
async def test_blank_is_the_last_resort(base: Path, operator: StandIn, bucket: S3Bucket) -> None:
    first = Sandbox(base / "first", operator.url)
    async with running(first):
        await checkpoint(first, operator, 1, 2, 3)
    damage(bucket, operator.recorded[0])
    bucket.delete(operator.recorded[1].key)
    bucket.put(operator.recorded[2].key, b"")
    second = Sandbox(base / "second", operator.url)
    done = await second.restore()
    assert (done.start, done.turn) == ("blank", None)
    assert [one.turn for one in done.tried] == [3, 2, 1]
    assert "404 NoSuchKey" in done.tried[1].error
    assert list(second.home.iterdir()) == []


@pytest.mark.behaviour("4.23")
async def test_the_volume_comes_before_the_bucket(base: Path, operator: StandIn, bucket: S3Bucket) -> None:
    """The pod's own copy serves while the bucket's is gone; one that is damaged gives way to the bucket's."""
    sandbox = Sandbox(base / "pod", operator.url)
    async with running(sandbox):
        await checkpoint(sandbox, operator, 1, 2)
    for path in sandbox.control.iterdir():
        if path.is_file():
            path.unlink()
    (sandbox.checkpoints / "000002-1.tar.zst").write_bytes(b"rotten")
    done = await sandbox.restore()
    assert (done.turn, done.where) == (2, "remote")
    assert [(one.turn, one.where) for one in done.tried] == [(2, "local")]
    (sandbox.control / "restored.json").unlink()
    bucket.delete(operator.recorded[1].key)
    done = await sandbox.restore()
    assert (done.turn, done.where) == (1, "local")
    assert [(one.turn, one.where) for one in done.tried] == [(2, "remote")], "the rotten copy is gone"


@pytest.mark.behaviour("4.16")
async def test_a_rotten_copy_does_not_count_among_the_newest_in_the_volume(
    base: Path, operator: StandIn, bucket: S3Bucket
) -> None:
    sandbox = Sandbox(base / "pod", operator.url)
    async with running(sandbox):
        await checkpoint(sandbox, operator, 1, 2, 3)
    (sandbox.control / "bridge-token").unlink()
    for turn in (2, 3):
        (sandbox.checkpoints / f"00000{turn}-1.tar.zst").write_bytes(b"rotten")
        bucket.delete(operator.recorded[turn - 1].key)
    done = await sandbox.restore()
    assert (done.turn, done.where) == (1, "local")
    async with running(sandbox):
        await checkpoint(sandbox, operator, 4, 5)
    assert sorted(path.name for path in sandbox.checkpoints.glob("*.tar.zst")) == [
        f"00000{turn}-1.tar.zst" for turn in (1, 4, 5)
    ]


@pytest.mark.behaviour("4.25", "5.17")
async def test_unreachable_is_not_unreadable(base: Path, operator: StandIn, seaweed: Seaweed) -> None:
    first = Sandbox(base / "first", operator.url)
    async with running(first):
        await checkpoint(first, operator, 1, 2)
    seaweed.stop()
    second = Sandbox(base / "second", operator.url)
    process = await second.start_restore()
    try:
        await until(lambda: "waiting: " in second.log and "the checkpoint of turn 2" in second.log)
        await asyncio.sleep(2)
        assert process.returncode is None
        assert list(second.home.iterdir()) == []
        assert "the checkpoint of turn 2" in operator.rests[0]
    finally:
        await asyncio.to_thread(seaweed.start)
    assert await process.wait() == 0
    done = second.read_message()
    assert (done.start, done.turn, done.tried) == ("checkpoint", 2, [])
    assert_same(first, second)


@pytest.mark.behaviour("4.25")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda operator, url: url + "0", "403"),  # keys that were changed
        (lambda operator, url: f"{operator.url}/no/store/here", "404"),  # a proxy whose store is away
    ],
)
async def test_what_refuses_is_waited_for_too(
    base: Path, operator: StandIn, bucket: S3Bucket, change: Callable[[StandIn, str], str], words: str
) -> None:
    """Nothing was read, so nothing was found bad."""
    first = Sandbox(base / "first", operator.url)
    async with running(first):
        await checkpoint(first, operator, 1, 2)
    newest, older = (operator.source(one) for one in reversed(operator.recorded))
    get = msgspec.structs.replace(newest.get, url=change(operator, newest.get.url))
    operator.sources = [msgspec.structs.replace(newest, get=get), older]
    second = Sandbox(base / "second", operator.url)
    process = await second.start_restore()
    await until(lambda: "waiting: " in second.log and words in second.log)
    assert process.returncode is None
    operator.sources = None
    assert await process.wait() == 0
    done = second.read_message()
    assert (done.turn, done.tried) == (2, [])


@pytest.mark.behaviour("4.25")
async def test_a_restore_outlives_its_grants(base: Path, operator: StandIn, seaweed: Seaweed) -> None:
    """The bucket is away for longer than a grant is good for."""
    first = Sandbox(base / "first", operator.url)
    async with running(first):
        await checkpoint(first, operator, 1)
    seaweed.stop()
    operator.expires = 1
    second = Sandbox(base / "second", operator.url)
    process = await second.start_restore()
    try:
        await until(lambda: "waiting: " in second.log)
        await asyncio.sleep(1.5)
    finally:
        await asyncio.to_thread(seaweed.start)
    assert await process.wait() == 0
    done = second.read_message()
    assert (done.turn, done.tried) == (1, [])


async def test_a_restore_that_dies_starts_over(base: Path, operator: StandIn) -> None:
    first = Sandbox(base / "first", operator.url)
    for number in range(300):
        (first.home / f"d{number % 10}").mkdir(exist_ok=True)
        (first.home / f"d{number % 10}" / f"f{number}").write_bytes(os.urandom(20_000))
    async with running(first):
        await checkpoint(first, operator, 1)
    for delay in (0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5):
        second = Sandbox(base / f"pod{delay}", operator.url)
        (second.home / "before").write_text("x")
        process = await second.start_restore()
        await asyncio.sleep(delay)
        if process.returncode is None:
            process.kill()
            await process.wait()
        done = await second.restore()
        assert done.start in ("checkpoint", "kept")
        assert_same(first, second)


async def test_a_newer_format_waits_for_a_newer_release(base: Path, operator: StandIn, bucket: S3Bucket) -> None:
    newer = join([file("alineo/head.json", b'{"version": 2}'), *build_members()[1:]])
    bucket.put("newer", newer.body)
    get = bucket.grant_get("newer", 60)
    operator.sources = [Source(kind=SourceKind.CHECKPOINT, turn=1, sha256=newer.sha256, bytes=newer.size, get=get)]
    sandbox = Sandbox(base / "pod", operator.url)
    assert await (await sandbox.start_restore()).wait() == 1
    assert "use a newer release" in (base / "pod" / "termination-log").read_text()
    assert not (sandbox.control / "restored.json").exists()
