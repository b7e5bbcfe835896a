"""Pods go; agents come back: with their conversation and files up to the last clean turn, and nothing hushed up."""

import pytest
from pykube.objects import Pod

from hack.demo.api import ControlApi
from tests.support.e2e_expect import (
    find_condition,
    has_checkpoint,
    has_come_back,
    has_condition,
    has_turn,
    in_phase,
)
from tests.support.e2e_ledger import names_of, select, the_one
from tests.support.e2e_objects import Json, bash, build_swarm, play, slow, text
from tests.support.e2e_tables import parse_table
from tests.support.e2e_world import World

pytestmark = pytest.mark.smoke

NAME = "team"
WORKER, LEAD, BLANK = f"{NAME}-worker", f"{NAME}-lead", f"{NAME}-blank"
SURVIVES = "This much was said before"


def build_team(**lead: Json) -> Json:
    """A lead and a worker that are kept, and one that is not."""
    remember = bash("echo first > ~/note; echo first > /workspace/note")
    agents = [
        {"name": "lead", "prompt": play(text("I lead."), say="Lead them."), **lead},
        {"name": "worker", "prompt": play(remember, text("I worked."), say="Work on it.")},
        {"name": "blank", "checkpoint": False, "prompt": play(remember, text("I forget."), say="Forget it.")},
    ]
    return build_swarm(NAME, agents)


@pytest.fixture(scope="module")
def team(world: World, space: str) -> None:
    """All of them, at the end of their first turn."""
    world.apply(space, build_team())
    for name in (LEAD, WORKER):
        world.wait_agent(space, name, in_phase("Done") & has_checkpoint(1))
    world.wait_agent(space, BLANK, in_phase("Done"))


@pytest.fixture(scope="module")
def cut_off(world: World, api: ControlApi, space: str, team: None) -> Json:
    """The worker after its pod was deleted in the middle of its second turn."""
    spoil = bash("echo second > ~/note; echo second > /workspace/other")
    said = f"{SURVIVES}; and this never ends." + " ." * 60
    api.prompt(f"{space}/{WORKER}", play(spoil, slow(said, 120), say="Work on more."))
    world.wait_agent(space, WORKER, has_turn(2, "Running") & has_condition("Running"))
    world.until("the second turn should have written its file", lambda: _has_written(world, space), space)
    world.kubectl(space, "delete", "pod", f"{WORKER}-1", "--grace-period=1", "--wait=false")
    return world.wait_agent(space, WORKER, has_condition("Interrupted") & has_come_back("Restore", 2))


def _has_written(world: World, space: str) -> bool:
    words = ["exec", f"{WORKER}-1", "--container=agent", "--", "cat", "/workspace/other"]
    return "second" in world.kubectl(space, *words, check=False)


@pytest.mark.behaviour("2.14", "3.4", "3.5", "3.6", "5.7")
def test_a_turn_whose_pod_goes_is_interrupted_and_says_so(world: World, space: str, cut_off: Json) -> None:
    interrupted = find_condition(cut_off, "Interrupted")
    assert "turn 2 was cut off" in interrupted["message"]
    assert "survived" in interrupted["message"]
    assert "the last clean turn is 1" in interrupted["message"]
    rows = world.read_ledger(agent=f"{space}/{WORKER}")
    cut = the_one(rows, "agent.turn_interrupted", turn=2)["payload"]
    settled = the_one(rows, "handle.settled", turn=2)["payload"]
    assert (settled["outcome"], settled["errorKind"]) == ("failed", "interrupted")
    assert settled.get("result", "") == cut.get("text", "")
    assert len(select(rows, "agent.turn_started", turn=2)) == 1
    events = world.kubectl(space, "describe", "agent", WORKER)
    assert "TurnInterrupted" in events


@pytest.mark.behaviour("2.7")
def test_its_phase_says_failed_and_it_takes_prompts(world: World, space: str, cut_off: Json) -> None:
    assert cut_off["status"]["phase"] == "Failed"
    assert cut_off["status"]["outcome"] == "Failed"
    assert cut_off["status"]["turn"]["state"] == "Interrupted"


@pytest.mark.behaviour("5.2", "5.7", "5.8", "1.4", "4.23")
def test_it_comes_back_by_restore_in_a_pod_that_was_recorded_first(world: World, space: str, cut_off: Json) -> None:
    rows = world.read_ledger(agent=f"{space}/{WORKER}")
    made = the_one(rows, "agent.provisioned", incarnation=2)
    back = the_one(rows, "agent.restored", incarnation=2)
    assert made["seq"] < back["seq"]
    assert (back["payload"]["rung"], back["payload"]["checkpointTurn"]) == ("Restore", 1)
    restore = cut_off["status"]["restore"]
    assert (restore["rung"], restore["turn"]) == ("Restore", 1)
    row = next(row for row in parse_table(world.kubectl(space, "get", "agents")) if row["NAME"] == WORKER)
    assert (row["RUNG"], row["RESTARTS"]) == ("Restore", "0")
    pod = world.read(Pod, space, f"{WORKER}-2")
    assert pod is not None
    assert pod["metadata"]["uid"] == made["payload"]["uid"]


@pytest.mark.behaviour("4.29", "5.7", "2.14", "7.1")
def test_it_answers_with_its_first_turn_in_memory_and_its_files_as_the_checkpoint_has_them(
    world: World, api: ControlApi, space: str, cut_off: Json
) -> None:
    key = f"{space}/{WORKER}"
    asked = api.prompt(key, play(bash("cat ~/note /workspace/*"), {"recall": True}, say="What do you remember?"))
    answer = api.result(key, turn=asked.body["turn"], wait=60)
    assert answer.body["outcome"] == "success"
    assert "Work on it." in answer.body["result"]
    assert "What do you remember?" in answer.body["result"]
    tools = select(world.read_ledger(agent=key), "harness.tool.ended", agent=key)
    assert "second" not in str(tools[-1]["payload"])
    assert "first" in str(tools[-1]["payload"])
    turn = asked.body["turn"]
    assert turn == 3
    world.wait_agent(space, WORKER, has_turn(3, "Clean") & has_condition("Interrupted", "False") & has_checkpoint(3))


@pytest.mark.behaviour("2.6", "5.7")
def test_a_finished_agent_comes_back_and_answers_from_memory(
    world: World, api: ControlApi, space: str, team: None
) -> None:
    world.apply(space, build_team(sandbox={"setup": "echo anew > ~/setup"}))
    world.wait_agent(space, LEAD, has_condition("UpToDate", "False"))  # an edit of its entry waits for the next sandbox
    world.kubectl(space, "delete", "pod", f"{LEAD}-1", "--wait=false")
    back = world.wait_agent(space, LEAD, has_come_back("Restore", 2) & in_phase("Done") & has_condition("UpToDate"))
    assert world.kubectl(space, "exec", f"{LEAD}-2", "--container=agent", "--", "cat", "/root/setup") == "anew\n"
    assert find_condition(back, "Interrupted")["status"] == "False"
    key = f"{space}/{LEAD}"
    api.prompt(key, "And now?")
    assert api.result(key, turn=2, wait=60).body["result"] == "SEEN 2: Lead them. | And now?"


@pytest.mark.behaviour("5.13", "4.1")
def test_an_agent_without_checkpoints_comes_back_blank_in_its_place(
    world: World, api: ControlApi, space: str, team: None
) -> None:
    world.kubectl(space, "delete", "pod", f"{BLANK}-1", "--wait=false")
    back = world.wait_agent(space, BLANK, has_come_back("Restore", 2))
    assert "turn" not in back["status"]["restore"]
    key = f"{space}/{BLANK}"
    api.prompt(key, "And now?")
    said = api.result(key, turn=2, wait=60).body["result"]
    assert said.startswith("SEEN 1: [Turn 1 ")
    assert "came back blank" in said
    assert find_condition(back, "Interrupted")["reason"] == "CleanTurnLost"
    rows = world.read_ledger(agent=key)
    assert the_one(rows, "agent.restored")["payload"].get("checkpointTurn") is None
    assert "agent.checkpointed" not in names_of(rows, key)
