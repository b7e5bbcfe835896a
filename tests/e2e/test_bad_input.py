"""What goes wrong after the door, each by the sentence a person reads: in a condition, an answer, a log.

Everything is applied at once and looked at in turn, since what is wrong here takes its time to show.
"""

from collections.abc import Iterator

import pytest
from pykube.objects import Pod

from hack.demo.api import ControlApi
from hack.demo.install import Images, apply_secret, install_chart
from tests.support.e2e_expect import (
    find_condition,
    has_come_back,
    has_condition,
    has_turn,
    in_phase,
    is_stalled,
)
from tests.support.e2e_ledger import select, the_one
from tests.support.e2e_objects import (
    MODEL_KEY,
    Agent,
    Json,
    Swarm,
    bash,
    build_agent,
    build_defaults,
    build_harness,
    build_secret,
    build_swarm,
    play,
    slow,
    text,
)
from tests.support.e2e_world import Release, World

pytestmark = pytest.mark.bad_input

WRONG = "wrong-keys"


@pytest.fixture(scope="module")
def faults(world: World, images: Images, space: str) -> Iterator[None]:
    """Every fault of this module, under way."""
    install_with_wrong_keys(world, images)
    world.apply(
        space,
        build_secret("wrong-key", {"api-key": "not-the-key"}),
        _one("nosecret", harness=build_harness(secret="later")),
        _one("noimage", sandbox={"image": "localhost/nobody/agent:none"}),
        _one("refused", harness=build_harness(secret="wrong-key")),
        build_swarm("large", [{"name": "one", "prompt": play(
            bash("head -c 64M /dev/zero > ~/big; sync"), slow("." * 60, 900), say="Fill the home."),
            "sandbox": {"storage": {"home": {"sizeLimit": "16Mi"}}},
        }]),
        _one("deleted", prompt=play(slow("Unfinished. " * 20, 900), say="Never end.")),
    )  # fmt: skip
    yield
    world.target.helm("uninstall", WRONG, f"--namespace={WRONG}", check=False)
    world.remove_namespace(WRONG, wait=False)


def _one(name: str, prompt: str = "", **entry: Json | str) -> Json:
    """A swarm of one agent; what is wrong with it is in `entry`."""
    return build_swarm(name, [{"name": "one", "prompt": prompt or play(text("Well."), say="Speak."), **entry}])


def install_with_wrong_keys(world: World, images: Images) -> None:
    """A second release whose bucket keys open nothing."""
    world.create_namespace(WRONG, {"alineo.dev/e2e": "true"})
    more = ["--set=bucket.existingSecret=wrong", "--set=replicas=1", f"--set=namespaces={{{WRONG}}}"]
    apply_secret(world.target, WRONG, "wrong", {"AWS_ACCESS_KEY_ID": "nobody", "AWS_SECRET_ACCESS_KEY": "nothing"})
    install_chart(world.target, images, release=WRONG, namespace=WRONG, more=more, wait=False)


def test_a_missing_secret_is_named_and_once_it_is_there_the_agent_goes_on(
    world: World, space: str, faults: None
) -> None:
    waiting = has_condition("Ready", "False", "CredentialsMissing", "key api-key of Secret later")
    agent = world.wait_agent(space, "nosecret-one", waiting)
    assert "create it" in find_condition(agent, "Ready")["message"]
    assert agent["status"]["phase"] == "Provisioning"
    world.apply(space, build_secret("later", {"api-key": MODEL_KEY}))
    world.wait_agent(space, "nosecret-one", in_phase("Done"), limit=180)


def test_an_image_that_cannot_be_pulled_stands_in_the_condition_in_the_clusters_words(
    world: World, space: str, faults: None
) -> None:
    agent = world.wait_agent(
        space, "noimage-one", has_condition("Ready", "False", message="localhost/nobody/agent:none")
    )
    assert find_condition(agent, "Ready")["reason"] in ("ErrImagePull", "ImagePullBackOff")
    assert agent["status"]["phase"] == "Provisioning"


@pytest.mark.behaviour("3.2", "2.7")
def test_a_key_that_the_provider_refuses_fails_the_turn_in_the_providers_words(
    world: World, api: ControlApi, space: str, faults: None
) -> None:
    world.wait_agent(space, "refused-one", in_phase("Failed") & has_turn(1, "Failed"))
    answer = api.result(f"{space}/refused-one")
    assert answer.body["outcome"] == "failed"
    assert answer.body["errorKind"] == "provider"
    assert "Incorrect API key provided: not-***" in answer.body["error"]
    described = world.kubectl(space, "describe", "agent", "refused-one")
    assert "Incorrect API key provided" in described


@pytest.mark.behaviour("5.7")
def test_a_home_larger_than_its_limit_is_evicted_and_comes_back_by_restore(
    world: World, space: str, faults: None
) -> None:
    back = world.wait_agent(space, "large-one", has_condition("Interrupted") & has_come_back("Restore", 2), limit=180)
    said = find_condition(back, "Interrupted")
    assert said["reason"] == "Evicted"
    assert 'volume "home" exceeds the limit "16Mi"' in said["message"]


@pytest.mark.behaviour("2.8", "10.8")
def test_a_swarm_deleted_in_the_middle_of_a_turn_ends_its_agents_and_says_so(
    world: World, api: ControlApi, space: str, faults: None
) -> None:
    world.wait_agent(space, "deleted-one", has_turn(1, "Running"))
    world.kubectl(space, "delete", "swarm", "deleted", "--wait=true", "--timeout=20s")
    world.wait_gone(Agent, space, "deleted-one")
    world.wait_gone(Pod, space, "deleted-one-1")
    run = f"{space}/deleted"
    rows = world.until("the run should end", lambda: _ended(world.read_ledger(run=run)), space)
    assert the_one(rows, "run.deleted")["payload"]["reason"] == "Deleted"
    assert the_one(rows, "agent.turn_interrupted")["payload"]["turn"] == 1
    assert the_one(rows, "agent.ended")["payload"]["outcome"] == "aborted"
    late = api.prompt(f"{space}/deleted-one", "Are you there?")
    assert (late.status, late.body["title"]) == (409, "NotLive")
    assert "has ended" in late.body["detail"]
    assert api.result(f"{space}/deleted-one").body["outcome"] == "aborted"


def _ended(rows: list[Json]) -> list[Json]:
    return rows if select(rows, "run.deleted") else []


@pytest.mark.behaviour("10.11")
def test_a_name_that_is_taken_stalls_whoever_wants_it(world: World, space: str, faults: None) -> None:
    world.apply(space, build_agent("busy-one", "nobody", "Hold the name."))
    world.apply(space, _one("busy"))
    swarm = world.wait_swarm(space, "busy", is_stalled("AgentNameTaken", "busy-one"))
    assert "rename the swarm" in find_condition(swarm, "Stalled")["message"]
    stranger = world.read(Agent, space, "busy-one")
    assert stranger is not None
    assert stranger["spec"]["swarm"] == "nobody"
    assert not stranger["metadata"].get("ownerReferences")


@pytest.mark.behaviour("10.11")
def test_a_pod_name_that_is_taken_stalls_the_agent_and_leaves_the_pod(world: World, space: str, images: Images) -> None:
    command = ["run", "held-one-1", f"--image={images.refs['devtools']}", "--image-pull-policy=IfNotPresent"]
    world.kubectl(space, *command, "--command", "--", "sleep", "600")
    world.apply(space, _one("held"))
    agent = world.wait_agent(space, "held-one", is_stalled("PodNameTaken", "held-one-1"))
    assert "delete it" in find_condition(agent, "Stalled")["message"]
    assert world.wait_swarm(space, "held", is_stalled("AgentStalled", "one"))
    world.kubectl(space, "delete", "pod", "held-one-1", "--grace-period=0", "--force")
    world.wait_agent(space, "held-one", in_phase("Done"))


@pytest.mark.behaviour("6.4")
def test_agents_applied_alone_may_come_in_any_order_and_no_circle_starts(world: World, space: str) -> None:
    world.apply(
        space,
        build_agent("alone", "later", play(text("Well."), say="Speak."), harness=build_harness()),
        build_agent("ring-a", "ring", "Wait.", waitFor=["ring-b"]),
        build_agent("ring-b", "ring", "Wait.", waitFor=["ring-a"]),
        build_agent("hopeful", "ring", "Wait.", waitFor=["unborn"]),
    )
    world.wait_agent(space, "alone", has_condition("Ready", "False", "SwarmNotFound", "the Swarm later is not there"))
    world.apply(space, build_swarm("later", []), build_swarm("ring", [], defaults=build_defaults(checkpoint=False)))
    world.wait_agent(space, "alone", in_phase("Done"))
    circle = world.wait_agent(space, "ring-a", is_stalled("WaitCycle"))
    assert "ring-a waits for ring-b waits for ring-a" in find_condition(circle, "Stalled")["message"].replace(
        "ring-b waits for ring-a waits for ring-b", "ring-a waits for ring-b waits for ring-a"
    )
    world.wait_agent(space, "hopeful", has_condition("Ready", "False", "AgentNotFound", "unborn"))


def test_wrong_bucket_keys_keep_the_operator_from_beginning_and_it_says_why(world: World, faults: None) -> None:
    """It is not ready, leads to nothing, and names what to check."""
    other = World(world.target, Release(WRONG, WRONG))

    def read() -> str:
        log = other.read_operator_log(50)
        return log if "waiting for the bucket" in log else ""

    said = other.until("the operator should say what it waits for", read)
    assert "alineod" in said
    assert "AWS_ACCESS_KEY_ID" in said or "key" in said
    pods = other.read_all(Pod, WRONG, other.release.selector)
    assert all(not _is_ready(pod) for pod in pods)
    assert world.read(Swarm, WRONG, "none") is None


def _is_ready(pod: Json) -> bool:
    conditions = {c["type"]: c["status"] for c in (pod.get("status") or {}).get("conditions") or ()}
    return conditions.get("Ready") == "True"
