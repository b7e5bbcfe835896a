"""Pods that a quota or a policy refuses, and pods that others changed: said in the words of the server, or let be."""

import pytest
from pykube.objects import Pod

from tests.e2e.conftest import Spaces
from tests.support.e2e_expect import has_condition, has_incarnation, in_phase
from tests.support.e2e_ledger import select, the_one
from tests.support.e2e_objects import Json, build_swarm, play, text
from tests.support.e2e_world import World

pytestmark = pytest.mark.bad_input

SECURITY = "pod-security.kubernetes.io/enforce"


@pytest.fixture(scope="module")
def crowded(world: World, spaces: Spaces) -> str:
    """A namespace with room for one pod, whose containers get a limit of memory that nobody wrote."""
    space = spaces("crowded")
    ranged = {"limits": [{"type": "Container", "default": {"memory": "700Mi"}, "defaultRequest": {"memory": "40Mi"}}]}
    world.apply(
        space,
        _build("LimitRange", ranged),
        _build("ResourceQuota", {"hard": {"pods": "1"}}),
        build_swarm("first", [_build_entry()]),
    )
    world.wait_agent(space, "first-one", has_condition("Ready"))
    world.apply(space, build_swarm("second", [_build_entry()]))
    return space


@pytest.fixture(scope="module")
def policed(world: World, spaces: Spaces) -> str:
    """A namespace in which no container may run as root."""
    space = spaces("policed")
    world.kubectl(space, "label", "--overwrite", "namespace", space, f"{SECURITY}=restricted")
    world.apply(space, build_swarm("rooted", [_build_entry()]))
    return space


def _build(kind: str, spec: Json) -> Json:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "small"}, "spec": spec}


def _build_entry() -> Json:
    return {"name": "one", "prompt": play(text("Well."), say="Speak.")}


@pytest.mark.behaviour("11.18")
def test_a_refusal_stands_in_the_condition_in_the_servers_words(world: World, crowded: str, policed: str) -> None:
    quota = has_condition("Ready", "False", message="exceeded quota: small, requested: pods=1, used: pods=1")
    policy = has_condition("Ready", "False", message='violates PodSecurity "restricted:latest"')
    assert world.wait_agent(crowded, "second-one", quota)["status"]["phase"] == "Provisioning"
    assert world.wait_agent(policed, "rooted-one", policy)["status"]["phase"] == "Provisioning"
    world.kubectl(crowded, "patch", "resourcequota", "small", "--patch", '{"spec": {"hard": {"pods": "2"}}}')
    world.kubectl(policed, "label", "--overwrite", "namespace", policed, f"{SECURITY}=baseline")


@pytest.mark.behaviour("11.17")
def test_what_others_change_in_a_pod_is_no_drift(world: World, crowded: str) -> None:
    world.kubectl(crowded, "label", "pod", "first-one-1", "mesh.example/injected=true")
    world.kubectl(crowded, "annotate", "pod", "first-one-1", "mesh.example/status=ready")
    world.wait_agent(crowded, "first-one", in_phase("Done") & has_condition("Ready") & has_incarnation(1))
    pod = world.read(Pod, crowded, "first-one-1")
    assert pod is not None
    assert pod["metadata"]["labels"]["mesh.example/injected"] == "true"
    limits = {one["name"]: one["resources"]["limits"]["memory"] for one in pod["spec"]["containers"]}
    assert limits == {"agent": "700Mi"}
    rows = world.read_ledger(agent=f"{crowded}/first-one")
    assert the_one(rows, "agent.provisioned")["payload"]["uid"] == pod["metadata"]["uid"]
    assert not select(rows, "agent.turn_interrupted")


@pytest.mark.behaviour("11.18")
def test_a_refusal_ends_by_itself_when_its_cause_does(world: World, crowded: str, policed: str) -> None:
    for space, name in ((crowded, "second-one"), (policed, "rooted-one")):
        world.wait_agent(space, name, in_phase("Done") & has_condition("Ready") & has_condition("Stalled", "False"))
        assert the_one(world.read_ledger(agent=f"{space}/{name}"), "agent.provisioned")["payload"]["incarnation"] == 1
