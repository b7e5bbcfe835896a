"""Forks: a child starts from its parent's files, by the bucket or from the parent's own pod."""

from pathlib import Path

import httpx
import pytest

from alineod.bucket.s3 import S3Bucket
from alineod.wire.archives import (
    ForkRequest,
    ForkResult,
    Source,
    SourceKind,
)
from alineod.wire.base import decode
from alineod.wire.turns import Grant
from tests.support.checkpointing import fill
from tests.support.sandbox import BRIDGE_TOKEN, Sandbox, StandIn, running
from tests.support.trees import read_tree


async def start_child(base: Path, operator: StandIn, fork: ForkResult, get: Grant) -> Sandbox:
    operator.sources = [Source(kind=SourceKind.FORK, turn=None, sha256=fork.sha256, bytes=fork.bytes, get=get)]
    child = Sandbox(base / "child", operator.url)
    done = await child.restore()
    assert (done.start, done.turn, done.where, done.session) == ("fork", None, "remote", None)
    return child


@pytest.mark.parametrize("uploaded", [True, False])
async def test_a_child_starts_from_its_parents_files(
    base: Path, operator: StandIn, bucket: S3Bucket, uploaded: bool
) -> None:
    parent = Sandbox(base / "parent", operator.url)
    async with running(parent):
        fill(parent, 1)
        (parent.home / "notes").write_text("for the child")
        put = bucket.grant_put("f", 60) if uploaded else None
        request = ForkRequest(fork_id="kid-1", read_token="read", exclude=[".pi"], grant=put)
        fork = decode(ForkResult, (await parent.post("/v1/forks", request)).content)
        assert fork.uploaded is uploaded
        again = decode(ForkResult, (await parent.post("/v1/forks", request)).content)
        assert again == fork
        get = bucket.grant_get("f", 60)
        if not uploaded:
            get = Grant(method="GET", url=f"{parent.url}/v1/forks/kid-1", headers={"authorization": "Bearer read"})
        child = await start_child(base, operator, fork, get)
    assert (child.home / "notes").read_text() == "for the child"
    assert not (child.home / ".pi").exists()
    assert read_tree(child.workspace) == read_tree(parent.workspace)
    assert (parent.checkpoints / "forks" / "kid-1.tar.zst").exists() is not uploaded


async def test_a_fork_is_read_with_its_own_token(base: Path, operator: StandIn) -> None:
    parent = Sandbox(base / "parent", operator.url)
    async with running(parent), httpx.AsyncClient() as client:
        await parent.post("/v1/forks", ForkRequest(fork_id="kid", read_token="read"))
        for token, path, status in (
            ("read", "kid", 200),
            (BRIDGE_TOKEN, "kid", 403),
            ("", "kid", 403),
            ("read", "other", 404),
            ("read", "..%2f..%2ftoken", 400),
        ):
            headers = {"authorization": f"Bearer {token}"} if token else {}
            answer = await client.get(f"{parent.url}/v1/forks/{path}", headers=headers)
            assert answer.status_code == status, (token, path)
        answer = await parent.post("/v1/forks", ForkRequest(fork_id="../x", read_token="read"))
        assert answer.status_code == 400


async def test_a_fork_whose_upload_fails_is_read_from_the_parent(
    base: Path, operator: StandIn, bucket: S3Bucket
) -> None:
    parent = Sandbox(base / "parent", operator.url)
    async with running(parent):
        fill(parent, 1)
        bucket.put("taken", b"another's")
        request = ForkRequest(fork_id="kid", read_token="read", grant=bucket.grant_put("taken", 60))
        fork = decode(ForkResult, (await parent.post("/v1/forks", request)).content)
        assert not fork.uploaded
        get = Grant(method="GET", url=f"{parent.url}/v1/forks/kid", headers={"authorization": "Bearer read"})
        child = await start_child(base, operator, fork, get)
    assert (child.home / ".pi" / "session.jsonl").exists()


async def test_only_so_many_forks_are_kept(base: Path, operator: StandIn) -> None:
    parent = Sandbox(base / "parent", operator.url)
    async with running(parent):
        for number in range(18):
            await parent.post("/v1/forks", ForkRequest(fork_id=f"kid{number}", read_token="read"))
    left = {path.name for path in (parent.checkpoints / "forks").iterdir()}
    assert left == {f"kid{number}{end}" for number in range(2, 18) for end in (".tar.zst", ".json")}
