"""A real bucket, the real sidecar with the real Litestream, and programs that append and are killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import alineod
from alineod.app.opening import LONGEST_SILENCE
from alineod.bucket.port import Bucket
from alineod.bucket.s3 import S3Bucket, build_options
from alineod.clock import SystemClock
from alineod.ledger.replicate import Remote, build_remote
from alineod.ledger.start import Opening
from alineod.settings import BucketSettings
from tests.support.seaweed import REGION, Seaweed, running_seaweed

SOURCE = Path(alineod.__file__).parents[1]
ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class World:
    """One instance of the ledger in a bucket of its own store."""

    store: Seaweed
    instance: str
    directory: Path

    @property
    def bucket(self) -> BucketSettings:
        return BucketSettings(self.store.bucket, "some/prefix", self.store.endpoint, REGION)

    def build_opening(self, volume: str = "volume", epoch: int = 1) -> Opening:
        return Opening(self.directory / volume, self.instance, epoch, owner=f"owner of {volume}")

    def build_remote(self, run: str = "run", **keys: str) -> Remote:
        (self.directory / run).mkdir(exist_ok=True)
        bucket = self.build_bucket(**keys)
        return build_remote(bucket, self.bucket, self.instance, self.build_env(), self.directory / run)

    def build_env(self) -> Mapping[str, str]:
        # A bundle in the environment stands for a machine with its own authorities: it must do no harm.
        return {**build_plain_env(), **self.store.env}

    def build_bucket(self, **keys: str) -> Bucket:
        """The operator's client, with these keys (by their names in the environment) instead of the good ones."""
        with pytest.MonkeyPatch.context() as environment:
            for name in [name for name in os.environ if name.startswith("AWS_")]:
                environment.delenv(name)
            for name, value in {**self.store.env, **keys}.items():
                environment.setenv(name, value)
            return S3Bucket(replace(build_options(self.bucket), read_timeout=LONGEST_SILENCE), SystemClock())


def build_plain_env() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return {**kept, "PYTHONPATH": f"{SOURCE}:{ROOT}"}


class Program:
    """A Python program of ours with its children, killed as one."""

    def __init__(self, code: str, *arguments: str, env: Mapping[str, str], **options: Any) -> None:
        command = [sys.executable, "-c", code, *arguments]
        self.process = subprocess.Popen(command, env=dict(env), start_new_session=True, **options)

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(30)


SIDECAR = "import os, sys; from alineod.ledger.sidecar import main; sys.exit(main(os.environ))"


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seaweed]:
    with running_seaweed(tmp_path_factory.mktemp("seaweed")) as running:
        yield running


@pytest.fixture
def world(store: Seaweed, tmp_path: Path, request: pytest.FixtureRequest) -> World:
    return World(store, f"i{abs(hash(request.node.nodeid)) % 10**12}", tmp_path)


@pytest.fixture
def start_sidecar(world: World) -> Iterator[Callable[..., Program]]:
    started: list[Program] = []

    def start(run: str = "run", **env: str) -> Program:
        (world.directory / run).mkdir(exist_ok=True)
        variables = {**world.build_env(), "ALINEOD_RUN_DIR": str(world.directory / run), **env}
        started.append(Program(SIDECAR, env=variables))
        return started[-1]

    yield start
    for program in started:
        program.kill()
