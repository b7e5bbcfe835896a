"""What no field can say: names that do not fit, references that lead nowhere or in a circle."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alineod.crd.agent import AgentTemplate
from alineod.crd.check import check_agent, check_effective, check_swarm, find_wait_cycle
from alineod.crd.graph import find_cycle, measure_depth
from alineod.crd.parse import parse_agent_spec, parse_swarm_spec
from alineod.crd.problem import Flaw
from tests.unit.crd.specs import agents

MODEL = {"model": {"provider": "openai", "id": "m"}}


@pytest.mark.parametrize(
    ("spec", "flaw", "field", "words"),
    [
        (agents({"name": "a", "waitFor": ["b"]}), Flaw.AGENT_NOT_FOUND, "spec.agents[0].waitFor",
         "there is no agent b in this swarm"),
        (agents({"name": "a", "parent": "b"}), Flaw.AGENT_NOT_FOUND, "spec.agents[0].parent", "there is no agent b"),
        (agents({"name": "a", "waitFor": ["a"]}), Flaw.WAIT_CYCLE, "spec.waitFor", "a waits for a"),
        (agents({"name": "a", "waitFor": ["b"]}, {"name": "b", "waitFor": ["c"]}, {"name": "c", "waitFor": ["a"]}),
         Flaw.WAIT_CYCLE, "spec.waitFor", "a waits for b waits for c waits for a"),
        (agents({"name": "a", "parent": "b"}, {"name": "b", "parent": "a"}), Flaw.PARENT_CYCLE, "spec.agents",
         "a is a child of b is a child of a"),
        (agents({"name": "a"}, {"name": "a"}), Flaw.DUPLICATE_NAME, "spec.agents[1].name", "a is there twice"),
        (agents({"name": "a"}, {"name": "b", "waitFor": ["a", "a"]}), Flaw.DUPLICATE_NAME, "spec.agents[1].waitFor",
         "name each once"),
        (agents({"name": "a"}, {"name": "b", "waitFor": {"agents": ["a"], "mode": "Quorum"}}), Flaw.INVALID_QUORUM,
         "spec.agents[1].waitFor", "write how many agents must succeed"),
        (agents({"name": "a"}, {"name": "b", "waitFor": {"agents": ["a"], "mode": "Quorum", "k": 2}}),
         Flaw.INVALID_QUORUM, "spec.agents[1].waitFor.k", "k is 2 and only 1 agents are named"),
        (agents({"name": "a"}, {"name": "b", "waitFor": {"agents": ["a"], "k": 1}}), Flaw.INVALID_QUORUM,
         "spec.agents[1].waitFor", "k has no meaning in mode Settled"),
        (agents({"name": "x" * 51}), Flaw.NAME_TOO_LONG, "spec.agents[0].name", "shorten it to 57"),
        (agents(*({"name": f"a{i}", **({"parent": f"a{i - 1}"} if i else {})} for i in range(18))), Flaw.TOO_DEEP,
         "spec.agents", "17 levels deep: make it at most 16"),
    ],
)  # fmt: skip
def test_a_swarm_is_told_what_to_change(spec: dict[str, Any], flaw: Flaw, field: str, words: str) -> None:
    (problem,) = check_swarm("survey", parse_swarm_spec(spec))
    assert (problem.flaw, problem.field) == (flaw, field)
    assert words in problem.message


@pytest.mark.parametrize("name", ["Survey", "my.survey", "x" * 58])
def test_names_that_would_not_fit_are_refused(name: str) -> None:
    assert check_swarm(name, parse_swarm_spec({}))
    assert check_agent(name, parse_agent_spec({"swarm": "s", "prompt": "p"}))


def test_every_derived_name_of_an_accepted_agent_fits() -> None:
    spec = parse_swarm_spec(agents({"name": "x" * 50}))
    assert check_swarm("survey", spec) == ()
    assert len(f"survey-{'x' * 50}-99999") == 63


@pytest.mark.parametrize(
    ("spec", "flaw"),
    [
        ({"parent": "one"}, Flaw.PARENT_CYCLE),
        ({"parent": "self", "alias": "self"}, Flaw.PARENT_CYCLE),
        ({"waitFor": ["one", "two"]}, Flaw.WAIT_CYCLE),
        ({"waitFor": {"agents": ["two"], "mode": "Quorum", "k": 2}}, Flaw.INVALID_QUORUM),
    ],
)
def test_an_agent_by_itself(spec: dict[str, Any], flaw: Flaw) -> None:
    (problem,) = check_agent("one", parse_agent_spec({"swarm": "s", "prompt": "p"} | spec))
    assert problem.flaw is flaw


@pytest.mark.parametrize(
    ("template", "field", "words"),
    [
        ({}, "spec.harness.model.provider", "set it in the agent or in the swarm's spec.defaults"),
        ({"harness": {"model": {"provider": "openai"}}}, "spec.harness.model.id", "no model id is given"),
        ({"harness": {"type": "Acp"}}, "spec.harness.command", "type Acp needs a command"),
        ({"harness": MODEL | {"command": ["x"]}}, "spec.harness.command", "type Pi takes no command"),
        ({"harness": MODEL, "sandbox": {"podTemplate": {"spec": {"containers": [{"name": "agent"}]}}}},
         "spec.sandbox.podTemplate.spec.containers", "choose another name"),
        ({"harness": MODEL, "sandbox": {"podTemplate": {"spec": {"containers": {"agent": {}}}}}},
         "spec.sandbox.podTemplate.spec.containers", "write it as in a Pod"),
        ({"harness": MODEL, "sandbox": {"podTemplate": {"spec": {"volumes": [{"name": "token"}]}}}},
         "spec.sandbox.podTemplate.spec.volumes", "one of alineod's own volumes"),
        ({"harness": MODEL, "sandbox": {"podTemplate": {"spec": {"shareProcessNamespace": True}}}},
         "spec.sandbox.podTemplate.spec.shareProcessNamespace", "is set by alineod: remove it"),
        ({"harness": MODEL, "sandbox": {"podTemplate": {"metadata": {"labels": {"alineo.dev/swarm": "x"}}}}},
         "spec.sandbox.podTemplate.metadata.labels", "use another prefix"),
    ],
)  # fmt: skip
def test_an_effective_spec_is_told_what_is_missing(template: dict[str, Any], field: str, words: str) -> None:
    problem = check_effective(AgentTemplate.parse(template))[0]
    assert problem.field == field
    assert words in problem.message
    assert str(problem) == f"{field}: {problem.message}"


def test_a_sound_template_has_no_problem() -> None:
    overlay = {
        "spec": {"containers": [{"name": "mine"}], "nodeSelector": {"a": "b"}},
        "metadata": {"labels": {"a": "b"}},
    }
    template = {"harness": MODEL, "sandbox": {"podTemplate": overlay}}
    assert check_effective(AgentTemplate.parse(template)) == ()


names = st.sampled_from([f"n{i}" for i in range(8)])
graphs = st.dictionaries(names, st.lists(names, max_size=4))


@given(graphs)
def test_a_reported_circle_is_one_and_none_is_missed(graph: dict[str, list[str]]) -> None:
    path = find_cycle(graph)
    if path:
        assert path[0] == path[-1]
        assert all(after in graph[before] for before, after in pairwise(path))
        assert (problem := find_wait_cycle(graph)) is not None
        assert " waits for ".join(path) in problem.message
    else:
        left = {name: set(targets) & set(graph) for name, targets in graph.items()}
        while free := [name for name, targets in left.items() if not targets & set(left)]:
            left = {name: targets for name, targets in left.items() if name not in free}
        assert left == {}


def test_long_chains_are_no_problem() -> None:
    count = 20_000
    chain: dict[str, list[str]] = {str(i): [str(i - 1)] if i else [] for i in range(count)}
    assert find_cycle(chain) == ()
    assert find_cycle(chain | {"0": [str(count - 1)]}) != ()
    assert measure_depth({name: (targets or [None])[0] for name, targets in chain.items()}) == count - 1


@pytest.mark.parametrize(
    ("parents", "depth"),
    [
        ({}, 0),
        ({"a": None}, 0),
        ({"a": "gone"}, 1),
        ({"c": "b", "b": "a", "a": None}, 2),
        ({"b": "a", "c": "a", "a": None}, 1),
    ],
)
def test_depth_counts_levels_below_the_roots(parents: dict[str, str | None], depth: int) -> None:
    assert measure_depth(parents) == depth
