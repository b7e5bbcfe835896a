"""Which run is which: after deletions nobody saw, beside a second release, and when the release itself goes.

What has to happen while no operator looks is done once, for all the tests, by the fixture `absence`.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from pykube.objects import Namespace, Pod

from hack.demo.api import ControlApi
from hack.demo.install import Images, install_chart
from tests.support.e2e_expect import (
    find_condition,
    has_checkpoint,
    has_come_back,
    has_condition,
    has_turn,
    in_phase,
    is_current,
    status_of,
)
from tests.support.e2e_ledger import select, the_one
from tests.support.e2e_objects import Agent, Json, Swarm, build_swarm, play, text
from tests.support.e2e_parts import Bucket
from tests.support.e2e_world import Release, World

pytestmark = pytest.mark.identity

SECOND = Release("second", "e2e-second")
ADOPT = {"alineo.dev/adopt": "true"}


@dataclass(frozen=True)
class Absence:
    """What the fixture did: the UIDs of the swarms before, and the namespace of the second release's swarm."""

    before: dict[str, str]
    foreign: str
    gone: str


def _swarm(name: str, annotations: dict[str, str] | None = None, **spec: str) -> Json:
    swarm = build_swarm(name, [{"name": "one", "prompt": play(text("First answer."), say="Remember me.")}], **spec)
    swarm["metadata"]["annotations"] = annotations or {}
    return swarm


@pytest.fixture(scope="module")
def absence(world: World, images: Images, space: str, spaces: Callable[[str], str]) -> Iterator[Absence]:
    """Swarms that end and begin, a second release, and a namespace that goes, all while the operator is away."""
    foreign, gone = spaces("foreign"), spaces("gone")
    for name in ("again", "adopted", "cleaned"):
        policy = "Delete" if name == "cleaned" else "Retain"
        world.apply(space, _swarm(name, deletionPolicy=policy))
    world.apply(gone, _swarm("left"))
    for name in ("again", "adopted", "cleaned"):
        world.wait_agent(space, f"{name}-one", in_phase("Done") & has_checkpoint(1))
    world.wait_agent(gone, "left-one", in_phase("Done"))
    before = {name: _uid(world, space, name) for name in ("again", "adopted", "cleaned")}
    scale(world, 0)
    world.kubectl(space, "delete", "swarm", *before, "--wait=true")
    world.kubectl(space, "wait", "--for=delete", "agent", "--all", "--timeout=60s", check=False)
    world.apply(space, _swarm("again"), _swarm("adopted", ADOPT))
    world.remove_namespace(gone, wait=False)
    install_second(world, images, foreign)
    world.apply(foreign, _swarm("theirs"))
    World(world.target, SECOND).wait_agent(foreign, "theirs-one", in_phase("Done"))
    scale(world, 2)
    yield Absence(before, foreign, gone)
    world.target.helm("uninstall", SECOND.name, f"--namespace={SECOND.namespace}", check=False)
    world.remove_namespace(SECOND.namespace, wait=False)


def _uid(world: World, space: str, name: str) -> str:
    swarm = world.read(Swarm, space, name)
    assert swarm is not None
    uid: str = swarm["metadata"]["uid"]
    return uid


def scale(world: World, replicas: int) -> None:
    """So many operators; with none, until all are gone."""
    namespace, name = world.release.namespace, world.release.fullname
    world.kubectl(namespace, "scale", "deployment", name, f"--replicas={replicas}")
    if replicas:
        world.kubectl(namespace, "rollout", "status", f"deployment/{name}", "--timeout=120s")
        world.until("an operator should lead", world.find_leader)
    else:
        gone = lambda: not world.read_all(Pod, namespace, world.release.selector)  # noqa: E731
        world.until("every operator should be gone", gone, namespace)


def install_second(world: World, images: Images, watched: str) -> None:
    """Another release: no bucket, its ledger on a claim, one namespace to look after."""
    world.create_namespace(SECOND.namespace, {"alineo.dev/e2e": "true"})
    more = [
        "--set=bucket.name=", "--set=ledger.storage=claim", "--set=ledger.size=1Gi", "--set=replicas=1",
        f"--set=namespaces={{{watched}}}", "--set=rbac.aggregate=false",
    ]  # fmt: skip
    install_chart(world.target, images, release=SECOND.name, namespace=SECOND.namespace, more=more)


@pytest.mark.behaviour("10.1", "10.2", "10.3", "2.8")
def test_another_object_under_the_same_name_is_a_new_run_even_when_nobody_saw_the_change(
    world: World, space: str, absence: Absence
) -> None:
    agent = world.wait_agent(space, "again-one", in_phase("Done") & has_checkpoint(1))
    assert agent["status"]["turn"]["number"] == 1
    rows = world.read_ledger(run=f"{space}/again")
    deleted = the_one(rows, "run.deleted")
    assert deleted["payload"]["uid"] == absence.before["again"]
    first, second = select(rows, "run.started")
    assert (first["payload"]["uid"], second["payload"]["uid"]) == (absence.before["again"], _uid(world, space, "again"))
    assert first["seq"] < deleted["seq"] < second["seq"]
    assert len(select(rows, "agent.turn_started", turn=1)) == 2
    assert "Remember me." in select(rows, "agent.turn_started", turn=1)[1]["payload"]["prompt"]


@pytest.mark.behaviour("10.5")
def test_the_adopt_annotation_says_that_it_is_the_same_run(
    world: World, api: ControlApi, space: str, absence: Absence
) -> None:
    agent = world.wait_agent(space, "adopted-one", has_come_back("Restore", 2) & in_phase("Done"))
    assert agent["status"]["turn"]["number"] == 1
    rows = world.read_ledger(run=f"{space}/adopted")
    assert not select(rows, "run.deleted")
    assert select(rows, "run.started")[-1]["payload"]["adopted"] is True
    assert len(select(rows, "agent.turn_started")) == 1
    key = f"{space}/adopted-one"
    api.prompt(key, "And now?")
    assert api.result(key, turn=2, wait=60).body["result"] == "SEEN 2: Remember me. | And now?"


@pytest.mark.behaviour("10.2", "10.9")
def test_a_deletion_nobody_saw_is_honoured_by_its_own_policy(
    world: World, bucket: Bucket, space: str, absence: Absence
) -> None:
    below = f"alineod/checkpoints/{space}/cleaned-one/"
    world.until("the deleted run's checkpoints should be gone", lambda: not bucket.list(below), space)
    assert bucket.list(f"alineod/checkpoints/{space}/again-one/")
    assert the_one(world.read_ledger(run=f"{space}/cleaned"), "run.deleted")["payload"]["deletionPolicy"] == "Delete"


@pytest.mark.behaviour("10.9")
def test_with_deletion_policy_delete_the_bucket_is_cleaned_when_the_deletion_is_seen(
    world: World, bucket: Bucket, space: str
) -> None:
    world.apply(space, _swarm("brief", deletionPolicy="Delete"), _swarm("kept"))
    for name in ("brief-one", "kept-one"):
        world.wait_agent(space, name, in_phase("Done") & has_checkpoint(1))
    world.kubectl(space, "delete", "swarm", "brief", "kept")
    below = f"alineod/checkpoints/{space}/brief-one/"
    world.until("the checkpoints should be gone", lambda: not bucket.list(below), space)
    world.until("the other run should end", lambda: _has_ended(world, f"{space}/kept"), space)
    assert bucket.list(f"alineod/checkpoints/{space}/kept-one/")


def _has_ended(world: World, run: str) -> bool:
    return bool(select(world.read_ledger(run=run), "run.deleted"))


@pytest.mark.behaviour("10.6")
def test_a_second_release_leaves_a_foreign_swarm_alone_and_says_so(world: World, space: str, absence: Absence) -> None:
    swarm = world.wait_swarm(absence.foreign, "theirs", is_current())
    assert status_of(swarm)["instance"] == "second"
    assert not world.read_ledger(run=f"{absence.foreign}/theirs")
    assert world.read(Pod, absence.foreign, "theirs-one-2") is None
    told = "belongs to the release second"
    world.until("the operator should say so", lambda: told in world.kubectl(absence.foreign, "get", "events"), space)


@pytest.mark.bad_input
@pytest.mark.behaviour("2.16", "9.5")
def test_without_a_bucket_a_checkpoint_stays_in_the_pod_and_the_condition_says_so(
    world: World, absence: Absence
) -> None:
    agent = world.wait_agent(absence.foreign, "theirs-one", has_condition("Checkpointed", "False", "NoBucket"))
    said = find_condition(agent, "Checkpointed")["message"]
    assert "no bucket is configured" in said
    assert "bucket.name" in said
    assert status_of(agent)["checkpoint"]["turn"] == 1


@pytest.mark.behaviour("10.8")
def test_no_object_has_a_finalizer_and_a_namespace_goes_without_an_operator(
    world: World, space: str, absence: Absence
) -> None:
    for kind in (Swarm, Agent, Pod):
        assert all(not one["metadata"].get("finalizers") for one in world.read_all(kind, space))
    world.until(
        "the namespace should be gone",
        lambda: Namespace.objects(world.kube).get_or_none(name=absence.gone) is None,
        absence.gone,
    )


@pytest.mark.disruptive
@pytest.mark.behaviour("10.7", "9.6", "5.7")
def test_a_release_that_was_removed_and_installed_again_brings_the_tree_back_from_the_bucket(
    world: World, images: Images, api: ControlApi, space: str
) -> None:
    world.apply(space, _swarm("stays"))
    world.wait_agent(space, "stays-one", in_phase("Done") & has_checkpoint(1))
    world.target.helm("uninstall", world.release.name, f"--namespace={world.release.namespace}", "--wait")
    world.kubectl(space, "delete", "pod", "stays-one-1", "--wait=true")
    install_chart(world.target, images)
    world.wait_agent(space, "stays-one", has_come_back("Restore", 2) & in_phase("Done"))
    key = f"{space}/stays-one"
    turn = api.prompt(key, "And now?").body["turn"]
    assert turn == 2
    assert api.result(key, turn=2, wait=60).body["result"] == "SEEN 2: Remember me. | And now?"
    assert not select(world.read_ledger(run=f"{space}/stays"), "run.deleted")
    world.wait_agent(space, "stays-one", has_turn(2, "Clean") & has_checkpoint(2))


@pytest.mark.disruptive
@pytest.mark.behaviour("10.7")
def test_removing_the_crds_leaves_the_bucket_and_the_tree_comes_back_with_the_objects(
    world: World, images: Images, api: ControlApi, bucket: Bucket, space: str
) -> None:
    world.apply(space, _swarm("outlives", deletionPolicy="Delete"))
    world.wait_agent(space, "outlives-one", in_phase("Done") & has_checkpoint(1))
    below = f"alineod/checkpoints/{space}/outlives-one/"
    kept = bucket.list(below)
    assert kept
    names = ("swarms.alineo.dev", "agents.alineo.dev")
    world.kubectl(space, "delete", "crd", *names, "--wait=true", "--timeout=60s")
    world.until("the sandbox should go with its Agent", lambda: not world.read_all(Pod, space), space)
    install_chart(world.target, images)
    world.until("an operator should lead", world.find_leader)
    time.sleep(3)  # it looks at a cluster that has the CRDs and not yet the objects
    assert bucket.list(below) == kept
    world.apply(space, _swarm("outlives", ADOPT, deletionPolicy="Delete"))
    world.wait_agent(space, "outlives-one", has_come_back("Restore", 2) & in_phase("Done"), limit=120)
    key = f"{space}/outlives-one"
    api.prompt(key, "And now?")
    assert api.result(key, turn=2, wait=60).body["result"] == "SEEN 2: Remember me. | And now?"
    assert not select(world.read_ledger(run=f"{space}/outlives"), "run.deleted")
