"""A real store for every test here, and the operator's part of the conversation."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from alineod.bucket.s3 import S3Bucket, S3Options
from alineod.clock import SystemClock
from tests.support.sandbox import StandIn
from tests.support.seaweed import Seaweed, running_seaweed


@pytest.fixture(scope="module")
def seaweed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seaweed]:
    with running_seaweed(tmp_path_factory.mktemp("seaweed")) as store:
        yield store


@pytest.fixture
def bucket(seaweed: Seaweed, monkeypatch: pytest.MonkeyPatch) -> S3Bucket:
    for name, value in seaweed.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)
    made = S3Bucket(S3Options(seaweed.bucket, seaweed.endpoint, connect_timeout=1, read_timeout=5), SystemClock())
    for left in list(made.list("")):
        made.delete(left.key)
    return made


@pytest.fixture
async def operator(bucket: S3Bucket) -> AsyncIterator[StandIn]:
    made = StandIn(bucket)
    await made.up()
    yield made
    await made.down()


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tmp_path
