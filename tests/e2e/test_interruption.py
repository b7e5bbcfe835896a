"""What follows a turn that was cut off, by the policy of its swarm: a person is asked, or it is tried again."""

import pytest

from hack.demo.api import ControlApi
from tests.support.e2e_expect import (
    find_condition,
    has_checkpoint,
    has_come_back,
    has_condition,
    has_incarnation,
    has_turn,
    in_phase,
)
from tests.support.e2e_gates import cut_off, hold, open_gate, wait_at_gate
from tests.support.e2e_ledger import count_turns, select, the_one
from tests.support.e2e_objects import bash, build_swarm, play, text
from tests.support.e2e_parts import ScriptedModel
from tests.support.e2e_world import World

pytestmark = pytest.mark.smoke

ASKED, WAITS = "careful-one", "careful-next"
AGAIN, NEVER = "eager-again", "eager-never"
TELL_ID = 'echo "id=$ALINEO_TURN_ID"'


@pytest.fixture(scope="module")
def cut(world: World, space: str) -> None:
    """Two swarms whose agents were cut off in their first turn, one of them twice."""
    once = {"onInterruption": "Retry", "maxRetries": 1}
    world.apply(
        space,
        build_swarm("careful", [
            {"name": "one", "prompt": play(hold() | text("Half of it."), text("All of it."), say="Do it.")},
            {"name": "next", "prompt": play(bash("cat /inputs/one.txt"), text("Read.")), "waitFor": ["one"]},
        ], supervision={"onInterruption": "Ask"}),
        build_swarm("eager", [
            {"name": "again", "prompt": play(bash(TELL_ID), hold(), text("Made it."), say="Try.")},
            {"name": "never", "prompt": play(hold(), text("Never said."), say="Try in vain.")},
        ], supervision=once),
    )  # fmt: skip
    for name in (ASKED, AGAIN, NEVER):
        wait_at_gate(world, space, f"{name}-1")
        cut_off(world, space, f"{name}-1")
    wait_at_gate(world, space, f"{NEVER}-2")
    cut_off(world, space, f"{NEVER}-2")


@pytest.mark.behaviour("3.7", "2.5", "1.8")
def test_ask_blocks_the_agent_and_leaves_its_handle_pending(
    world: World, api: ControlApi, space: str, cut: None
) -> None:
    stalled = has_condition("Stalled", "True", "TurnInterrupted")  # once its next sandbox is there
    blocked = world.wait_agent(space, ASKED, in_phase("Blocked") & has_incarnation(2) & stalled)
    assert "turn 1 was cut off" in find_condition(blocked, "Interrupted")["message"]
    assert api.result(f"{space}/{ASKED}").status == 202
    assert world.wait_agent(space, WAITS, in_phase("Waiting"))
    rows = world.read_ledger(agent=f"{space}/{ASKED}")
    assert the_one(rows, "agent.supervision_needed")["payload"]["turn"] == 1
    assert the_one(rows, "agent.turn_interrupted")["payload"]["text"] == "Half of it."
    assert not select(rows, "handle.settled")


@pytest.mark.behaviour("3.7", "3.14")
def test_a_prompt_decides_and_it_goes_on(world: World, api: ControlApi, space: str, cut: None) -> None:
    key = f"{space}/{ASKED}"
    turn = api.prompt(key, play({"recall": True}, say="Then go on.")).body["turn"]
    said = api.result(key, turn=turn, wait=180).body["result"]
    assert said.startswith("SEEN 1: [Turn 1 was cut off")
    assert "bash" in said
    assert said.endswith("Then go on.")
    world.wait_agent(space, ASKED, in_phase("Done") & has_condition("Stalled", "False") & has_checkpoint(turn))
    world.wait_agent(space, WAITS, in_phase("Done"))
    rows = world.read_ledger(agent=f"{space}/{WAITS}")
    assert "Then go on." in str(the_one(rows, "harness.tool.ended")["payload"])


@pytest.mark.behaviour("3.8", "3.13", "3.14", "9.11")
def test_retry_gives_the_turn_once_more_under_its_id(
    world: World, api: ControlApi, space: str, cut: None, model: ScriptedModel
) -> None:
    key = f"{space}/{AGAIN}"
    wait_at_gate(world, space, f"{AGAIN}-2")
    rows = world.read_ledger(agent=key)
    assert not select(rows, "handle.settled")
    open_gate(world, space, f"{AGAIN}-2")
    world.wait_agent(space, AGAIN, in_phase("Done") & has_condition("Interrupted", "False"))
    assert api.result(key).body["result"] == "Made it."
    rows = world.read_ledger(agent=key)
    first, second = (row["payload"] for row in select(rows, "agent.turn_started"))
    assert (first["turnId"], first.get("attempt", 1)) == (second["turnId"], 1)
    assert (second["turn"], second["attempt"]) == (2, 2)
    told = [str(row["payload"]["data"]) for row in select(rows, "harness.tool.ended")]
    assert [f"id={first['turnId']}" in words for words in told] == [True, True, False]
    asked = [one["users"][-1] for one in model.find("Try.") if one["roles"][-1] == "user"]
    assert asked[0] == "Try."
    assert asked[1].startswith("[Turn 1 was cut off")
    assert "bash" in asked[1]


@pytest.mark.behaviour("3.8", "3.5")
def test_after_its_last_retry_a_turn_settles_as_interrupted(world: World, space: str, cut: None) -> None:
    world.wait_agent(space, NEVER, in_phase("Failed") & has_turn(2, "Interrupted") & has_come_back("Restore", 3))
    rows = world.read_ledger(agent=f"{space}/{NEVER}")
    key = f"{space}/{NEVER}"
    assert count_turns(rows, "agent.turn_started") == {(key, 1): 1, (key, 2): 1}
    assert count_turns(rows, "agent.turn_interrupted") == {(key, 1): 1, (key, 2): 1}
    settled = the_one(rows, "handle.settled")["payload"]
    assert (settled["turn"], settled["outcome"], settled["errorKind"]) == (2, "failed", "interrupted")
