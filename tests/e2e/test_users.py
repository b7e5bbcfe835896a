"""Sandboxes as people shape them: another user and home, a setup script, a claim, an overlay; each comes back whole."""

import pytest

from hack.demo.api import ControlApi
from tests.support.e2e_expect import has_checkpoint, has_come_back, has_condition, has_turn, in_phase
from tests.support.e2e_objects import Json, bash, build_defaults, build_swarm, play, text
from tests.support.e2e_world import World

pytestmark = pytest.mark.smoke

NAME = "shaped"
AGENT = f"{NAME}-user"


@pytest.fixture(scope="module")
def swarm(world: World, space: str) -> Json:
    """A user of its own in the restricted standard, with everything a sandbox takes."""
    world.kubectl(space, "label", "--overwrite", "namespace", space, "pod-security.kubernetes.io/enforce=restricted")
    sandbox: Json = {
        "runAsUser": 1000,
        "runAsGroup": 1000,
        "home": "/home/agent",
        "setup": "echo prepared > /home/agent/prepared",
        "resources": {"requests": {"cpu": "20m", "memory": "64Mi"}},
        "storage": {"home": {"storageClassName": "local", "sizeLimit": "1Gi"}},
        "podTemplate": {"metadata": {"labels": {"team": "harbour"}}, "spec": {"priority": 0}},
    }
    look = bash("id -u; cat ~/prepared; echo mine > ~/mine; ln -s /etc/passwd ~/link")
    agents = [{"name": "user", "prompt": play(look, text("Seen."), say="Look around.")}]
    world.apply(space, build_swarm(NAME, agents, defaults=build_defaults(sandbox=sandbox)))
    return world.wait_agent(space, AGENT, in_phase("Done") & has_checkpoint(1))


@pytest.mark.behaviour("3.15")
def test_the_agent_is_who_it_should_be_and_its_setup_has_run(world: World, space: str, swarm: Json) -> None:
    rows = world.read_ledger(agent=f"{space}/{AGENT}")
    (ended,) = [row["payload"]["data"] for row in rows if row["event"] == "harness.tool.ended"]
    assert "1000" in str(ended)
    assert "prepared" in str(ended)
    pod = world.kubectl(space, "get", "pod", f"{AGENT}-1", "--output=jsonpath={.metadata.labels.team}")
    assert pod == "harbour"


@pytest.mark.behaviour("4.17")
def test_its_home_comes_back_with_its_owner(world: World, api: ControlApi, space: str, swarm: Json) -> None:
    world.kubectl(space, "delete", "pod", f"{AGENT}-1", "--wait=false")
    world.wait_agent(space, AGENT, has_come_back("Restore", 2) & has_condition("Ready"))
    api.prompt(
        f"{space}/{AGENT}",
        play(bash("stat -c %U:%a ~/mine; readlink ~/link; cat ~/mine"), text("Still."), say="Again."),
    )
    world.wait_agent(space, AGENT, has_turn(2, "Clean"))
    rows = world.read_ledger(agent=f"{space}/{AGENT}")
    said = [str(row["payload"]["data"]) for row in rows if row["event"] == "harness.tool.ended"][-1]
    assert "/etc/passwd" in said
    assert "mine" in said
