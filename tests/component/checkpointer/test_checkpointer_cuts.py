"""The checkpointer as a real process: cuts, uploads, reports, and what does not stop them."""

import asyncio
import os
import resource
import signal
from pathlib import Path

import pytest

from alineod.wire.archives import (
    CutRequest,
)
from alineod.wire.turns import Grant
from tests.support.checkpointing import assert_same, checkpoint, fill
from tests.support.sandbox import Sandbox, StandIn, running, until
from tests.support.seaweed import Seaweed


@pytest.mark.behaviour("4.8", "4.9")
async def test_an_upload_that_fails_is_told_and_tried_again(base: Path, operator: StandIn, seaweed: Seaweed) -> None:
    sandbox = Sandbox(base / "pod", operator.url)
    async with running(sandbox):
        seaweed.stop()
        try:
            fill(sandbox, 1)
            await sandbox.cut(1, operator.grant(1))
            await until(lambda: operator.failures)
            fill(sandbox, 2)
            await sandbox.cut(2, operator.grant(2))
            await until(lambda: len(operator.failures) == 2)
        finally:
            await asyncio.to_thread(seaweed.start)
        await until(lambda: len(operator.recorded) == 2)
    assert [one.turn for one in operator.failures] == [1, 2]
    assert all("does not answer" in one.upload_error and not one.key for one in operator.failures)
    assert all(one.key and not one.upload_error for one in operator.recorded)


@pytest.mark.behaviour("4.5", "4.11")
async def test_a_turn_that_ends_while_the_operator_is_away(base: Path, operator: StandIn) -> None:
    """The cut is answered at once; the grant has expired meanwhile and is renewed by the sidecar's own token."""
    sandbox = Sandbox(base / "pod", operator.url)
    async with running(sandbox):
        fill(sandbox, 1)
        operator.expires = 1
        grant = operator.grant(1)
        await operator.down()
        await asyncio.sleep(1.1)
        result = await sandbox.cut(1, grant)
        await until(lambda: "not in the bucket and the ledger yet" in sandbox.log)
        operator.expires = 3600
        await operator.up()
        await until(lambda: operator.recorded)
    assert operator.recorded[0].sha256 == result.sha256
    assert operator.calls == ["grant", "report"]


async def test_a_grant_that_is_refused_is_renewed(base: Path, operator: StandIn) -> None:
    sandbox = Sandbox(base / "pod", operator.url)
    async with running(sandbox):
        fill(sandbox, 1)
        good = operator.grant(1)
        bad = Grant(method="PUT", url=good.url + "0", headers=good.headers, key=good.key, expires_at=good.expires_at)
        await sandbox.cut(1, bad)
        await until(lambda: operator.recorded)
    assert operator.calls == ["report", "grant", "report"]
    assert "403 SignatureDoesNotMatch" in operator.failures[0].upload_error


@pytest.mark.behaviour("4.9")
async def test_killed_at_any_moment_nothing_is_lost(base: Path, operator: StandIn) -> None:
    sandbox = Sandbox(base / "pod", operator.url)
    (sandbox.home / "bulk").write_bytes(os.urandom(3_000_000))
    for turn, delay in enumerate((0.0, 0.02, 0.05, 0.08, 0.12, 0.2, 0.3), start=1):
        await sandbox.start_checkpointer()
        fill(sandbox, turn)
        asking = asyncio.create_task(
            sandbox.post("/v1/cut", CutRequest(turn=turn, turn_id=f"t{turn}", grant=operator.grant(turn)))
        )
        await asyncio.sleep(delay)
        await sandbox.stop(signal.SIGKILL)
        await asyncio.gather(asking, return_exceptions=True)
        await sandbox.start_checkpointer()
        result = await sandbox.cut(turn, operator.grant(turn))
        await until(lambda turn=turn: any(one.turn == turn for one in operator.recorded))  # type: ignore[misc]
        assert operator.recorded[-1].sha256 == result.sha256
        await until(lambda: all(record["progress"] == "recorded" for record in sandbox.read_records()))
        assert await sandbox.stop() == 0
        assert not list(sandbox.checkpoints.rglob("*.partial"))
    assert len(list(sandbox.checkpoints.glob("*.tar.zst"))) == 3
    second = Sandbox(base / "second", operator.url)
    done = await second.restore()
    assert (done.turn, done.tried) == (7, [])
    assert_same(sandbox, second)


@pytest.mark.behaviour("4.14")
async def test_the_newest_three_are_kept(base: Path, operator: StandIn) -> None:
    sandbox = Sandbox(base / "pod", operator.url)
    async with running(sandbox):
        await checkpoint(sandbox, operator, 1, 2, 3, 4, 5)
    assert sorted(path.name for path in sandbox.checkpoints.glob("*.tar.zst")) == [
        f"00000{n}-1.tar.zst" for n in (3, 4, 5)
    ]
    assert len(list(sandbox.checkpoints.glob("*.json"))) == 3


async def test_the_same_cut_again_is_the_same_archive(base: Path, operator: StandIn) -> None:
    sandbox = Sandbox(base / "pod", operator.url)
    async with running(sandbox):
        fill(sandbox, 1)
        (sandbox.home / "bulk").write_bytes(os.urandom(3_000_000))
        results = await asyncio.gather(*[sandbox.cut(1, operator.grant(1)) for _ in range(3)])
        (sandbox.home / "later").write_text("x")
        assert {await sandbox.cut(1), *results} == {results[0]}
        answer = await sandbox.post("/v1/cut", CutRequest(turn=1, turn_id="other"))
    assert answer.status_code == 409
    assert "turn 1 was cut already, as t1 and not other" in answer.json()["detail"]


async def test_a_full_volume_is_said(base: Path, operator: StandIn) -> None:
    sandbox = Sandbox(base / "pod", operator.url)
    async with running(sandbox):
        fill(sandbox, 1)
        assert sandbox.process is not None
        resource.prlimit(sandbox.process.pid, resource.RLIMIT_FSIZE, (50_000, 50_000))
        answer = await sandbox.post("/v1/cut", CutRequest(turn=1, turn_id="t1"))
        assert answer.status_code == 400
        assert "cannot be written to the checkpoint volume" in answer.json()["detail"]
        assert "storage.checkpoints.sizeLimit" in answer.json()["detail"]
        assert [path.name for path in sandbox.checkpoints.iterdir()] == ["forks"]


async def test_who_may_ask(base: Path, operator: StandIn) -> None:
    sandbox = Sandbox(base / "pod", operator.url)
    async with running(sandbox):
        for token in ("", "wrong"):
            assert (await sandbox.post("/v1/cut", CutRequest(turn=1, turn_id="t"), token)).status_code == 401
        (sandbox.control / "bridge-token").write_text("the agent's own\n")
        for token in ("", "the agent's own"):
            assert (await sandbox.post("/v1/cut", CutRequest(turn=1, turn_id="t"), token)).status_code == 401
        (sandbox.control / "bridge-token").unlink()
        assert (await sandbox.post("/v1/cut", CutRequest(turn=1, turn_id="t"))).status_code == 200


async def test_without_a_token_nobody_may_ask(base: Path, operator: StandIn) -> None:
    sandbox = Sandbox(base / "pod", operator.url)
    async with running(sandbox):
        (sandbox.control / "bridge-token").unlink()
        answer = await sandbox.post("/v1/cut", CutRequest(turn=1, turn_id="t"), "")
        assert (answer.status_code, answer.json()["reason"]) == (401, "TokenMissing")


async def test_the_token_for_the_operator_rotates(base: Path, operator: StandIn) -> None:
    sandbox = Sandbox(base / "pod", operator.url)
    (sandbox.base / "token").write_text("old")
    async with running(sandbox):
        fill(sandbox, 1)
        await sandbox.cut(1, operator.grant(1))
        await until(lambda: "401" in sandbox.log)
        assert operator.recorded == []
        (sandbox.base / "token").write_text("projected\n")
        await until(lambda: operator.recorded)


async def test_without_a_bucket(base: Path) -> None:
    operator = StandIn(None)
    await operator.up()
    sandbox = Sandbox(base / "pod", operator.url)
    async with running(sandbox):
        fill(sandbox, 1)
        await sandbox.cut(1)
        await until(lambda: operator.failures)
        await until(lambda: sandbox.read_records()[0]["progress"] == "recorded")
    await operator.down()
    assert operator.failures[0].upload_error.endswith("no bucket is configured")
    assert operator.calls == ["grant", "report"]


async def test_shutdown_finishes_the_upload(base: Path, operator: StandIn) -> None:
    sandbox = Sandbox(base / "pod", operator.url)
    async with running(sandbox):
        fill(sandbox, 1)
        (sandbox.home / "bulk").write_bytes(os.urandom(20_000_000))
        await sandbox.cut(1, operator.grant(1))
        assert await sandbox.stop() == 0
    assert [one.turn for one in operator.recorded] == [1]


async def test_shutdown_does_not_wait_for_ever(base: Path, operator: StandIn) -> None:
    sandbox = Sandbox(base / "pod", operator.url, ALINEO_DRAIN_GRACE="0.5")
    async with running(sandbox):
        await operator.down()
        fill(sandbox, 1)
        await sandbox.cut(1)
        assert await asyncio.wait_for(sandbox.stop(), 20) == 0
    assert sandbox.read_records()[0]["report"]["sha256"]  # type: ignore[index]
