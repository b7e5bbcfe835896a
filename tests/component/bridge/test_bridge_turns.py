"""Turns as the operator sees them: a real bridge process, a real Pi, a scripted model."""

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.component.bridge.bridge_rig import Bridge, ScriptedModel, script, until


@pytest.mark.behaviour("1.5", "3.1", "3.10")
def test_a_clean_turn_is_journaled_whole_and_the_next_one_remembers(bridge: Bridge) -> None:
    first = bridge.turn(1, "my name is Ada")
    assert (first["state"], first["text"]) == ("clean", "SEEN 1: my name is Ada")
    assert first["usage"]["inputTokens"] > 0
    assert "usd" not in first["usage"]  # nobody told Pi what this model costs
    assert first["session"]["bytes"] == bridge.session_files()[0].stat().st_size

    second = bridge.turn(2, "who am I")
    assert second["text"] == "SEEN 2: my name is Ada | who am I"
    assert second["session"]["id"] == first["session"]["id"]
    records = bridge.journal()
    assert [record["seq"] for record in records] == list(range(1, len(records) + 1))
    assert bridge.events(2) == ["turn.started", "message", "turn.ended"]
    state = bridge.state()
    assert state["turn"] == {"turn": 2, "turnId": "id-2", "state": "clean"}
    assert state["journalSeq"] == len(records)
    assert state["ready"]
    assert bridge.pi_pids() == []


@pytest.mark.behaviour("3.13")
def test_tools_find_the_turns_id_and_none_of_the_bridges_own_settings(bridge: Bridge) -> None:
    command = 'echo "$ALINEO_TURN_ID $ALINEO_AGENT [$ALINEO_HARNESS$ALINEO_SETUP]"; pwd; exit 3'
    result = bridge.turn(1, "go" + script({"tool": "bash", "args": {"command": command}}, {"text": "done"}))
    assert (result["state"], result["text"]) == ("clean", "done")
    started, ended = bridge.wait_for("tool.started")["data"], bridge.wait_for("tool.ended")["data"]
    assert started["name"] == "bash"
    assert started["args"]["command"] == command
    assert ended["isError"]  # and not a failed turn
    assert ended["text"].startswith(f"id-1 {bridge.agent} []\n{bridge.workspace}")


@pytest.mark.behaviour("3.2")
@pytest.mark.parametrize("status", [400, 401])
def test_a_providers_refusal_fails_the_turn_and_keeps_the_text_before_it(bridge: Bridge, status: int) -> None:
    steps = script(
        {"text": "so far so good", "tool": "bash", "args": {"command": "true"}},
        {"http": status, "message": "this model is not for you"},
    )
    result = bridge.turn(1, steps)
    assert result["state"] == "failed"
    assert result["text"] == "so far so good"
    assert result["error"]["kind"] == "provider"
    assert "this model is not for you" in result["error"]["message"]
    assert result["tools"] == ["bash"]
    assert bridge.turn(2, "and now" + script({"recall": True}))["state"] == "clean"


@pytest.mark.behaviour("3.3")
def test_an_error_that_a_retry_got_past_does_not_fail_the_turn(bridge: Bridge) -> None:
    result = bridge.turn(1, "retry" + script({"http": 500, "times": 1}, {"text": "second time lucky"}))
    assert (result["state"], result["text"]) == ("clean", "second time lucky")
    retries = [record["data"] for record in bridge.journal() if record["event"] == "retry"]
    assert [retry["phase"] for retry in retries] == ["started", "ended"]


def test_the_text_of_a_try_that_broke_off_is_taken_back(bridge: Bridge) -> None:
    heard: list[tuple[str, str]] = []

    def listen() -> None:
        for record in bridge.follow():
            heard.append((record["event"], record.get("data", {}).get("text", "")))
            if record["event"] == "turn.ended":
                return

    listener = threading.Thread(target=listen)
    listener.start()
    lost = {"text": "lost lost lost", "chunk": 5, "disconnect": 2, "times": 1}
    result = bridge.turn(1, "drop" + script(lost, {"text": "kept"}))
    listener.join(30)
    assert result["text"] == "kept"
    events = [event for event, _ in heard]
    assert events.index("text.reset") > events.index("text.delta")
    after = heard[len(heard) - events[::-1].index("text.reset") :]
    assert "".join(text for event, text in after if event == "text.delta") == "kept"


@pytest.mark.behaviour("11.8")
def test_an_answer_cut_off_at_the_token_limit_is_not_clean(bridge: Bridge) -> None:
    result = bridge.turn(1, script({"text": "and then the", "finish": "length"}), checkpoint=True)
    assert (result["state"], result["error"]["kind"], result["text"]) == ("failed", "truncated", "and then the")
    assert "session" not in result
    assert not [event for event in bridge.events(1) if event.startswith("checkpoint")]


@pytest.mark.behaviour("11.9")
def test_empty_text_is_an_empty_result(bridge: Bridge) -> None:
    command = {"text": "not the result", "tool": "bash", "args": {"command": "true"}}
    result = bridge.turn(1, script(command, {"text": ""}))
    assert result["state"] == "clean"
    assert result.get("text", "") == ""


@pytest.mark.behaviour("3.17")
def test_a_turn_past_its_time_is_ended_with_its_text(bridge: Bridge) -> None:
    prompt = script({"text": "here I stay for good", "chunk": 4, "stall": 60, "after": 3})
    result = bridge.turn(1, prompt, limits={"turnMax": 10})  # of which the start of Pi takes some
    assert (result["state"], result["error"]["kind"], result["text"]) == ("failed", "timeout", "here I stay ")
    assert "10 s" in result["error"]["message"]


@pytest.mark.behaviour("3.16")
def test_silence_is_noted_and_is_no_end(bridge: Bridge) -> None:
    prompt = script({"tool": "bash", "args": {"command": "sleep 2"}}, {"text": "awake"})
    result = bridge.turn(1, prompt, limits={"promptInactivity": 0.7})
    assert (result["state"], result["text"]) == ("clean", "awake")
    assert bridge.wait_for("silence")["data"]["seconds"] >= 0.7


def test_an_aborted_turn_keeps_its_text_and_the_next_one_goes_on(bridge: Bridge) -> None:
    bridge.post_turn(1, "first" + script({"text": "one two three four five six", "chunk": 4, "delay": 0.3}))
    bridge.wait_for("text.delta", count=2)
    answer = bridge.client.post("/v1/turns/id-1/abort", json={"reason": "Ada pressed stop"})
    assert answer.json() == {"turn": 1, "turnId": "id-1", "state": "aborted"}
    result = bridge.result(1)
    assert result["text"].startswith("one")
    assert result["error"] == {"kind": "aborted", "message": "Ada pressed stop"}
    again = bridge.client.post("/v1/turns/id-1/abort", json={"reason": "again"})
    assert again.json()["state"] == "aborted"
    assert bridge.client.post("/v1/turns/nobody/abort", json={"reason": "?"}).status_code == 404
    assert bridge.turn(2, "second")["text"] == "SEEN 2: first | second"


def test_an_abort_ends_the_running_tool(bridge: Bridge) -> None:
    marker = bridge.workspace / "started"
    bridge.post_turn(1, script({"tool": "bash", "args": {"command": f"touch {marker}; sleep 1000"}}))
    until("the tool to run", marker.exists)
    answer = bridge.client.post("/v1/turns/id-1/abort", json={"reason": "enough"})
    assert answer.json()["state"] == "aborted"
    assert bridge.result(1)["tools"] == ["bash"]
    assert bridge.pi_pids() == []


def test_an_abort_ends_a_harness_that_no_longer_listens(bridge: Bridge) -> None:
    bridge.turn(1, "remember me")
    bridge.post_turn(2, "half" + script({"text": "one two three four", "chunk": 4, "delay": 1}))
    bridge.wait_for("text.delta", turn=2)
    (pid,) = bridge.pi_pids()
    os.kill(pid, signal.SIGSTOP)
    answer = bridge.client.post("/v1/turns/id-2/abort", json={"reason": "it hangs"})
    assert answer.json()["state"] == "aborted"
    assert bridge.result(2)["error"]["message"] == "it hangs"
    assert bridge.pi_pids() == []
    assert bridge.turn(3, "and now")["text"] == "SEEN 2: remember me | and now"  # no half turn stays


def test_turns_leave_nothing_open_behind_them(make_bridge: Callable[..., Bridge]) -> None:
    bridge = make_bridge()
    extensions = bridge.home / ".pi/agent/extensions"
    extensions.mkdir(parents=True)
    (extensions / "hold.ts").write_text("""
        import { spawn } from "node:child_process";
        import { appendFileSync } from "node:fs";
        export default (pi) => pi.on("tool_call", () => {
          const held = spawn("sleep", ["1000"], { stdio: "inherit", detached: true });
          held.unref();
          appendFileSync("held", held.pid + " ");
        });""")
    bridge.start()
    assert bridge.process is not None
    descriptors = Path(f"/proc/{bridge.process.pid}/fd")
    bridge.turn(1, "warm up" + script({"tool": "bash", "args": {"command": "true"}}, {"text": "ok"}))
    before = len(list(descriptors.iterdir()))
    for turn in range(
        2, 5
    ):  # someone holds the ends of Pi's own pipes, and neither delays a turn nor costs a descriptor
        assert bridge.turn(turn, script({"tool": "bash", "args": {"command": "true"}}, {"text": "ok"}))["text"] == "ok"
    until("the descriptors to be closed", lambda: len(list(descriptors.iterdir())) <= before)
    assert len((bridge.workspace / "held").read_text().split()) == 4


@pytest.mark.behaviour("11.15")
def test_what_an_agent_leaves_running_does_not_delay_the_end_of_its_turn(bridge: Bridge) -> None:
    command = "(trap '' HUP TERM; echo $BASHPID > left.pid; exec sleep 1000) > /dev/null 2>&1 & echo back"
    result = bridge.turn(1, script({"tool": "bash", "args": {"command": command}}, {"text": "left it"}))
    assert (result["state"], result["text"]) == ("clean", "left it")
    pid = int(until("the pid", (bridge.workspace / "left.pid").read_text))
    assert "sleep" in Path(f"/proc/{pid}/cmdline").read_text()  # it is the agent's, and lives
    assert bridge.pi_pids() == []


def test_a_turn_is_known_by_its_number_and_id(bridge: Bridge) -> None:
    prompt = "slow" + script({"text": "a b c d e f", "chunk": 2, "delay": 0.2})
    assert bridge.post_turn(1, prompt).status_code == 202
    again = bridge.post_turn(1, prompt)
    assert (again.status_code, again.json()["state"]) == (200, "running")
    busy = bridge.post_turn(2, "another")
    assert (busy.status_code, busy.json()["reason"]) == (409, "Busy")
    assert "turn 1 is running" in busy.json()["detail"]
    assert bridge.result(1)["state"] == "clean"

    again = bridge.post_turn(1, prompt)
    assert (again.status_code, again.json()) == (200, {"turn": 1, "turnId": "id-1", "state": "clean"})
    assert bridge.post_turn(1, "other words").json()["reason"] == "OtherPrompt"
    assert bridge.post_turn(1, prompt, preface="told otherwise").json()["state"] == "clean"
    assert bridge.post_turn(1, prompt, turnId="other").json()["reason"] == "OtherTurn"
    retry = bridge.turn(3, "the same id, a later attempt", turnId="id-1")
    assert retry["state"] == "clean"
    assert bridge.post_turn(2, "too late").json()["reason"] == "StaleTurn"
    assert bridge.events(1).count("turn.started") == 1


@pytest.mark.parametrize(
    ("body", "words"),
    [(b"{", "JSON"), (b'{"turn":1}', "turnId"), (b'{"turn":"x","turnId":"a","prompt":"b"}', "$.turn")],
)
def test_a_body_that_is_no_request_is_refused_with_the_field(bridge: Bridge, body: bytes, words: str) -> None:
    answer = bridge.client.post("/v1/turns", content=body)
    assert answer.status_code == 400
    assert answer.json()["reason"] == "InvalidBody"
    assert words in answer.json()["detail"] or words == "JSON"


def test_another_provider_protocol(make_bridge: Callable[..., Bridge], model: ScriptedModel) -> None:
    bridge = make_bridge()
    spec = bridge.environment["ALINEO_HARNESS"].replace('"openai"', '"anthropic"')
    bridge.environment["ALINEO_HARNESS"] = spec
    bridge.start()
    prompt = "hello" + script({"tool": "bash", "args": {"command": "echo hi"}}, {"text": "said hi"})
    assert bridge.turn(1, prompt)["text"] == "said hi"
    assert model.log()[-1]["path"].startswith("/v1/messages")


@pytest.mark.behaviour("11.12")
def test_a_rotated_key_counts_from_the_next_turn_on(make_bridge: Callable[..., Bridge], tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("sk-right")
    strict = ScriptedModel(tmp_path, "--api-key-file", str(key))
    try:
        bridge = make_bridge(model_url=strict.url).start()
        assert bridge.turn(1, "one")["state"] == "clean"
        key.write_text("sk-new")
        refused = bridge.turn(2, "two")
        assert (refused["state"], refused["error"]["kind"]) == ("failed", "provider")
        assert "Incorrect API key provided" in refused["error"]["message"]
        (bridge.credentials / "MODEL_KEY").write_text("sk-new")
        assert bridge.turn(3, "three")["state"] == "clean"
    finally:
        strict.close()


def test_a_dialog_is_refused_and_does_not_block_the_turn(make_bridge: Callable[..., Bridge]) -> None:
    bridge = make_bridge()
    extensions = bridge.home / ".pi/agent/extensions"
    extensions.mkdir(parents=True)
    (extensions / "ask.ts").write_text("""
        export default (pi) => pi.on("tool_call", async (event, ctx) => {
          if (!(await ctx.ui.confirm("May I?", "run it"))) return { block: true, reason: "nobody agreed" };
        });""")
    bridge.start()
    result = bridge.turn(1, script({"tool": "bash", "args": {"command": "touch ran"}}, {"text": "went on"}))
    assert result["text"] == "went on"
    asked = bridge.wait_for("permission")["data"]
    assert (asked["method"], asked["title"], asked["phase"]) == ("confirm", "May I?", "refused")
    assert not (bridge.workspace / "ran").exists()


def test_text_is_written_by_rule_and_a_large_result_is_cut_with_a_note(bridge: Bridge) -> None:
    big = {"tool": "bash", "args": {"command": "head -c 40000 /dev/zero | tr '\\\\0' x"}}
    result = bridge.turn(1, script(big, {"text": "a\u2028b\u0000c" + "y" * 300_000, "chunk": 50_000}))
    assert result["text"].startswith("a\nb\ufffdcyyy")
    assert "characters left out]" in result["text"]
    assert len(result["text"]) < 256 * 1024
    assert len(bridge.wait_for("tool.ended")["data"]["text"]) >= 40_000


def test_a_leader_after_its_term_is_refused_even_by_the_next_process(bridge: Bridge) -> None:
    assert bridge.turn(1, "hello", epoch=4)["state"] == "clean"
    assert bridge.post_turn(1, "hello", epoch=5).status_code == 200  # a repeat starts nothing, and says who leads now
    for _ in range(2):
        late = bridge.post_turn(2, "of a former leader", epoch=4)
        assert (late.status_code, late.json()["reason"]) == (409, "StaleEpoch")
        stopped = bridge.client.post("/v1/turns/id-1/abort", json={"reason": "of a former leader", "epoch": 4})
        assert (stopped.status_code, stopped.json()["reason"]) == (409, "StaleEpoch")
        bridge.kill()
        bridge.start()
    assert bridge.turn(2, "of the leader", epoch=5)["state"] == "clean"
