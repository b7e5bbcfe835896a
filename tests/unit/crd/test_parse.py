"""The door in Python: raw objects become records, or a sentence that names the field."""

from typing import Any

import pytest

from alineod.crd.agent import OnDeadline, OnDepFailure, StartFrom, Wait, WaitMode
from alineod.crd.parse import parse_agent, parse_agent_spec, parse_swarm, parse_swarm_spec
from alineod.crd.swarm import DeletionPolicy, OnFailure, OnInterruption
from alineod.errors import Refused
from tests.unit.crd.specs import agents, build_raw_agent, build_raw_swarm


def test_a_swarm_with_nothing_in_it_has_the_documented_defaults() -> None:
    swarm = parse_swarm(build_raw_swarm({}))
    spec = swarm.spec
    assert (swarm.key, swarm.metadata.generation, swarm.status.observed_generation) == ("research/survey", 3, -1)
    assert (spec.budget.spawn_depth, spec.budget.max_agents, spec.deletion_policy) == (0, None, DeletionPolicy.RETAIN)
    assert (spec.supervision.on_failure, spec.supervision.on_interruption) == (OnFailure.FAIL, OnInterruption.SETTLE)
    assert (spec.supervision.max_retries, spec.supervision.max_consecutive_failures) == (2, 3)
    assert spec.defaults.sandbox.home == "/root"
    assert spec.defaults.from_ is StartFrom.PARENT
    assert (spec.defaults.limits.turn_max, spec.defaults.limits.prompt_inactivity) == (1800.0, 180.0)
    assert spec.defaults.checkpoint is False


def test_a_default_is_shared_and_not_copied_for_every_agent() -> None:
    """A swarm of a hundred is parsed on the loop whenever it has changed; copies were nine tenths of the time."""
    one, other = (parse_agent_spec({"swarm": "s", "prompt": name}) for name in ("one", "other"))
    assert one.harness is other.harness
    assert one.sandbox is other.sandbox


@pytest.mark.parametrize("raw", [["lead"], {"agents": ["lead"]}])
def test_a_list_is_short_for_a_wait(raw: Any) -> None:
    wait = parse_agent_spec({"swarm": "s", "prompt": "p", "waitFor": raw}).wait_for
    assert wait == Wait(agents=("lead",))
    assert wait is not None
    assert (wait.mode, wait.on_dep_failure, wait.on_deadline, wait.deadline) == (
        WaitMode.SETTLED, OnDepFailure.FAIL, OnDeadline.PROCEED, None,
    )  # fmt: skip


def test_a_wait_in_full() -> None:
    raw = {"agents": ["a", "b"], "mode": "Quorum", "k": 1, "deadline": "1h30m", "onDeadline": "Fail"}
    wait = parse_agent_spec({"swarm": "s", "prompt": "p", "waitFor": raw}).wait_for
    assert wait is not None
    assert (wait.mode, wait.k, wait.deadline, wait.on_deadline) == (WaitMode.QUORUM, 1, 5400.0, OnDeadline.FAIL)
    assert wait.dump() == raw


def test_an_agent_knows_its_run_and_its_short_name() -> None:
    named = parse_agent(build_raw_agent({"swarm": "survey", "alias": "lead", "prompt": "p"}))
    assert (named.key, named.run, named.alias) == ("research/survey-lead", "research/survey", "lead")
    assert parse_agent(build_raw_agent({"swarm": "survey", "prompt": "p"}, "critic")).alias == "critic"


def test_null_is_not_written() -> None:
    raw = {"swarm": "s", "prompt": "p", "parent": None, "sandbox": {"image": None}}
    assert parse_agent_spec(raw).dump() == {"swarm": "s", "prompt": "p", "sandbox": {}}


def test_a_status_of_another_version_is_read_as_far_as_it_goes() -> None:
    raw = build_raw_agent({"swarm": "s", "prompt": "p"}) | {"status": {"phase": "Done", "mood": "fine"}}
    assert parse_agent(raw).status.phase == "Done"


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ({"waitfor": 1}, "spec.waitfor is not a known field: remove it or correct its name"),
        (agents({"name": "a", "promt": "x"}), "spec.agents[0].promt is not a known field"),
        ({"agents": [{"name": "a"}]}, "spec.agents[0].prompt is missing"),
        (agents({"name": "A"}), "spec.agents[0].name is no name ('A'): use lower case letters"),
        (agents({"name": "a", "waitFor": {"agents": ["b"], "deadline": "soon"}}),
         "spec.agents[0].waitFor.deadline is no duration ('soon')"),
        (agents({"name": "a", "waitFor": {"agents": ["b"], "mode": "Most"}}), "spec.agents[0].waitFor.mode"),
        (agents({"name": "a", "waitFor": "b"}), "spec.agents[0].waitFor is neither a list of short names"),
        (agents({"name": "a", "waitFor": []}), "spec.agents[0].waitFor.agents"),
        ({"budget": {"spawnDepth": 17}}, "spec.budget.spawnDepth: input should be less than or equal to 16, not 17"),
        ({"defaults": {"sandbox": {"home": "/workspace"}}}, "spec.defaults.sandbox.home cannot be '/workspace'"),
        ({"defaults": {"prompt": "x"}}, "spec.defaults.prompt is not a known field"),
        ({"defaults": {"harness": {"type": "pi"}}}, "spec.defaults.harness.type: input should be 'Pi' or 'Acp'"),
    ],
)  # fmt: skip
def test_refusals_name_the_field_and_say_what_to_change(spec: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Refused) as refusal:
        parse_swarm(build_raw_swarm(spec))
    assert refusal.value.reason == "InvalidSpec"
    assert sentence in refusal.value.message
    with pytest.raises(Refused):
        parse_swarm_spec(spec)


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(Refused) as refusal:
        parse_swarm_spec({"pause": True, "budget": {"usd": "much"}})
    assert "spec.pause is" in refusal.value.message
    assert "spec.budget.usd is" in refusal.value.message
