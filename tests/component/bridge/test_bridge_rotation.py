"""The model's key is changed under a bridge that goes on running, as the kubelet changes a mounted Secret."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.component.bridge.bridge_rig import Bridge, ScriptedModel
from tests.support.secrets import mount


@pytest.mark.behaviour("11.12")
def test_the_next_turn_uses_the_new_key(make_bridge: Callable[..., Bridge], tmp_path: Path) -> None:
    wanted = tmp_path / "key"
    wanted.write_text("sk-old")
    model = ScriptedModel(tmp_path, "--api-key-file", str(wanted))
    try:
        bridge = make_bridge(model_url=model.url)
        (bridge.credentials / "MODEL_KEY").unlink()
        mount(bridge.credentials, {"MODEL_KEY": "sk-old\n"})
        bridge.start()
        assert bridge.process is not None
        pid = bridge.process.pid
        assert bridge.turn(1, "go on")["state"] == "clean"
        wanted.write_text("sk-new")
        refused = bridge.turn(2, "go on")
        assert (refused["state"], refused["error"]["kind"]) == ("failed", "provider")
        mount(bridge.credentials, {"MODEL_KEY": "sk-new\n"})
        assert bridge.turn(3, "go on")["state"] == "clean"
        assert bridge.process.pid == pid
    finally:
        model.close()
