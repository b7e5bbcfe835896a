"""A harness that dies, hangs or loses its memory in a turn, while its bridge goes on."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.component.bridge.bridge_rig import Bridge, script, until


@pytest.mark.parametrize(("signum", "kind"), [(signal.SIGKILL, "killed"), (signal.SIGABRT, "harness")])
def test_a_harness_that_dies_in_a_turn_cuts_it_off_and_takes_its_tool_with_it(
    bridge: Bridge, signum: int, kind: str
) -> None:
    serve = "sh -c 'exec setsid sleep 1001' > /dev/null 2>&1 &"
    bridge.turn(1, "remember me" + script({"tool": "bash", "args": {"command": serve}}, {"text": "served"}))
    command = "touch it-ran; sleep 1000"
    bridge.post_turn(2, "half" + script({"text": "let me see", "tool": "bash", "args": {"command": command}}))
    until("the tool to run", (bridge.workspace / "it-ran").exists)
    (pid,) = bridge.pi_pids()
    os.kill(pid, signum)
    result = bridge.result(2)
    assert (result["state"], result["text"], result["tools"]) == ("interrupted", "let me see", ["bash"])
    assert f"was killed by signal {signum}" in result["error"]["message"]
    assert result["error"]["kind"] == kind
    assert _find_sleeps(bridge) == ["1001"]  # what an earlier turn had left at work goes on
    assert bridge.turn(3, "and now")["text"].startswith("SEEN 2: remember me")


SPOIL = {
    "overwritten": "for f in $(find ~ -name '*.jsonl'); do echo garbage > $f; done",
    "cut short": "for f in $(find ~ -name '*.jsonl'); do head -c 3000 $f > /tmp/$$; cat /tmp/$$ > $f; done",
    "removed": "find ~ -name '*.jsonl' -delete",
}


@pytest.mark.parametrize("what", SPOIL)
def test_a_conversation_that_was_spoilt_in_a_turn_is_neither_saved_nor_taken_for_the_memory(
    bridge: Bridge, what: str
) -> None:
    bridge.turn(1, "remember me")
    spoil = script({"tool": "bash", "args": {"command": SPOIL[what]}}, {"text": "it is done"})
    result = bridge.turn(2, "spoil it" + spoil, checkpoint=True)
    assert (result["state"], result["error"]["kind"], result["text"]) == ("failed", "session", "it is done")
    assert "the conversation cannot be read back from ~/.alineo/sessions/" in result["error"]["message"]
    assert "session" not in result
    assert not [event for event in bridge.events(2) if event.startswith("checkpoint")]
    after = bridge.turn(3, "who am I")
    assert (after["state"], after["error"]["kind"]) == ("failed", "session")


def test_a_harness_that_does_not_go_on_after_an_error_is_ended(bridge: Bridge) -> None:
    bridge.turn(1, "remember me")
    command = {"tool": "bash", "args": {"command": "rm -rf ~/.alineo"}}
    result = bridge.turn(2, "lose it" + script(command, {"text": "never seen"}))
    assert (result["state"], result["error"]["kind"]) == ("failed", "session")
    assert bridge.pi_pids() == []


def _find_sleeps(bridge: Bridge) -> list[str]:
    lines = [Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0") for pid in bridge.pids()]
    return [line[1].decode() for line in lines if line[0].endswith(b"sleep")]


def test_a_harness_that_exits_in_a_turn_says_why_in_its_own_words(make_bridge: Callable[..., Bridge]) -> None:
    bridge = make_bridge()
    extensions = bridge.home / ".pi/agent/extensions"
    extensions.mkdir(parents=True)
    (extensions / "die.ts").write_text("""
        export default (pi) => pi.on("tool_call", () => { console.error("out of cheese"); process.exit(7); });""")
    bridge.start()
    result = bridge.turn(1, script({"text": "I try", "tool": "bash", "args": {"command": "true"}}))
    assert (result["state"], result["error"]["kind"], result["text"]) == ("interrupted", "harness", "I try")
    assert "code 7" in result["error"]["message"]
    assert "out of cheese" in result["error"]["message"]
    assert bridge.turn(2, "again")["text"] == "SEEN 1: again"  # no half turn is left in the conversation
