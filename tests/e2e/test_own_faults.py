"""What ends in its container and comes back in it: too much memory, by its own fault; a kill, by somebody else."""

import signal

import pytest
from pykube.objects import Pod

from hack.chaos.processes import send_signal
from hack.demo.api import ControlApi
from hack.demo.target import Kind
from hack.faults.strike_pod import start_eater
from tests.support.e2e_expect import (
    find_condition,
    has_checkpoint,
    has_come_back,
    has_condition,
    has_turn,
    in_phase,
)
from tests.support.e2e_gates import hold, wait_at_gate
from tests.support.e2e_ledger import select, the_one
from tests.support.e2e_objects import Json, bash, build_swarm, play, text
from tests.support.e2e_tables import parse_table
from tests.support.e2e_world import World

pytestmark = pytest.mark.smoke

NAME = "own"
LARGE, KILLED = f"{NAME}-large", f"{NAME}-killed"
BEGUN = "This much is known"
KEPT = bash("echo kept > ~/kept; sync")


@pytest.fixture(scope="module")
def swarm(world: World, space: str) -> None:
    """Two agents at the end of a clean turn. Two failures of its own hold an agent."""
    if world.target.kind is not Kind.DEV:
        pytest.skip("what is done to a container from its host is done in the development cluster alone")
    small = {"resources": {"requests": {"cpu": "20m", "memory": "64Mi"}, "limits": {"memory": "320Mi"}}}
    entries = [
        {"name": "large", "prompt": play(KEPT, text("Kept."), say="Keep it."), "sandbox": small},
        {"name": "killed", "prompt": play(KEPT, text("Kept."), say="Keep it.")},
    ]
    world.apply(space, build_swarm(NAME, entries, supervision={"maxConsecutiveFailures": 2}))
    for name in (LARGE, KILLED):
        world.wait_agent(space, name, in_phase("Done") & has_checkpoint(1))


def swallow(world: World, api: ControlApi, space: str) -> None:
    """A turn in which more memory is asked for than the container has, until the kernel ends it."""
    step = hold(before="echo later > ~/later; sync") | text(BEGUN)
    api.prompt(f"{space}/{LARGE}", play(step, say="Swallow it."))
    wait_at_gate(world, space, f"{LARGE}-1")
    eater = start_eater(_find_container(world, space, f"{LARGE}-1"))
    try:
        world.wait_agent(space, LARGE, has_condition("Running", "False"))
    finally:
        eater.kill()
        eater.wait()


@pytest.mark.behaviour("5.6", "3.4", "2.14")
def test_a_container_out_of_memory_comes_back_in_its_pod_with_its_home(
    world: World, api: ControlApi, space: str, swarm: None
) -> None:
    key = f"{space}/{LARGE}"
    swallow(world, api, space)
    back = world.wait_agent(space, LARGE, has_turn(2, "Interrupted") & has_come_back("Resume", 1))
    said = find_condition(back, "Interrupted")
    assert said["reason"] == "OOMKilled"
    assert "raise sandbox.resources.limits.memory" in said["message"]
    rows = world.read_ledger(agent=key)
    cut = the_one(rows, "agent.turn_interrupted", turn=2)["payload"]
    assert (cut["reason"], cut["text"], cut["tools"]) == ("OOMKilled", BEGUN, ["bash"])
    assert the_one(rows, "agent.provisioned")["payload"]["incarnation"] == 1
    row = next(row for row in parse_table(world.kubectl(space, "get", "agents")) if row["NAME"] == LARGE)
    assert (row["RUNG"], row["RESTARTS"]) == ("Resume", "1")
    files = world.kubectl(space, "exec", f"{LARGE}-1", "--container=agent", "--", "cat", "/root/kept", "/root/later")
    assert files.split() == ["kept", "later"]


@pytest.mark.behaviour("5.6", "5.4")
def test_a_container_that_was_killed_comes_back_in_its_pod_and_answers_from_memory(
    world: World, api: ControlApi, space: str, swarm: None
) -> None:
    key = f"{space}/{KILLED}"
    api.prompt(key, play(hold(), say="Never end."))
    wait_at_gate(world, space, f"{KILLED}-1")
    assert send_signal([_find_container(world, space, f"{KILLED}-1")], signal.SIGKILL)
    back = world.wait_agent(space, KILLED, has_turn(2, "Interrupted") & has_come_back("Resume", 1))
    assert find_condition(back, "Interrupted")["reason"] == "ContainerKilled"
    api.prompt(key, play({"recall": True}, say="And now?"))
    said = api.result(key, turn=3, wait=180).body["result"]
    assert said.startswith("SEEN 2: Keep it. | [Turn 2 was cut off")
    assert said.endswith("And now?")
    world.wait_agent(space, KILLED, in_phase("Done") & has_condition("Interrupted", "False") & has_checkpoint(3))


def test_one_that_emptied_what_the_operator_left_in_it_gets_another_sandbox(
    world: World, api: ControlApi, space: str, swarm: None
) -> None:
    """Nobody gets into its bridge any more, once that was started again."""
    key = f"{space}/{KILLED}"
    before = world.wait_agent(space, KILLED, in_phase("Done"))["status"]["turn"]["number"]
    turn = api.prompt(key, play(hold("spoilt", before="rm -rf /run/alineo/*"), say="Spoil it.")).body["turn"]
    assert turn == before + 1
    wait_at_gate(world, space, f"{KILLED}-1", "spoilt")
    assert send_signal([_find_container(world, space, f"{KILLED}-1")], signal.SIGKILL)
    back = world.wait_agent(space, KILLED, has_turn(turn, "Interrupted") & has_come_back("Restore", 2))
    assert find_condition(back, "Interrupted")["reason"] == "BridgeTokenLost"
    assert "its token is gone from /run/alineo" in find_condition(back, "Interrupted")["message"]
    asked = api.prompt(key, play({"recall": True}, say="And then?")).body["turn"]
    assert "Keep it. | " in api.result(key, turn=asked, wait=180).body["result"]


def test_one_that_spoilt_its_conversation_comes_back_with_the_last_one_that_was_saved(
    world: World, api: ControlApi, space: str, swarm: None
) -> None:
    key = f"{space}/{KILLED}"
    before = world.wait_agent(space, KILLED, in_phase("Done") & has_condition("Checkpointed"))["status"]
    spoil = bash("for f in $(find ~ -name '*.jsonl'); do echo garbage > $f; done")
    turn = api.prompt(key, play(spoil, text("Spoilt."), say="Spoil your memory.")).body["turn"]
    result = api.result(key, turn=turn, wait=180).body
    assert (result["outcome"], result["errorKind"], result["result"]) == ("failed", "session", "Spoilt.")
    world.wait_agent(space, KILLED, has_come_back("Restore", before["sandbox"]["incarnation"] + 1))
    asked = api.prompt(key, play({"recall": True}, say="What is left?")).body["turn"]
    said = api.result(key, turn=asked, wait=180).body["result"]
    assert "Keep it. | " in said
    assert f"[Turn {turn} and what it did to files is not here any more" in said
    assert said.endswith("What is left?")


def _find_container(world: World, space: str, pod: str) -> str:
    """The id of its agent's container."""
    status: Json = (world.read(Pod, space, pod) or {})["status"]
    agent = next(one for one in status["containerStatuses"] if one["name"] == "agent")
    return str(agent["containerID"]).rpartition("/")[2]


@pytest.mark.behaviour("2.5")
def test_the_second_failure_of_its_own_holds_it_until_somebody_decides(
    world: World, api: ControlApi, space: str, swarm: None
) -> None:
    key = f"{space}/{LARGE}"
    swallow(world, api, space)
    held = world.wait_agent(space, LARGE, in_phase("Blocked") & has_condition("Stalled", "True", "TooManyFailures"))
    assert "raise sandbox.resources.limits.memory" in find_condition(held, "Stalled")["message"]
    turn = api.prompt(key, play(bash("cat ~/kept"), text("Enough."), say="Do less.")).body["turn"]
    assert api.result(key, turn=turn, wait=180).body["result"] == "Enough."
    world.wait_agent(space, LARGE, in_phase("Done") & has_condition("Stalled", "False"))
    assert len(select(world.read_ledger(agent=key), "agent.supervision_needed")) == 1
