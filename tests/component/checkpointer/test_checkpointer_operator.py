"""The real sidecar, the real store and the operator's own API together: what becomes of an upload that fails."""

import asyncio
import contextlib
import signal
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from alineod.app.serve import start_server
from alineod.bucket.s3 import S3Bucket
from alineod.domain import events as ev
from alineod.http.access import Guard
from alineod.http.routes import build_app
from alineod.kube.gateway import Identity
from alineod.kube.objects import AGENTS, SWARMS, Json
from alineod.reconcile.archives import build_grant
from alineod.wire.archives import AUDIENCE
from tests.support.checkpointing import fill
from tests.support.sandbox import TOKEN, Sandbox, running, until
from tests.support.seaweed import Seaweed
from tests.unit.http.conftest import build_health
from tests.unit.reconcile.simulation import NAMESPACE, Simulation

KEY = f"{NAMESPACE}/survey-lead"
FAILED = "not in the bucket and the ledger yet"
SWARM: Json = {
    "metadata": {"name": "survey", "namespace": NAMESPACE},
    "spec": {
        "defaults": {"harness": {"model": {"provider": "openai", "id": "m"}}, "checkpoint": True},
        "agents": [{"name": "lead", "prompt": "plan"}],
    },
}


@pytest.fixture
async def simulation(bucket: S3Bucket) -> Simulation:
    """A cluster in memory whose one agent has ended its first turn."""
    made = Simulation(bucket=bucket)
    made.gateway.write(SWARMS, SWARM)
    await made.settle()
    pod = made.ledger.state.agents[KEY].pod
    assert pod is not None
    prefix = "authentication.kubernetes.io/pod"
    extra = {f"{prefix}-uid": (pod.uid,), f"{prefix}-name": (pod.name,)}
    made.gateway.tokens[TOKEN] = Identity(
        f"system:serviceaccount:{NAMESPACE}:default", extra=extra, audiences=(AUDIENCE,)
    )
    return made


@pytest.fixture
def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@contextlib.asynccontextmanager
async def serving(simulation: Simulation, port: int) -> AsyncIterator[None]:
    app = build_app(simulation.world, Guard(simulation.gateway, simulation.clock), build_health())
    stop = await start_server(app, port)
    try:
        yield
    finally:
        await stop()


async def read_condition(simulation: Simulation) -> tuple[str, str]:
    await simulation.settle()
    said = {c["type"]: c for c in simulation.read(AGENTS, "survey-lead")["status"]["conditions"]}["Checkpointed"]
    return said["status"], said["reason"]


def count(simulation: Simulation, kind: type[ev.Body]) -> int:
    return sum(isinstance(row.body, kind) for row in simulation.stored.rows)


@pytest.mark.behaviour("2.16", "4.8", "4.9")
async def test_a_failed_upload_is_tried_until_it_is_recorded(
    base: Path, simulation: Simulation, seaweed: Seaweed, free_port: int
) -> None:
    """The sidecar dies meanwhile; what it knows lies on the pod's volume."""
    sandbox = Sandbox(base / "pod", f"http://127.0.0.1:{free_port}", ALINEO_AGENT=KEY)
    async with serving(simulation, free_port), running(sandbox):
        seaweed.stop()
        try:
            fill(sandbox, 1)
            await sandbox.cut(1, build_grant(simulation.world, simulation.ledger.state.agents[KEY], 1, 1))
            await until(lambda: count(simulation, ev.AgentCheckpointed) == 1)
            assert await read_condition(simulation) == ("False", "UploadFailed")
            await sandbox.stop(signal.SIGKILL)
            await sandbox.start_checkpointer()
            await until(lambda: sandbox.log.count(FAILED) == 2)
        finally:
            await asyncio.to_thread(seaweed.start)
        await until(lambda: count(simulation, ev.AgentCheckpointUploaded) == 1)
        assert await read_condition(simulation) == ("True", "Uploaded")
        assert count(simulation, ev.AgentCheckpointed) == 1, "that it failed stands there once"
        (checkpoint,) = simulation.ledger.state.agents[KEY].checkpoints
        assert simulation.bucket is not None
        assert checkpoint.remote_ref is not None
        head = await asyncio.to_thread(simulation.bucket.head, checkpoint.remote_ref)
        assert head is not None
        assert head.size == checkpoint.bytes
        await until(lambda: sandbox.read_records()[0]["progress"] == "recorded")
