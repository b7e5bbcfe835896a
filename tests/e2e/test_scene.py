"""The seed's own scene: a dozen agents at work, the leader killed in the middle, and every one of them completes."""

import pytest

from hack.demo.api import ControlApi
from tests.e2e.crew import (
    ALIASES,
    AT_GATES,
    ENDED,
    NAME,
    SECOND,
    SPOKEN,
    WAITING,
    WORKERS,
    ask,
    build_crew,
    build_second,
    find,
)
from tests.support.e2e_expect import Expectation, has_checkpoint, has_condition, has_turn, in_phase
from tests.support.e2e_gates import open_gate, wait_at_gate
from tests.support.e2e_ledger import check_unbroken, count_turns, select, the_one
from tests.support.e2e_objects import Json
from tests.support.e2e_operators import kill_leader
from tests.support.e2e_parts import ScriptedModel
from tests.support.e2e_world import World

pytestmark = pytest.mark.smoke

LAST_TURN = {"lead": 2}
UNSAVED = ("failed", "blank")  # agents that have no checkpoint in the end


@pytest.fixture(scope="module")
def agents(world: World, api: ControlApi, space: str) -> dict[str, Json]:
    """The agents by short name, at the end. Their leader was killed when they were in every state at once."""
    world.apply(space, build_crew())
    world.wait_agent(space, f"{NAME}-lead", in_phase("Done"))
    api.prompt(f"{space}/{NAME}-lead", build_second())
    for alias in ENDED:
        world.wait_agent(space, f"{NAME}-{alias}", in_phase("Done", "Failed"))
    for alias in (*AT_GATES, "setup"):
        wait_at_gate(world, space, f"{NAME}-{alias}-1")
    for alias in WAITING:
        world.wait_agent(space, f"{NAME}-{alias}", in_phase("Waiting"))
    open_gate(world, space, f"{NAME}-speaking-1")
    open_gate(world, space, f"{NAME}-ending-1")
    kill_leader(world)
    for alias in ("lead", "forked", "tool", "blank", "setup"):
        open_gate(world, space, f"{NAME}-{alias}-1")
    return {alias: world.wait_agent(space, f"{NAME}-{alias}", _has_completed(alias)) for alias in ALIASES}


def _has_completed(alias: str) -> Expectation:
    turn = LAST_TURN.get(alias, 1)
    if alias == "failed":
        return in_phase("Failed") & has_turn(turn, "Failed")
    done = in_phase("Done") & has_turn(turn, "Clean")
    return done if alias in UNSAVED else done & has_checkpoint(turn)


@pytest.fixture(scope="module")
def rows(world: World, space: str, agents: dict[str, Json]) -> list[Json]:
    """The run's ledger."""
    return world.read_ledger(run=f"{space}/{NAME}")


@pytest.mark.behaviour("3.9", "3.11", "3.12")
def test_nobody_is_interrupted_and_nobody_starts_twice(
    agents: dict[str, Json], rows: list[Json], space: str, model: ScriptedModel
) -> None:
    turns = {(f"{space}/{NAME}-{alias}", 1) for alias in ALIASES} | {(f"{space}/{NAME}-lead", 2)}
    assert count_turns(rows, "agent.turn_started") == dict.fromkeys(turns, 1)
    assert count_turns(rows, "handle.settled") == dict.fromkeys(turns, 1)
    assert count_turns(rows, "agent.turn_ended") == dict.fromkeys(turns - {(f"{space}/{NAME}-failed", 1)}, 1)
    assert not select(rows, "agent.turn_interrupted")
    assert all(not has_condition("Interrupted").holds(agent) for agent in agents.values())
    for words in (*map(ask, ALIASES), SECOND):
        first = [one for one in model.find(words) if one["roles"][-1] == "user" and one["users"][-1].startswith(words)]
        assert len(first) == 1, f"{words!r} reached the model {len(first)} times"


@pytest.mark.behaviour("5.4", "5.14")
def test_they_are_reattached_in_the_pods_they_had(rows: list[Json], space: str) -> None:
    made = {row["agent"]: row["payload"]["incarnation"] for row in select(rows, "agent.provisioned")}
    assert made == {f"{space}/{NAME}-{alias}": 1 for alias in ALIASES}
    assert len(select(rows, "agent.provisioned")) == len(ALIASES)
    back = select(rows, "agent.restored")
    assert {row["payload"]["rung"] for row in back} == {"Reattach"}
    assert {f"{space}/{NAME}-{alias}" for alias in AT_GATES} <= {row["agent"] for row in back}


@pytest.mark.behaviour("3.1", "5.14", "6.5", "6.6")
def test_the_gather_gets_what_all_of_them_found(rows: list[Json], api: ControlApi, space: str) -> None:
    gather = f"{space}/{NAME}-gather"
    resolved = the_one(rows, "wait.resolved", agent=gather)["payload"]
    assert resolved["outcomes"] == {alias: "failed" if alias == "failed" else "success" for alias in WORKERS}
    read = str(the_one(rows, "harness.tool.ended", agent=gather)["payload"])
    for alias in set(WORKERS) - {"failed", "speaking"}:
        assert find(alias) in read
    assert SPOKEN in read
    assert api.result(gather).body["result"] == "All gathered."


@pytest.mark.behaviour("8.3", "8.4")
def test_the_ledger_has_no_gap_after_the_change_of_leaders(world: World, rows: list[Json]) -> None:
    check_unbroken(world.read_ledger())
