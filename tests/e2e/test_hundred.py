"""A hundred agents on two nodes, one of which is cut off for good: all of them come back, a few at a time."""

from collections.abc import Iterable

import pytest
from pykube.objects import Pod

from hack.demo.api import ControlApi
from tests.support.e2e_expect import Expectation, has_checkpoint, has_condition, has_incarnation, in_phase
from tests.support.e2e_ledger import Row, check_unbroken, select
from tests.support.e2e_nodes import cut, find_node, find_spare_node
from tests.support.e2e_objects import Agent, build_defaults, build_swarm, play, text
from tests.support.e2e_world import World

pytestmark = pytest.mark.long

NAME = "hundred"
NUMBERS = [f"a{number:03d}" for number in range(100)]
AT_A_TIME = 8  # the chart's rehydrateConcurrency
LIMIT = 1800.0  # s: a hundred sandboxes on a machine of two cores


@pytest.mark.behaviour("9.6", "5.16")
def test_all_agents_of_a_lost_node_come_back_and_remember(world: World, api: ControlApi, space: str) -> None:
    apply_hundred(world, space)
    node = find_spare_node(world)
    lost = find_agents(world, space, node)
    assert lost, f"no agent was placed on {node}"
    with cut(world, node):
        wait_all(world, space, is_back(lost))
        rows = world.read_ledger(run=f"{space}/{NAME}")
        ask_all(api, space)
    world.until(
        "the pods of the lost node should be gone", lambda: not find_agents(world, space, node), space, limit=LIMIT
    )
    wait_all(world, space, is_back(lost) & has_checkpoint(2))
    check_restores(rows, {f"{space}/{name}" for name in lost})
    rows = world.read_ledger(run=f"{space}/{NAME}")
    assert {row["agent"] for row in select(rows, "agent.restored", rung="Restore")} == {f"{space}/{n}" for n in lost}
    assert not select(rows, "agent.turn_interrupted")
    check_unbroken(world.read_ledger())


def apply_hundred(world: World, space: str) -> None:
    """A hundred agents that have ended a turn and are saved."""
    sandbox = {"resources": {"requests": {"cpu": "1m", "memory": "8Mi"}}}
    entries = [{"name": alias, "prompt": play(text("Noted."), say=f"Remember {alias}.")} for alias in NUMBERS]
    world.apply(space, build_swarm(NAME, entries, defaults=build_defaults(sandbox=sandbox)))
    wait_all(world, space, in_phase("Done") & has_checkpoint(1))


def wait_all(world: World, space: str, expected: Expectation) -> None:
    """Until every agent is as expected."""

    def look() -> bool:
        seen = world.read_all(Agent, space)
        return len(seen) == len(NUMBERS) and all(map(expected.holds, seen))

    world.until(f"all agents should {expected.words}", look, space, limit=LIMIT)


def find_agents(world: World, space: str, node: str) -> set[str]:
    """Who has a pod on the node."""
    pods = (pod for pod in world.read_all(Pod, space) if find_node(pod) == node)
    return {pod["metadata"]["labels"]["alineo.dev/agent"] for pod in pods}


def is_back(lost: set[str]) -> Expectation:
    """In a second sandbox, if its first one was lost; in its first one, if not."""
    first, second = has_incarnation(1), has_incarnation(2)
    where = Expectation(
        "be where nothing is lost",
        lambda agent: (second if agent["metadata"]["name"] in lost else first).holds(agent),
    )
    return where & in_phase("Done") & has_condition("Ready") & has_condition("Lost", "False")


def check_restores(rows: Iterable[Row], lost: set[str]) -> None:
    """Everybody who was lost came back once, from its checkpoint, and never too many at a time."""
    coming: set[str] = set()
    most, back = 0, []
    for row in rows:
        if row["event"] == "agent.provisioned" and row["payload"]["incarnation"] == 2:
            coming.add(row["agent"])
            most = max(most, len(coming))
        if row["event"] == "agent.restored" and row["payload"]["rung"] == "Restore":
            coming.discard(row["agent"])
            back.append((row["agent"], row["payload"]["checkpointTurn"]))
    assert sorted(back) == sorted((agent, 1) for agent in lost)
    assert most <= AT_A_TIME, f"{most} were brought back at a time"


def ask_all(api: ControlApi, space: str) -> None:
    """Everybody answers from memory."""
    for alias in NUMBERS:
        api.prompt(f"{space}/{NAME}-{alias}", "What?", key=f"what-{space}-{alias}")
    for alias in NUMBERS:
        answer = api.result(f"{space}/{NAME}-{alias}", turn=2, wait=240)
        assert answer.body.get("result") == f"SEEN 2: Remember {alias}. | What?", f"{alias} answered {answer}"
