"""A node of the development cluster loses its power and comes back, with the same pods and volumes."""

import json

import pytest
from pykube.objects import Pod

from hack.demo.api import ControlApi
from hack.demo.target import Kind, devcluster
from tests.support.e2e_expect import has_checkpoint, has_condition, has_turn, in_phase
from tests.support.e2e_objects import Json, build_swarm, play, text
from tests.support.e2e_world import World

pytestmark = [pytest.mark.smoke, pytest.mark.disruptive]

NODE = "n2"
AGENT = "rooted-one"


@pytest.fixture
def node(world: World) -> str:
    if world.target.kind is not Kind.DEV:
        pytest.skip("nodes are switched off and on in the development cluster alone")
    return NODE


@pytest.mark.behaviour("4.28", "7.1")
def test_a_home_that_was_used_is_not_unpacked_over_when_its_node_comes_back(
    world: World, api: ControlApi, space: str, node: str
) -> None:
    pinned = {"podTemplate": {"spec": {"nodeSelector": {"kubernetes.io/hostname": node}}}}
    entry = {"name": "one", "prompt": play(text("First answer."), say="Remember me."), "sandbox": pinned}
    world.apply(space, build_swarm("rooted", [entry]))
    world.wait_agent(space, AGENT, in_phase("Done") & has_checkpoint(1))
    world.kubectl(space, "exec", f"{AGENT}-1", "--container=agent", "--", "sh", "-c", "echo later > ~/later; sync")
    devcluster(world.target.tools, "node", "reboot", node)
    world.until("the agent's container should run again", lambda: _has_rebooted(world, space), space)
    world.wait_agent(space, AGENT, has_condition("Ready"))
    key = f"{space}/{AGENT}"
    turn = api.prompt(key, "And now?").body["turn"]
    assert api.result(key, turn=turn, wait=90).body["result"].startswith("SEEN 2: Remember me. | ")
    world.wait_agent(space, AGENT, has_turn(2, "Clean"))
    assert world.kubectl(space, "exec", f"{AGENT}-1", "--container=agent", "--", "cat", "/root/later") == "later\n"


def _has_rebooted(world: World, space: str) -> bool:
    """The same pod, with a restarted container, and its restore container left everything as it was."""
    pod: Json = world.read(Pod, space, f"{AGENT}-1") or {}
    status = pod.get("status") or {}
    agent = next((c for c in status.get("containerStatuses") or () if c["name"] == "agent"), {})
    restore = next((c for c in status.get("initContainerStatuses") or () if c["name"] == "restore"), {})
    ended = (restore.get("state") or {}).get("terminated") or {}
    said = json.loads(ended.get("message") or "{}").get("start")
    return bool(agent.get("restartCount")) and "running" in agent["state"] and said == "kept"
