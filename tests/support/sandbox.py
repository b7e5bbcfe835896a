"""A sandbox pod's checkpointer and restore as real processes in a directory, and a stand-in for the operator.

The stand-in speaks the real messages over a real socket and signs real grants; its ledger is a list.
"""

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import time
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import msgspec

from alineod.bucket.port import Bucket
from alineod.errors import Unavailable
from alineod.httpd import Request, Response, Route, Server, build_error, build_json, build_problem
from alineod.wire.archives import (
    CheckpointReport,
    CutRequest,
    CutResult,
    GrantRequest,
    InputFile,
    Recorded,
    RestoreReport,
    Source,
    SourceKind,
    StartOrder,
    StartRequest,
)
from alineod.wire.base import decode, encode
from alineod.wire.turns import Grant

TOKEN = "projected"
BRIDGE_TOKEN = "bridge"
PATIENCE = 60.0  # s; a test that waits so long has failed


@dataclass
class StandIn:
    """The operator's part. `recorded` is what the ledger would hold, in its order."""

    bucket: Bucket | None
    recorded: list[CheckpointReport] = field(default_factory=list)
    failures: list[CheckpointReport] = field(default_factory=list)
    sources: list[Source] | None = None  # instead of those of the ledger
    inputs: list[InputFile] = field(default_factory=list)
    expires: float = 3600.0
    calls: list[str] = field(default_factory=list)
    rests: list[str] = field(default_factory=list)  # what restores waited for when they took a rest
    too_early: int = 0  # starts to be answered with 425
    port: int = 0
    _server: Server | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def up(self) -> None:
        routes = [
            Route("POST", "/v1/sandbox/start", self._start),
            Route("POST", "/v1/sandbox/grants", self._grant),
            Route("POST", "/v1/sandbox/checkpoints", self._checkpoint),
        ]
        self._server = Server(routes, lambda: TOKEN)
        self.port = await self._server.start("127.0.0.1", self.port)

    async def down(self) -> None:
        if self._server is not None:
            await self._server.close(0.1)
            self._server = None

    def grant(self, turn: int, incarnation: int = 1) -> Grant:
        assert self.bucket is not None
        return self.bucket.grant_put(self.key(turn, incarnation), self.expires)

    @staticmethod
    def key(turn: int, incarnation: int = 1) -> str:
        return f"p/i/checkpoints/ns/a/{turn:06d}-{incarnation}.tar.zst"

    async def _start(self, request: Request) -> Response:
        self.calls.append("start")
        wanted = decode(StartRequest, request.body)
        if wanted.resting:
            self.rests.append(wanted.waiting_for)
            return build_problem(425, "RestoreWaiting", wanted.waiting_for)
        if self.too_early > 0:
            self.too_early -= 1
            return build_problem(425, "PodNotRecorded", "the ledger does not hold this pod yet")
        sources = self.sources if self.sources is not None else [self.source(one) for one in reversed(self.recorded)]
        return build_json(StartOrder(bridge_token=BRIDGE_TOKEN, sources=sources, inputs=self.inputs))

    def source(self, report: CheckpointReport) -> Source:
        assert self.bucket is not None
        return Source(
            kind=SourceKind.CHECKPOINT,
            turn=report.turn,
            sha256=report.sha256,
            bytes=report.bytes,
            get=self.bucket.grant_get(report.key, self.expires),
            snapshot_ref=report.snapshot_ref,
            session=report.session,
        )

    async def _grant(self, request: Request) -> Response:
        self.calls.append("grant")
        wanted = decode(GrantRequest, request.body)
        if self.bucket is None:
            return build_problem(400, "NoBucket", "no bucket is configured")
        return build_json(self.grant(wanted.turn, wanted.incarnation))

    async def _checkpoint(self, request: Request) -> Response:
        """As the operator does: look at the object before it is recorded."""
        self.calls.append("report")
        report = decode(CheckpointReport, request.body)
        if not report.key:
            self.failures.append(report)
            return build_json(Recorded(done=self.bucket is None, message=report.upload_error))
        assert self.bucket is not None
        try:
            head = await asyncio.to_thread(self.bucket.head, report.key)
        except Unavailable as error:
            return build_error(error)
        if head is None or (head.size, head.etag) != (report.bytes, report.md5):
            return build_json(Recorded(done=False, message="the object is not the archive that was cut"))
        self.recorded = [one for one in self.recorded if one.turn != report.turn] + [report]
        return build_json(Recorded(done=True))


class Sandbox:
    """One pod's volumes and processes."""

    def __init__(self, base: Path, operator_url: str, **env: str) -> None:
        self.base = base
        self.home, self.workspace, self.inputs = base / "home", base / "workspace", base / "inputs"
        self.checkpoints, self.control = base / "checkpoints", base / "control"
        for path in (self.home, self.workspace, self.inputs, self.checkpoints, self.control):
            path.mkdir(parents=True, exist_ok=True)
        (base / "token").write_text(TOKEN)
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            self.port = sock.getsockname()[1]
        self.env = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "ALINEO_AGENT": "ns/a",
            "ALINEO_RUN": "ns/s",
            "ALINEO_INCARNATION": "1",
            "ALINEO_HOME": str(self.home),
            "ALINEO_WORKSPACE": str(self.workspace),
            "ALINEO_INPUTS": str(self.inputs),
            "ALINEO_CHECKPOINTS": str(self.checkpoints),
            "ALINEO_CONTROL": str(self.control),
            "ALINEO_OPERATOR_URL": operator_url,
            "ALINEO_TOKEN_FILE": str(base / "token"),
            "ALINEO_TERMINATION_LOG": str(base / "termination-log"),
            "ALINEO_CHECKPOINTER_LISTEN": f"127.0.0.1:{self.port}",
            **env,
        }
        self.process: Process | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        return (self.base / "log").read_text() if (self.base / "log").exists() else ""

    async def start_checkpointer(self) -> None:
        """Start it and wait until it answers."""
        if not (self.control / "bridge-token").exists():
            (self.control / "bridge-token").write_text(BRIDGE_TOKEN)
        self.process = await self._run("alineod.checkpointer")
        async with httpx.AsyncClient() as client:
            await until(lambda: self._is_up(client))

    async def _is_up(self, client: httpx.AsyncClient) -> bool:
        assert self.process is not None
        assert self.process.returncode is None, self.log
        with contextlib.suppress(httpx.TransportError):
            return (await client.get(f"{self.url}/healthz")).status_code == 200
        return False

    async def stop(self, number: int = signal.SIGTERM) -> int:
        assert self.process is not None
        if self.process.returncode is None:
            self.process.send_signal(number)
        return await self.process.wait()

    async def post(
        self, path: str, message: msgspec.Struct, token: str = BRIDGE_TOKEN, patience: float = PATIENCE
    ) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with httpx.AsyncClient(timeout=patience) as client:
            return await client.post(f"{self.url}{path}", content=encode(message), headers=headers)

    async def cut(self, turn: int, grant: Grant | None = None, patience: float = PATIENCE) -> CutResult:
        wanted = CutRequest(turn=turn, turn_id=f"t{turn}", grant=grant)
        answer = await self.post("/v1/cut", wanted, patience=patience)
        assert answer.status_code == 200, answer.text
        return decode(CutResult, answer.content)

    async def start_restore(self) -> Process:
        return await self._run("alineod.checkpointer.restore")

    async def restore(self) -> RestoreReport:
        """Run restore to its end; its report from the termination message."""
        code = await asyncio.wait_for((await self.start_restore()).wait(), PATIENCE)
        assert code == 0, self.log
        return self.read_message()

    def read_message(self) -> RestoreReport:
        body = (self.base / "termination-log").read_bytes()
        assert len(body) <= 4096
        return decode(RestoreReport, body)

    def read_records(self) -> list[dict[str, object]]:
        return [json.loads(path.read_bytes()) for path in sorted(self.checkpoints.glob("*.json"))]

    async def _run(self, module: str) -> Process:
        with (self.base / "log").open("ab") as log:
            return await asyncio.create_subprocess_exec(
                sys.executable, "-m", module, env=self.env, stdout=log, stderr=log
            )


async def until(check: Callable[[], object], patience: float = PATIENCE) -> None:
    """Wait until the check, which may be a coroutine's function, says yes."""
    deadline = time.monotonic() + patience
    while True:
        answer = check()
        if asyncio.iscoroutine(answer):
            answer = await answer
        if answer:
            return
        assert time.monotonic() < deadline, "it never came to be"
        await asyncio.sleep(0.05)


@contextlib.asynccontextmanager
async def running(*sandboxes: Sandbox) -> AsyncIterator[None]:
    """Checkpointers that are gone at the end."""
    try:
        for sandbox in sandboxes:
            await sandbox.start_checkpointer()
        yield
    finally:
        for sandbox in sandboxes:
            if sandbox.process is not None:
                await sandbox.stop(signal.SIGKILL)
