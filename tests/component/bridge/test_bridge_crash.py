"""A bridge that is killed, at any moment, and started again on what it left."""

import json
from collections.abc import Callable

import pytest

from tests.component.bridge.bridge_rig import Bridge, ScriptedModel, script, until


@pytest.mark.behaviour("3.4", "3.5")
def test_killed_while_text_streams(bridge: Bridge, model: ScriptedModel) -> None:
    clean = bridge.turn(1, "remember me")
    bridge.post_turn(2, "half" + script({"text": "one two three four five six", "chunk": 4, "delay": 0.3}))
    bridge.wait_for("text.delta", turn=2, count=2)
    bridge.kill()
    bridge.start()

    result = bridge.result(2)
    assert result["state"] == "interrupted"
    assert result["error"]["kind"] == "interrupted"
    assert result["text"].startswith("one two ")
    assert bridge.session_files()[0].stat().st_size == clean["session"]["bytes"]
    assert bridge.post_turn(2, "half").json()["reason"] == "OtherPrompt"
    assert bridge.state()["turn"]["state"] == "interrupted"
    assert bridge.turn(3, "what do you know")["text"] == "SEEN 2: remember me | what do you know"
    assert model.log()[-1]["users"] == ["remember me", "what do you know"]
    records = bridge.journal()
    assert [record["seq"] for record in records] == list(range(1, len(records) + 1))


@pytest.mark.behaviour("3.4")
def test_killed_in_a_tool(bridge: Bridge) -> None:
    bridge.turn(1, "remember me")
    steps = script({"text": "let me see", "tool": "bash", "args": {"command": "touch it-ran; sleep 3"}})
    bridge.post_turn(2, "half" + steps)
    until("the tool to run", (bridge.workspace / "it-ran").exists)
    bridge.kill()
    bridge.start()
    result = bridge.result(2)
    assert (result["state"], result["text"], result["tools"]) == ("interrupted", "let me see", ["bash"])
    assert result["usage"]["inputTokens"] > 0  # what a killed attempt used counts
    assert bridge.turn(3, "and now")["text"] == "SEEN 2: remember me | and now"


def test_killed_in_the_very_first_turn_leaves_no_conversation(bridge: Bridge) -> None:
    bridge.post_turn(1, "half" + script({"text": "never whole", "chunk": 2, "delay": 0.5}))
    bridge.wait_for("text.delta")
    bridge.kill()
    bridge.start()
    assert bridge.result(1)["state"] == "interrupted"
    assert bridge.session_files() == []
    assert bridge.turn(2, "fresh")["text"] == "SEEN 1: fresh"


def test_a_turn_that_had_ended_is_known_after_a_restart_and_not_run_again(bridge: Bridge, model: ScriptedModel) -> None:
    bridge.turn(1, "only once please")
    boot = bridge.state()["boot"]
    bridge.kill()
    bridge.start()
    assert bridge.state()["boot"] != boot
    again = bridge.post_turn(1, "only once please")
    assert (again.status_code, again.json()["state"]) == (200, "clean")
    assert bridge.turn(2, "next")["text"] == "SEEN 2: only once please | next"
    assert sum(entry["users"] == ["only once please"] for entry in model.log()) == 1


def test_a_torn_record_is_cut_off_and_its_number_given_again(bridge: Bridge) -> None:
    bridge.turn(1, "one")
    seq = bridge.state()["journalSeq"]
    bridge.kill()
    newest = sorted((bridge.control / "journal").glob("*.jsonl"))[-1]
    with newest.open("ab") as file:
        file.write(b'{"time":1.0,"turn":1,"turnId":"id-1","event":"mess')
    bridge.start()
    assert bridge.state()["journalSeq"] == seq
    bridge.turn(2, "two")
    assert bridge.journal(after=seq)[0]["seq"] == seq + 1


@pytest.mark.behaviour("3.10")
def test_a_follower_comes_back_across_a_restart_and_misses_nothing(bridge: Bridge) -> None:
    bridge.turn(1, "one")
    bridge.post_turn(2, "two" + script({"tool": "bash", "args": {"command": "sleep 5"}}))
    seen = []
    for record in bridge.follow():
        if record.get("seq"):
            seen.append(record["seq"])
        if record["event"] == "tool.started":
            break
    bridge.kill()
    bridge.start()
    for record in bridge.follow(after=seen[-1]):
        seen.append(record["seq"])
        if record["event"] == "turn.ended":
            assert record["data"]["state"] == "interrupted"
            break
    assert seen == list(range(1, seen[-1] + 1))


def test_one_who_joins_in_the_middle_hears_the_message_from_its_beginning(bridge: Bridge) -> None:
    bridge.post_turn(1, script({"text": "alpha beta gamma delta", "chunk": 6, "delay": 0.4}))
    bridge.wait_for("text.delta", count=2)
    text = ""
    for record in bridge.follow():
        if record["event"] == "text.reset":
            text = ""
        elif record["event"] == "text.delta":
            text += record["data"]["text"]
        elif record["event"] == "message":
            break
    assert text == "alpha beta gamma delta"


@pytest.mark.parametrize("after", ["-1", "x", "", "1e3", "9" * 30])
def test_a_cursor_that_was_never_given_out_is_refused(bridge: Bridge, after: str) -> None:
    answer = bridge.client.get("/v1/journal", params={"after": after})
    assert (answer.status_code, answer.json()["reason"]) == (400, "InvalidCursor")


@pytest.mark.behaviour("3.6")
def test_after_an_interruption_the_agent_is_at_its_last_clean_turn(bridge: Bridge) -> None:
    bridge.turn(1, "clean")
    assert bridge.turn(2, "refused" + script({"http": 400}))["state"] == "failed"
    assert bridge.turn(3, "kept")["text"] == "SEEN 3: clean | refused | kept"
    assert bridge.turn(4, "refused again" + script({"http": 400}))["state"] == "failed"
    bridge.post_turn(5, "half" + script({"text": "abcdef", "chunk": 2, "delay": 1}))
    bridge.wait_for("text.delta", turn=5)
    bridge.kill()
    bridge.start()
    assert bridge.turn(6, "now")["text"] == "SEEN 4: clean | refused | kept | now"


@pytest.mark.parametrize("found", ["another", "none"])
def test_a_restored_conversation_that_is_not_the_one_of_the_checkpoint_is_told(
    make_bridge: Callable[..., Bridge], model: ScriptedModel, found: str
) -> None:
    before = make_bridge("before").start()
    session = before.turn(1, "remember me")["session"]
    before.kill()

    bridge = make_bridge("after")
    sessions = bridge.home / ".alineo/sessions"
    sessions.mkdir(parents=True)
    source = before.session_files()[0]
    if found == "another":
        header = json.loads(source.read_text().split("\n")[0])
        (sessions / source.name).write_text(json.dumps({**header, "cwd": str(bridge.workspace)}) + "\n")
    report = {"start": "checkpoint", "turn": 1, "session": session}
    (bridge.control / "restored.json").write_text(json.dumps(report))
    bridge.start()
    asked = len(model.log())
    result = bridge.turn(2, "who am I")
    assert (result["state"], result["error"]["kind"]) == ("failed", "session")
    assert session["id"] in result["error"]["message"]
    assert session["leaf"] in result["error"]["message"]
    assert len(model.log()) == asked


def test_a_restored_conversation_goes_on(make_bridge: Callable[..., Bridge]) -> None:
    bridge = make_bridge().start()
    session = bridge.turn(1, "remember me")["session"]
    bridge.kill()
    for path in (*(bridge.control / "journal").iterdir(), bridge.control / "begun-journal.json"):
        path.unlink()  # a new pod: the home was unpacked, the control volume is new
    report = {"start": "checkpoint", "turn": 1, "session": session}
    (bridge.control / "restored.json").write_text(json.dumps(report))
    bridge.start()
    assert bridge.state()["restoredTurn"] == 1
    assert bridge.turn(2, "who am I")["text"] == "SEEN 2: remember me | who am I"
