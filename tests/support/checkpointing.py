"""What agents do between checkpoints, for tests of what becomes of it."""

import json
import os

from alineod.bucket.s3 import S3Bucket
from alineod.wire.archives import CheckpointReport
from tests.support.sandbox import Sandbox, StandIn, until
from tests.support.trees import read_tree


def fill(sandbox: Sandbox, turn: int) -> None:
    """What an agent leaves after a turn."""
    (sandbox.home / ".pi").mkdir(exist_ok=True)
    (sandbox.home / ".pi" / "session.jsonl").write_text("turn\n" * turn)
    (sandbox.home / ".cache").mkdir(exist_ok=True)
    (sandbox.home / ".cache" / "big").write_bytes(bytes(10_000))
    (sandbox.workspace / f"result{turn}").write_bytes(os.urandom(200_000))
    (sandbox.workspace / "latest").unlink(missing_ok=True)
    (sandbox.workspace / "latest").symlink_to(f"result{turn}")
    (sandbox.control / "journal").mkdir(exist_ok=True)
    with (sandbox.control / "journal" / "000000000001.jsonl").open("a") as file:
        record = {"seq": turn, "time": 1.0, "turn": turn, "turnId": f"t{turn}", "event": "turn.ended", "data": {}}
        file.write(json.dumps(record) + "\n")


async def checkpoint(sandbox: Sandbox, operator: StandIn, *turns: int) -> None:
    """Turns that end cleanly, each with its checkpoint recorded."""
    for turn in turns:
        fill(sandbox, turn)
        await sandbox.cut(turn, operator.grant(turn))
        await until(lambda turn=turn: any(one.turn == turn for one in operator.recorded))  # type: ignore[misc]


def assert_same(sandbox: Sandbox, restored: Sandbox) -> None:
    home = {path: node for path, node in read_tree(sandbox.home).items() if not path.startswith(b".cache")}
    assert read_tree(restored.home) == home
    assert read_tree(restored.workspace) == read_tree(sandbox.workspace)


def damage(bucket: S3Bucket, report: CheckpointReport) -> None:
    """One bit changed under the same key, as a broken disk would give it."""
    content = bucket.get(report.key)
    assert content is not None
    body = bytearray(content.body)
    body[len(body) // 2] ^= 1
    bucket.put(report.key, bytes(body))
