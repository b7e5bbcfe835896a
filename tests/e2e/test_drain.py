"""A sandbox is asked to end in the middle of a turn: what fits is finished and saved, what does not is cut honestly."""

import subprocess
from collections.abc import Iterator

import pytest
from pykube.objects import Namespace, Node, Pod

from hack.demo.api import ControlApi
from tests.e2e.conftest import Spaces
from tests.support.e2e_expect import find_condition, has_checkpoint, has_come_back, has_condition, has_turn, in_phase
from tests.support.e2e_gates import hold, open_gate, wait_at_gate
from tests.support.e2e_ledger import count_turns, select, the_one
from tests.support.e2e_nodes import build_preference, find_node
from tests.support.e2e_objects import bash, build_swarm, play, text
from tests.support.e2e_world import World

pytestmark = pytest.mark.smoke

NAME = "drained"
FITS, SHORT = f"{NAME}-fits", f"{NAME}-short"
BEGUN = "This much I know"


@pytest.fixture(scope="module")
def node(world: World) -> str:
    """The node that is drained; there has to be another one to go to."""
    names = sorted(node.name for node in Node.objects(world.kube))
    if len(names) < 2:
        pytest.skip("a node is drained where there are two of them")
    return names[-1]


@pytest.fixture(scope="module")
def draining(world: World, space: str, node: str) -> Iterator["subprocess.Popen[str]"]:
    """`kubectl drain` under way, for two agents in a turn each."""
    there = build_preference(node)
    fits = play(hold(before="echo first > ~/note"), text("Fitted in."), say="Fit in.")
    short = play(hold() | text(BEGUN), text("Never said."), say="Take long.")
    entries = [
        {"name": "fits", "prompt": fits, "sandbox": there},
        {"name": "short", "prompt": short, "sandbox": there | {"drainGrace": "1s"}},
    ]
    world.apply(space, build_swarm(NAME, entries))
    for name in (FITS, SHORT):
        wait_at_gate(world, space, f"{name}-1")
        assert _find_node(world, space, f"{name}-1") == node
    words = ["drain", node, f"--pod-selector=alineo.dev/swarm={NAME}", "--delete-emptydir-data", "--ignore-daemonsets"]
    command = [*world.target.build_kubectl(), *words, "--timeout=180s"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            yield process
        finally:
            process.kill()
            world.kubectl(space, "uncordon", node)


def _find_node(world: World, space: str, pod: str) -> str:
    found = world.read(Pod, space, pod)
    return find_node(found) if found is not None else ""


@pytest.mark.behaviour("3.4", "3.6", "3.14", "9.11")
def test_a_turn_longer_than_its_grace_is_cut_with_what_survives(
    world: World, api: ControlApi, space: str, node: str, draining: object
) -> None:
    back = world.wait_agent(space, SHORT, has_condition("Interrupted") & has_come_back("Restore", 2))
    assert BEGUN not in find_condition(back, "Interrupted")["message"]
    key = f"{space}/{SHORT}"
    rows = world.read_ledger(agent=key)
    cut = the_one(rows, "agent.turn_interrupted", turn=1)["payload"]
    assert (cut["text"], cut["tools"]) == (BEGUN, ["bash"])
    assert the_one(rows, "handle.settled", turn=1)["payload"]["result"] == BEGUN
    assert _find_node(world, space, f"{SHORT}-2") != node
    api.prompt(key, "What happened?")
    said = api.result(key, turn=2, wait=180).body["result"]
    assert said.startswith("SEEN 1: [Turn 1 was cut off")
    assert "bash" in said


def test_a_turn_that_fits_goes_on_and_no_new_one_begins(
    world: World, api: ControlApi, space: str, node: str, draining: "subprocess.Popen[str]"
) -> None:
    key = f"{space}/{FITS}"
    world.wait_agent(space, FITS, has_turn(1, "Running") & has_condition("Running"))
    assert (world.read(Pod, space, f"{FITS}-1") or {})["metadata"].get("deletionTimestamp")
    assert api.prompt(key, play(bash("cat ~/note"), {"recall": True}, say="And then?")).body["turn"] == 2
    open_gate(world, space, f"{FITS}-1")
    assert api.result(key, turn=1, wait=180).body["result"] == "Fitted in."
    assert api.result(key, turn=2, wait=180).body["result"] == "SEEN 2: Fit in. | And then?"
    assert draining.wait(60) == 0, draining.stdout.read() if draining.stdout else ""


@pytest.mark.behaviour("5.7", "3.5")
def test_its_checkpoint_is_saved_before_its_pod_ends_and_it_comes_back_with_it(
    world: World, space: str, node: str, draining: object
) -> None:
    world.wait_agent(space, FITS, in_phase("Done") & has_turn(2, "Clean") & has_checkpoint(2))
    rows = world.read_ledger(agent=f"{space}/{FITS}")
    saved = the_one(rows, "agent.checkpointed", turn=1)
    again = the_one(rows, "agent.provisioned", incarnation=2)
    assert saved["payload"]["remoteRef"]
    assert saved["seq"] < again["seq"]
    assert the_one(rows, "agent.restored", rung="Restore")["payload"]["checkpointTurn"] == 1
    assert the_one(rows, "agent.turn_started", turn=2)["payload"]["incarnation"] == 2
    assert set(count_turns(rows, "agent.turn_started").values()) == {1}
    assert not select(rows, "agent.turn_interrupted")
    read = select(rows, "harness.tool.ended")[-1]["payload"]
    assert "first" in str(read)
    assert _find_node(world, space, f"{FITS}-2") != node


@pytest.mark.behaviour("10.8")
def test_a_namespace_goes_without_waiting_for_a_turn(world: World, spaces: Spaces) -> None:
    space = spaces("leaving")
    world.apply(space, build_swarm("left", [{"name": "one", "prompt": play(hold(), say="Never end.")}]))
    wait_at_gate(world, space, "left-one-1")
    world.kubectl(space, "delete", "namespace", space, "--wait=false")
    found = Namespace.objects(world.kube)
    world.until(f"the namespace {space} should be gone", lambda: found.get_or_none(name=space) is None, space)
