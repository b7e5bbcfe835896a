"""A node is cut off for good in the middle of a turn: its agent is replaced, and the old sandbox has no say left."""

import pytest
from pykube.objects import Pod

from hack.demo.api import ControlApi
from tests.support.e2e_expect import find_condition, has_checkpoint, has_come_back, has_condition, has_turn, in_phase
from tests.support.e2e_gates import hold, open_gate, wait_at_gate
from tests.support.e2e_ledger import check_unbroken, select, the_one
from tests.support.e2e_nodes import build_preference, cut, find_node, find_spare_node
from tests.support.e2e_objects import build_swarm, play, text
from tests.support.e2e_parts import Bucket
from tests.support.e2e_world import World

pytestmark = pytest.mark.long

AGENT = "split-one"
ZOMBIE = "What a dead one says."


@pytest.mark.behaviour("9.6", "5.7", "3.4")
def test_an_agent_of_a_lost_node_is_replaced_and_the_old_one_is_fenced(
    world: World, api: ControlApi, space: str, bucket: Bucket
) -> None:
    node, key = find_spare_node(world), f"{space}/{AGENT}"
    entry = {"name": "one", "prompt": play(text("First answer."), say="First."), "sandbox": build_preference(node)}
    world.apply(space, build_swarm("split", [entry]))
    world.wait_agent(space, AGENT, in_phase("Done") & has_checkpoint(1))
    api.prompt(key, play(hold(), text(ZOMBIE), say="Second."))
    wait_at_gate(world, space, f"{AGENT}-1")
    old = world.read(Pod, space, f"{AGENT}-1")
    assert old is not None
    assert find_node(old) == node
    with cut(world, node):
        back = world.wait_agent(space, AGENT, has_turn(2, "Interrupted") & has_come_back("Restore", 2), limit=240)
        assert find_condition(back, "Interrupted")["reason"] == "NodeLost"
        api.prompt(key, play({"recall": True}, say="Third."))
        assert api.result(key, turn=3, wait=180).body["result"].startswith("SEEN 2: First. | [Turn 2 was cut off")
        world.wait_agent(space, AGENT, has_checkpoint(3))
    open_gate(world, space, f"{AGENT}-1")
    world.wait_gone(Pod, space, f"{AGENT}-1", limit=180)
    rows = world.read_ledger(agent=key)
    cut_at = the_one(rows, "agent.turn_interrupted", turn=2)["seq"]
    after = [row for row in rows if row["seq"] > cut_at]
    assert ZOMBIE not in str(after)
    assert {row["payload"].get("incarnation", 2) for row in after} == {2}
    assert not select(rows, "agent.checkpointed", turn=2)
    api.prompt(key, "Fourth.")
    said = api.result(key, turn=4, wait=180).body["result"]
    assert said.startswith("SEEN 3: First. | [Turn 2 was cut off")
    assert said.endswith("Third. | Fourth.")
    world.wait_agent(space, AGENT, has_checkpoint(4) & has_condition("Interrupted", "False"))
    check_unbroken(world.read_ledger())
