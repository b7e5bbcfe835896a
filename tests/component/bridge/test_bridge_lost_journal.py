"""An agent is root in its container and may remove or spoil the journal: it is said, and no turn runs twice."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.component.bridge.bridge_rig import Bridge, ScriptedModel, script, until

SLOW = "half" + script({"text": "one two three four five six", "chunk": 4, "delay": 0.3})


def journal_of(bridge: Bridge) -> Path:
    return bridge.control / "journal"


def mark_of(bridge: Bridge) -> Path:
    return bridge.control / "begun-journal.json"


def newest(bridge: Bridge) -> Path:
    return sorted(journal_of(bridge).glob("*.jsonl"))[-1]


def remove(bridge: Bridge) -> None:
    shutil.rmtree(journal_of(bridge))


def empty(bridge: Bridge) -> None:
    for path in journal_of(bridge).iterdir():
        path.write_bytes(b"")


def asked(model: ScriptedModel, prompt: str) -> int:
    return sum(entry["users"][-1].startswith(prompt) for entry in model.log())


def refuse(answer: Any) -> None:
    assert (answer.status_code, answer.json()["reason"]) == (409, "JournalReset"), answer.text


@pytest.mark.behaviour("3.5", "3.18")
@pytest.mark.parametrize("lose", [remove, empty])
def test_a_turn_whose_journal_is_gone_does_not_run_again(
    bridge: Bridge, model: ScriptedModel, lose: Callable[[Bridge], None]
) -> None:
    """The operator had heard nothing of it: only the bridge can know that it began."""
    bridge.turn(1, "remember me")
    before = len(model.log())
    bridge.post_turn(2, SLOW)
    bridge.wait_for("text.delta", turn=2)
    bridge.kill()
    lose(bridge)
    bridge.start()
    for _ in range(2):
        refuse(bridge.post_turn(2, SLOW))
    bridge.kill()
    bridge.start()
    refuse(bridge.post_turn(2, SLOW))
    assert len(model.log()) == before + 1
    assert bridge.turn(3, "what do you know")["text"] == "SEEN 2: remember me | what do you know"


@pytest.mark.behaviour("3.18")
def test_who_has_heard_more_than_is_there_is_told_and_numbers_go_on_above_it(
    bridge: Bridge, model: ScriptedModel
) -> None:
    """Journal and mark are gone, as after a reboot that cleared the volume: the operator's word is all there is."""
    bridge.post_turn(1, SLOW)
    heard = bridge.wait_for("turn.started")["seq"]
    bridge.kill()
    remove(bridge)
    mark_of(bridge).unlink()
    bridge.start()
    before = len(model.log())
    refuse(bridge.client.get("/v1/journal", params={"after": heard}))
    refuse(bridge.post_turn(1, SLOW, heard=heard))
    refuse(bridge.post_turn(1, SLOW, heard=heard))
    (lost,) = bridge.journal(after=heard)
    assert (lost["event"], lost["seq"], lost["turn"]) == ("journal.lost", heard + 1, 1)
    assert (lost["data"]["from"], lost["data"]["to"]) == (1, heard)
    assert len(model.log()) == before
    assert bridge.post_turn(2, "go on", heard=heard + 1).status_code == 202
    assert bridge.result(2)["state"] == "clean"


@pytest.mark.behaviour("3.18")
def test_numbers_that_were_given_out_never_mean_something_else(bridge: Bridge) -> None:
    """Cut off before what a reader has: the turn's end would come under a number that stands for something else."""
    bridge.post_turn(1, "go" + script({"tool": "bash", "args": {"command": "sleep 60"}}))
    heard = bridge.wait_for("tool.started")["seq"]
    bridge.kill()
    lines = newest(bridge).read_bytes().splitlines(keepends=True)
    newest(bridge).write_bytes(b"".join(lines[: heard - 1]))
    bridge.start()
    assert bridge.state()["journalSeq"] == heard  # the interruption that the bridge itself wrote
    refuse(bridge.post_turn(1, "go", heard=heard))
    (lost,) = bridge.journal(after=heard)
    assert (lost["event"], lost["data"]["from"], lost["data"]["to"]) == ("journal.lost", heard, heard)


def test_a_journal_that_goes_while_the_bridge_runs_is_written_anew_and_the_gap_is_said(bridge: Bridge) -> None:
    bridge.turn(1, "one")
    seq = bridge.state()["journalSeq"]
    remove(bridge)
    assert [(one["event"], one["seq"], one["data"]["missing"]) for one in bridge.journal()] == [
        ("journal.damaged", seq, seq)
    ]
    assert bridge.turn(2, "two")["text"] == "SEEN 2: one | two"
    assert bridge.journal(after=seq)[0]["seq"] == seq + 1
    bridge.kill()
    bridge.start()
    assert bridge.turn(3, "three")["text"] == "SEEN 3: one | two | three"


def test_an_end_that_was_damaged_while_the_bridge_runs_is_not_waited_for_for_ever(bridge: Bridge) -> None:
    """Nobody had read it yet. Asked again by one who read past it, the bridge says that the turn's end is lost."""
    bridge.turn(1, "one")
    seq = bridge.state()["journalSeq"]
    text = newest(bridge).read_bytes()
    newest(bridge).write_bytes(text.replace(b"turn.ended", b"turn.endeX").replace(b'"seq":%d}' % seq, b'"seq":'))
    assert bridge.journal()[-1]["event"] == "journal.damaged"
    assert bridge.post_turn(1, "one", heard=seq - 1).json()["state"] == "clean"
    refuse(bridge.post_turn(1, "one", heard=seq))
    (lost,) = bridge.journal(after=seq)
    assert (lost["event"], lost["turn"], lost["data"]["from"]) == ("journal.lost", 1, seq)
    assert bridge.turn(2, "two")["state"] == "clean"


def test_a_turn_that_ended_before_its_journal_went_is_kept_in_the_conversation(bridge: Bridge) -> None:
    bridge.turn(1, "remember me")
    bridge.kill()
    remove(bridge)
    bridge.start()
    assert bridge.turn(2, "what do you know")["text"] == "SEEN 2: remember me | what do you know"
    until("the loss to be told", lambda: "journal.lost" in bridge.events(1))
