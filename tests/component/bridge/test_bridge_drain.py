"""A sandbox that is asked to end in the middle of a turn, as when its node is drained."""

import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.component.bridge.bridge_rig import Bridge, Cutter, script, until

WAITS = script({"tool": "bash", "args": {"command": "until [ -e go ]; do sleep 0.05; done"}}, {"text": "it is done"})


class Follower:
    """An operator that follows from now on, in a thread of its own."""

    def __init__(self, bridge: Bridge, after: int = 0) -> None:
        self.records: list[dict[str, Any]] = []
        self._thread = threading.Thread(target=lambda: self.records.extend(bridge.follow(after)), daemon=True)
        self._thread.start()

    def join(self) -> list[dict[str, Any]]:
        """What was heard, once the stream has ended by itself."""
        self._thread.join(60)
        assert not self._thread.is_alive()
        return self.records


def ask_to_end(bridge: Bridge) -> None:
    assert bridge.process is not None
    bridge.process.send_signal(signal.SIGTERM)
    until("it to be draining", lambda: bridge.state().get("draining"))


def exit_code(bridge: Bridge) -> int:
    assert bridge.process is not None
    return bridge.process.wait(60)


@pytest.mark.behaviour("3.19", "4.5")
def test_the_running_turn_ends_and_is_cut_before_the_process_goes(
    make_bridge: Callable[..., Bridge], cutter: Cutter
) -> None:
    bridge = make_bridge(ALINEO_DRAIN_GRACE="60", ALINEO_CHECKPOINTER=cutter.serve()).start()
    bridge.post_turn(1, WAITS, checkpoint=True)
    bridge.wait_for("tool.started")
    follower = Follower(bridge)
    ask_to_end(bridge)
    state = bridge.state()
    assert (state["ready"], state["reason"]) == (False, "Draining")
    assert bridge.client.get("/healthz").status_code == 503
    assert bridge.client.get("/livez").status_code == 200
    refused = bridge.post_turn(2, "too late")
    assert (refused.status_code, refused.json()["reason"]) == (503, "Draining")
    assert bridge.post_turn(1, WAITS, checkpoint=True).json()["state"] == "running"  # what is known is answered
    assert bridge.process is not None
    assert bridge.process.poll() is None
    (bridge.workspace / "go").touch()
    assert exit_code(bridge) == 0
    records = follower.join()
    assert [one["event"] for one in records][-2:] == ["turn.ended", "checkpoint.cut"]
    assert (records[-2]["data"]["state"], records[-2]["data"]["text"]) == ("clean", "it is done")
    assert [body["turn"] for body in cutter.seen] == [1]


@pytest.mark.behaviour("3.19")
def test_a_turn_that_takes_longer_is_interrupted_with_its_text(make_bridge: Callable[..., Bridge]) -> None:
    bridge = make_bridge(ALINEO_DRAIN_GRACE="3").start()
    bridge.turn(1, "remember me")
    bridge.post_turn(2, script({"text": "one two three four", "chunk": 4, "delay": 30}))
    bridge.wait_for("text.delta", turn=2)
    follower = Follower(bridge)
    ask_to_end(bridge)
    last = follower.join()[-1]
    assert (last["event"], last["data"]["state"]) == ("turn.ended", "interrupted")
    assert last["data"]["text"].startswith("one")
    assert exit_code(bridge) == 0
    bridge.start()
    assert bridge.turn(3, "what do you know")["text"] == "SEEN 2: remember me | what do you know"


@pytest.mark.behaviour("3.19")
def test_an_operator_that_is_away_may_come_back_for_the_end(make_bridge: Callable[..., Bridge]) -> None:
    bridge = make_bridge(ALINEO_DRAIN_GRACE="60").start()
    bridge.post_turn(1, WAITS)
    bridge.wait_for("tool.started")
    ask_to_end(bridge)
    (bridge.workspace / "go").touch()
    until("the turn to end", lambda: bridge.state()["turn"]["state"] == "clean")
    time.sleep(1)  # nobody listens: it would have gone by now
    assert Follower(bridge).join()[-1]["data"]["text"] == "it is done"
    assert exit_code(bridge) == 0


@pytest.mark.behaviour("3.19")
def test_a_turn_that_ended_just_before_is_kept_for_its_reader_too(make_bridge: Callable[..., Bridge]) -> None:
    bridge = make_bridge(ALINEO_DRAIN_GRACE="60").start()
    bridge.post_turn(1, "one")
    until("the turn to end", lambda: bridge.state()["turn"]["state"] == "clean")
    ask_to_end(bridge)
    time.sleep(1)  # nobody has read of it: it would have gone by now
    assert Follower(bridge).join()[-1]["event"] == "turn.ended"
    assert exit_code(bridge) == 0


def test_a_cut_that_runs_when_the_grace_is_over_gets_its_time(
    make_bridge: Callable[..., Bridge], cutter: Cutter
) -> None:
    bridge = make_bridge(ALINEO_DRAIN_GRACE="0.1", ALINEO_CUT_GRACE="30", ALINEO_CHECKPOINTER=cutter.serve())
    cutter.on_cut = lambda _: time.sleep(2)
    bridge.start().turn(1, "one", checkpoint=True)
    until("the cut to begin", lambda: cutter.seen)
    follower = Follower(bridge)
    ask_to_end(bridge)
    assert follower.join()[-1]["event"] == "checkpoint.cut"
    assert exit_code(bridge) == 0


def test_a_cut_that_hangs_is_not_waited_for_for_ever_and_done_by_the_next_container(
    make_bridge: Callable[..., Bridge], cutter: Cutter
) -> None:
    bridge = make_bridge(ALINEO_CHECKPOINTER=cutter.serve())
    over = threading.Event()
    cutter.on_cut = lambda _: over.wait(60) and None
    bridge.start().turn(1, "one", checkpoint=True)
    until("the cut to begin", lambda: cutter.seen)
    ask_to_end(bridge)
    assert exit_code(bridge) == 0
    over.set()
    bridge.start(ready=False)
    bridge.wait_for("checkpoint.cut")
    assert [body["turn"] for body in cutter.seen] == [1, 1]


def test_one_that_is_idle_ends_at_once_and_one_in_setup_too(make_bridge: Callable[..., Bridge]) -> None:
    idle = make_bridge(ALINEO_DRAIN_GRACE="60", ALINEO_CUT_GRACE="60").start()
    idle.turn(1, "one")
    before = time.monotonic()
    assert idle.stop() == 0
    setting_up = make_bridge("b", ALINEO_DRAIN_GRACE="60", ALINEO_SETUP="sleep 600").start(ready=False)
    until("setup to run", lambda: setting_up.state().get("reason") == "SettingUp")
    assert setting_up.stop() == 0
    assert time.monotonic() - before < 60  # neither waited for a grace
