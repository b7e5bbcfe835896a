"""What stands beside alineod in the tests: the bucket, the scripted model's log, and the API server's audit log."""

import io
import json
import os
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import zstandard
from botocore.config import Config

from hack.demo.forward import Forward
from hack.demo.install import BUCKET, BUCKET_KEYS, PARTS
from hack.demo.target import Target
from tests.support.e2e_objects import Json

WRITES = frozenset(("create", "update", "patch", "delete", "deletecollection"))


class Bucket:
    """The bucket in the cluster, read with the operator's own keys."""

    def __init__(self, forward: Forward, prefix: str = "") -> None:
        self._forward = forward
        self._prefix = prefix

    def list(self, prefix: str) -> list[str]:
        """The keys below `prefix`, in order."""
        pages = self._client().get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=self._prefix + prefix)
        return [found["Key"] for page in pages for found in page.get("Contents", [])]

    def read(self, key: str) -> bytes:
        body: bytes = self._client().get_object(Bucket=BUCKET, Key=key)["Body"].read()
        return body

    def write(self, key: str, body: bytes) -> None:
        self._client().put_object(Bucket=BUCKET, Key=key, Body=body)

    def reconnect(self) -> None:
        """Its way may lead to a pod that is gone: find it anew."""
        self._forward.close()

    def _client(self) -> Any:
        """A new one each time: the port it leads to may have changed."""
        return boto3.session.Session().client(
            "s3",
            endpoint_url=f"http://127.0.0.1:{self._forward.open()}",
            region_name="us-east-1",
            aws_access_key_id=BUCKET_KEYS["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=BUCKET_KEYS["AWS_SECRET_ACCESS_KEY"],
            verify=True,
            config=Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 3}),
        )


class ScriptedModel:
    """What the scripted model was asked from now on; a run before this one on the same cluster asked the same."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._since = time.time()

    def read_log(self) -> list[Json]:
        """Every request: users' texts, tool results, the step that was played, the outcome."""
        path = f"/api/v1/namespaces/{PARTS}/services/scripted-model:8080/proxy/_log"
        log: list[Json] = json.loads(self._target.kubectl("get", "--raw", path).out)
        return [one for one in log if one["time"] >= self._since]

    def find(self, words: str) -> list[Json]:
        """The requests in whose conversation somebody said `words`."""
        return [one for one in self.read_log() if any(words in said for said in one["users"])]


class AuditLog:
    """What the API server noted of every write."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def mark(self) -> int:
        """Where it ends now."""
        return self._path.stat().st_size

    def read_writes(self, user: str, since: int) -> Iterator[Json]:
        """The writes of `user` after a mark."""
        with self._path.open("rb") as file:
            file.seek(since)
            for line in file:
                event = json.loads(line)
                if event["user"]["username"] == user and event["verb"] in WRITES:
                    yield event


def describe_write(event: Json) -> str:
    where = event["objectRef"]
    name = f"{where.get('namespace', '')}/{where.get('name', '')}"
    return f"{event['verb']} {where['resource']} {name} {where.get('subresource', '')} at {event['stageTimestamp']}"


def clear_environment() -> None:
    """S3 clients break on a bundle of certificates that is meant for the machine's own registries."""
    os.environ.pop("AWS_CA_BUNDLE", None)


def read_archive(archive: bytes) -> dict[str, bytes]:
    """The files of a checkpoint by name, read by nobody's code but Python's."""
    with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(archive), read_across_frames=True) as stream:
        plain = io.BytesIO(stream.read())
    with tarfile.open(fileobj=plain) as tar:
        return {member.name: _read_member(tar, member) for member in tar if member.isfile()}


def _read_member(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(member)
    return file.read() if file else b""
