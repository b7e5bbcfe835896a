"""What the ledger's bench runs on: a real SeaweedFS behind a late proxy, and the sidecar with the real Litestream.

Everything lives in one directory and ends with its context.
"""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from alineod.settings import BucketSettings
from tests.support.seaweed import REGION, Seaweed, running_seaweed

SIDECAR = "import sys; from alineod.cli.main import main; sys.exit(main(['litestream']))"
INSTANCE = "bench"
_SYNCS = 200


@dataclass(frozen=True)
class World:
    """A store and the late way to it."""

    directory: Path
    store: Seaweed
    port: int

    @property
    def bucket(self) -> BucketSettings:
        return BucketSettings(self.store.bucket, "", f"http://127.0.0.1:{self.port}", REGION)

    @property
    def env(self) -> Mapping[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        return {**kept, **self.store.env}

    @property
    def run(self) -> Path:
        return self.directory / "run"


@contextlib.contextmanager
def running_world(directory: Path, late: float) -> Iterator[World]:
    """The store, the proxy and the sidecar."""
    with running_seaweed(directory / "store") as store, _running_proxy(store.ports["s3.port"], late) as port:
        world = World(directory, store, port)
        world.run.mkdir()
        with running([sys.executable, "-c", SIDECAR], {**world.env, "ALINEOD_RUN_DIR": str(world.run)}):
            yield world


@contextlib.contextmanager
def running(command: Sequence[str | Path], env: Mapping[str, str]) -> Iterator[None]:
    process = subprocess.Popen(command, env=dict(env))
    try:
        yield
    finally:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def _running_proxy(to: int, late: float) -> Iterator[int]:
    command = [sys.executable, "-m", "hack.bench.proxy", f"--to={to}", f"--late={late}"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
    finally:
        process.terminate()
        process.communicate()


def measure_disk(directory: Path) -> float:
    """Milliseconds that a write of 4 KiB takes to be on the disk: the median."""
    took = []
    with (directory / "probe").open("wb", buffering=0) as file:
        for _ in range(_SYNCS):
            begun = time.perf_counter()
            file.write(b"\0" * 4096)
            os.fdatasync(file.fileno())
            took.append((time.perf_counter() - begun) * 1000)
    return median(took)
