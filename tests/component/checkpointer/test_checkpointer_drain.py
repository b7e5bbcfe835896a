"""A whole sandbox that is drained in the middle of a turn: the bridge with Pi, the checkpointer, a bucket."""

import asyncio
import json
import signal
from pathlib import Path

import pytest

from alineod.wire.base import encode
from tests.component.bridge.bridge_rig import Bridge, ScriptedModel, script
from tests.support.sandbox import Sandbox, StandIn, running, until

WAITS = script({"tool": "bash", "args": {"command": "until [ -e go ]; do sleep 0.05; done"}}, {"text": "it is done"})


@pytest.mark.behaviour("3.19", "4.7")
async def test_a_drain_loses_no_turn_that_fits(base: Path, operator: StandIn) -> None:
    """As the kubelet does it: the agent's container first, and the sidecar when that has ended."""
    model = ScriptedModel(base)
    bridge = Bridge(base / "pod", model.url, ALINEO_DRAIN_GRACE="60", ALINEO_CUT_GRACE="60")
    at = {"HOME": bridge.home, "WORKSPACE": bridge.workspace, "CONTROL": bridge.control}
    sandbox = Sandbox(base / "pod", operator.url, **{f"ALINEO_{name}": str(path) for name, path in at.items()})
    bridge.environment["ALINEO_CHECKPOINTER"] = sandbox.url
    try:
        async with running(sandbox):
            await asyncio.to_thread(bridge.start)
            grant = json.loads(encode(operator.grant(1)))
            await asyncio.to_thread(bridge.post_turn, 1, WAITS, checkpoint=True, grant=grant)
            await asyncio.to_thread(bridge.wait_for, "tool.started")
            assert bridge.process is not None
            bridge.process.send_signal(signal.SIGTERM)
            await until(lambda: bridge.state()["draining"])
            (bridge.workspace / "go").touch()
            end = await asyncio.to_thread(bridge.result, 1)
            assert (end["state"], end["text"]) == ("clean", "it is done")
            assert await asyncio.to_thread(bridge.process.wait, 60) == 0
            assert await sandbox.stop() == 0
        (recorded,) = operator.recorded
        assert (recorded.turn, recorded.key) == (1, operator.key(1))
        assert recorded.session is not None
        assert recorded.session.leaf == end["session"]["leaf"]
    finally:
        bridge.close()
        model.close()
