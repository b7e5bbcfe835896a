"""No operator runs for a while; agents work on, and whoever comes back records all of it."""

import json

import pytest

from hack.demo.api import ControlApi
from tests.support.e2e_expect import has_checkpoint, has_come_back, has_condition, has_turn, in_phase
from tests.support.e2e_gates import hold, open_gate, wait_at_gate
from tests.support.e2e_ledger import check_unbroken, count_turns, select, the_one
from tests.support.e2e_objects import Json, bash, build_swarm, play, text
from tests.support.e2e_operators import without_operators
from tests.support.e2e_parts import Bucket, ScriptedModel, read_archive
from tests.support.e2e_world import World

pytestmark = pytest.mark.smoke

NAME = "alone"
ENDS, STAYS, WAITS = (f"{NAME}-{alias}" for alias in ("ends", "stays", "waits"))
MADE = bash("echo made > ~/made; cat ~/made")


@pytest.fixture(scope="module")
def running(world: World, bucket: Bucket, space: str) -> Json:
    """The agent whose turn still ran when the operator came back; everything else of the gap has happened."""
    entries = [
        {"name": "ends", "prompt": play(hold(), MADE, text("Ended alone."), say="End alone.")},
        {"name": "stays", "prompt": play(hold(), MADE, hold("later"), text("Stayed on."), say="Stay on.")},
        {"name": "waits", "prompt": play(bash("cat /inputs/ends.txt"), text("Read.")), "waitFor": ["ends"]},
    ]
    world.apply(space, build_swarm(NAME, entries))
    for name in (ENDS, STAYS):
        wait_at_gate(world, space, f"{name}-1")
    with without_operators(world):
        for name in (ENDS, STAYS):
            open_gate(world, space, f"{name}-1")
        wait_at_gate(world, space, f"{STAYS}-1", "later")
        saved = f"alineod/checkpoints/{space}/{ENDS}/"
        world.until("the turn that ended alone should be saved by its grant", lambda: bucket.list(saved), space)
    # What is shown of its turn may still be of before.
    back = has_come_back("Reattach", 1) & has_turn(1, "Running") & has_condition("Running") & has_condition("Ready")
    return world.wait_agent(space, STAYS, back)


@pytest.mark.behaviour("3.9", "3.11", "4.10", "4.11")
def test_a_turn_that_ended_meanwhile_is_recorded_whole_and_is_in_the_bucket(
    world: World, bucket: Bucket, space: str, running: Json
) -> None:
    world.wait_agent(space, ENDS, in_phase("Done") & has_checkpoint(1) & has_condition("Interrupted", "False"))
    rows = world.read_ledger(agent=f"{space}/{ENDS}")
    assert the_one(rows, "agent.turn_ended")["payload"]["text"] == "Ended alone."
    archive = read_archive(bucket.read(the_one(rows, "agent.checkpointed")["payload"]["remoteRef"]))
    kept = [json.loads(line) for line in archive["alineo/journal.jsonl"].splitlines()]
    told = [(row["payload"]["seq"], row["payload"]["type"]) for row in rows if row["event"].startswith("harness.")]
    assert told[: len(kept)] == [(record["seq"], record["event"]) for record in kept]
    assert [event for _, event in told].count("tool.ended") == 2


@pytest.mark.behaviour("3.11", "3.12", "5.4")
def test_a_turn_that_still_runs_is_followed_on(
    world: World, api: ControlApi, space: str, running: Json, model: ScriptedModel
) -> None:
    rows = world.read_ledger(agent=f"{space}/{STAYS}")
    back = the_one(rows, "agent.restored", rung="Reattach")
    heard = [row for row in rows if row["event"].startswith("harness.tool.") and row["payload"]["turn"] == 1]
    assert [row["event"].rpartition(".")[2] for row in heard] == ["started", "ended", "started", "ended", "started"]
    assert "made" in str(heard[3]["payload"]["data"])
    assert back["seq"] > heard[0]["seq"]
    open_gate(world, space, f"{STAYS}-1", "later")
    answer = api.result(f"{space}/{STAYS}", turn=1, wait=180)
    assert (answer.body["outcome"], answer.body["result"]) == ("success", "Stayed on.")
    asked = [one for one in model.find("Stay on.") if one["roles"][-1] == "user"]
    assert len(asked) == 1


@pytest.mark.behaviour("3.12", "5.14")
def test_neither_is_called_interrupted_and_who_waited_goes_on(world: World, space: str, running: Json) -> None:
    world.wait_agent(space, WAITS, in_phase("Done"))
    rows = world.read_ledger(run=f"{space}/{NAME}")
    assert not select(rows, "agent.turn_interrupted")
    assert set(count_turns(rows, "agent.turn_started").values()) == {1}
    assert "Ended alone." in str(the_one(rows, "harness.tool.ended", agent=f"{space}/{WAITS}")["payload"])
    check_unbroken(world.read_ledger())
