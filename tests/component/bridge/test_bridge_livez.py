"""The kubelet's question whether the bridge lives: answered whatever else is so, and by nobody else in its place."""

import os
import signal
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from alineod.podspec.containers import LIVENESS
from tests.component.bridge.bridge_rig import Bridge, Cutter, script, until
from tests.component.bridge.test_bridge_pid1 import UNSHARE, bridge_pid


def lives(bridge: Bridge) -> bool:
    """As the kubelet asks: without a token, and with its own patience."""
    url = f"http://127.0.0.1:{bridge.port}{LIVENESS['httpGet']['path']}"
    try:
        return httpx.get(url, trust_env=False, timeout=LIVENESS["timeoutSeconds"]).status_code == 200
    except httpx.TimeoutException:
        return False


def test_it_lives_while_setup_runs_and_when_it_failed(make_bridge: Callable[..., Bridge]) -> None:
    bridge = make_bridge(ALINEO_SETUP="until [ -e $HOME/go ]; do :; done; exit 3").start(ready=False)
    until("setup to run", lambda: bridge.state().get("reason") == "SettingUp")
    assert all(lives(bridge) for _ in range(5))
    (bridge.home / "go").touch()
    until("setup to fail", lambda: bridge.state().get("reason") == "SetupFailed")
    assert lives(bridge)


def test_it_lives_in_a_turn_and_while_everyone_else_stands_still(
    make_bridge: Callable[..., Bridge], cutter: Cutter
) -> None:
    if os.geteuid() != 0:
        pytest.fail("a process namespace is needed here: run these tests as root")
    bridge = make_bridge(ALINEO_CHECKPOINTER=cutter.serve())
    answers: list[bool] = []

    def on_cut(_: dict[str, Any]) -> None:
        answers.extend(lives(bridge) for _ in range(5))

    cutter.on_cut = on_cut
    bridge.start(*UNSHARE)
    busy = script({"tool": "bash", "args": {"command": "timeout 2 sh -c 'while :; do :; done'"}}, {"text": "done"})
    bridge.post_turn(1, busy, checkpoint=True)
    bridge.wait_for("tool.started")
    assert all(lives(bridge) for _ in range(5))
    bridge.wait_for("checkpoint.cut")
    assert answers == [True] * 5
    os.kill(bridge_pid(bridge), signal.SIGSTOP)  # from outside, as only the node can
    assert not lives(bridge)
