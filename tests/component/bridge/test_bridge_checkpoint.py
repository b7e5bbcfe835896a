"""The gate between a clean turn and the next: shut while the archive is cut, and never for longer."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.component.bridge.bridge_rig import TOKEN, Bridge, Cutter, script, until

WRITER = "(while :; do date +%s%N >> grows; sleep 0.01; done) > /dev/null 2>&1 & echo $! > writer.pid"


def size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


@pytest.mark.behaviour("4.5", "11.15")
def test_while_the_archive_is_cut_no_turn_starts_and_nobody_writes(
    make_bridge: Callable[..., Bridge], cutter: Cutter
) -> None:
    bridge = make_bridge(ALINEO_CHECKPOINTER=cutter.serve())
    facts: dict[str, Any] = {}

    def on_cut(_: dict[str, Any]) -> None:
        facts["state"] = bridge.state()
        facts["events"] = bridge.events(1)
        facts["refused"] = bridge.post_turn(2, "not yet")
        facts["known"] = bridge.post_turn(1, prompt)
        sizes = set()
        for _ in range(20):
            sizes.add(size(bridge.workspace / "grows"))
            time.sleep(0.01)
        facts["sizes"] = sizes

    cutter.on_cut = on_cut
    bridge.start()
    # A descendant of the bridge for as long as its parent lives: Pi waits for a foreground command.
    prompt = "go" + script({"tool": "bash", "args": {"command": WRITER}}, {"text": "done"})
    grant = {"method": "PUT", "url": "http://bucket/x", "headers": {}, "key": "x", "expiresAt": 1.0}
    result = bridge.turn(1, prompt, checkpoint=True, grant=grant)
    cut = bridge.wait_for("checkpoint.cut")
    assert cut["data"] == {"sha256": "ab" * 32, "bytes": 7}
    assert facts["events"][-1] == "turn.ended"  # it stands in the journal that is packed
    assert facts["state"]["gateShut"]
    assert facts["refused"].status_code == 423
    assert facts["refused"].headers["retry-after"]
    assert facts["refused"].json()["reason"] == "GateShut"
    assert facts["known"].json()["state"] == "clean"
    assert cutter.tokens == [f"Bearer {TOKEN}"]
    assert cutter.seen[0]["turn"] == 1
    assert cutter.seen[0]["session"] == result["session"]
    assert cutter.seen[0]["grant"]["url"] == "http://bucket/x"
    until("the gate to open", lambda: not bridge.state().get("gateShut"))
    assert bridge.turn(2, "go on")["state"] == "clean"


@pytest.mark.behaviour("4.6")
def test_a_dead_packer_never_leaves_the_gate_shut(bridge: Bridge) -> None:
    result = bridge.turn(1, "one", checkpoint=True)
    assert result["state"] == "clean"
    failed = bridge.wait_for("checkpoint.failed")["data"]
    assert failed["reason"] == "CutFailed"
    assert "does not answer" in failed["message"]
    until("the gate to open", lambda: not bridge.state().get("gateShut"))
    assert bridge.turn(2, "two")["state"] == "clean"


@pytest.mark.behaviour("4.6")
def test_a_packer_that_hangs_is_given_up(make_bridge: Callable[..., Bridge], cutter: Cutter) -> None:
    bridge = make_bridge(ALINEO_CHECKPOINTER=cutter.serve(), ALINEO_CUT_LIMIT="1")
    cutter.on_cut = lambda _: time.sleep(5)
    bridge.start().turn(1, "one", checkpoint=True)
    assert "within 1 s" in bridge.wait_for("checkpoint.failed")["data"]["message"]
    assert bridge.turn(2, "two")["state"] == "clean"


def test_a_packers_own_words_are_passed_on(make_bridge: Callable[..., Bridge], cutter: Cutter) -> None:
    bridge = make_bridge(ALINEO_CHECKPOINTER=cutter.serve())
    cutter.status = 507
    bridge.start().turn(1, "one", checkpoint=True)
    assert "no space left" in bridge.wait_for("checkpoint.failed")["data"]["message"]


@pytest.mark.behaviour("4.1")
def test_only_a_clean_turn_that_asks_for_it_is_cut(make_bridge: Callable[..., Bridge], cutter: Cutter) -> None:
    bridge = make_bridge(ALINEO_CHECKPOINTER=cutter.serve()).start()
    bridge.turn(1, "not asked for")
    bridge.turn(2, "refused" + script({"http": 400}), checkpoint=True)
    bridge.turn(3, "clean", checkpoint=True)
    bridge.wait_for("checkpoint.cut")
    assert [body["turn"] for body in cutter.seen] == [3]


def test_a_bridge_killed_while_the_archive_is_cut_has_it_cut_again(
    make_bridge: Callable[..., Bridge], cutter: Cutter
) -> None:
    bridge = make_bridge(ALINEO_CHECKPOINTER=cutter.serve())
    cutter.on_cut = lambda _: time.sleep(2)
    bridge.start().turn(1, "one", checkpoint=True)
    until("the cut to begin", lambda: cutter.seen)
    bridge.kill()
    bridge.start(ready=False)
    bridge.wait_for("checkpoint.cut")
    assert [body["turn"] for body in cutter.seen] == [1, 1]
    assert "grant" not in cutter.seen[1]
