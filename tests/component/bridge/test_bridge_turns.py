"""Turns as the operator sees them: a real bridge process, a real Pi, a scripted model."""

import pytest

from tests.component.bridge.bridge_rig import Bridge


@pytest.mark.behaviour("3.1", "3.10")
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
