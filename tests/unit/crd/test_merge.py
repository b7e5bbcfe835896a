"""An agent's own words over its swarm's defaults."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alineod.crd.agent import AgentEntry, AgentTemplate
from alineod.crd.merge import build_agent_spec, merge_defaults
from alineod.crd.parse import parse_agent_spec

TASK: dict[str, Any] = {"swarm": "s", "prompt": "p"}


def credential(name: str, secret: str) -> dict[str, Any]:
    return {"name": name, "secretKeyRef": {"name": secret, "key": "k"}}


@pytest.mark.parametrize(
    ("defaults", "own", "effective"),
    [
        ({}, {}, {}),
        ({"checkpoint": True}, {}, {"checkpoint": True}),
        ({"checkpoint": True}, {"checkpoint": False}, {"checkpoint": False}),
        # A value that is the default all the same wins where it was written.
        ({"sandbox": {"home": "/home/agent"}}, {"sandbox": {"home": "/root"}}, {"sandbox": {"home": "/root"}}),
        (
            {"harness": {"model": {"provider": "openai", "id": "small"}}},
            {"harness": {"model": {"id": "large"}}},
            {"harness": {"model": {"provider": "openai", "id": "large"}}},
        ),
        (
            {"sandbox": {"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}},
            {"sandbox": {"resources": {"requests": {"cpu": 2}}}},
            {"sandbox": {"resources": {"requests": {"cpu": "2", "memory": "1Gi"}}}},
        ),
        # Lists are replaced,
        ({"sandbox": {"checkpointExclude": ["a"]}}, {"sandbox": {"checkpointExclude": ["b"]}},
         {"sandbox": {"checkpointExclude": ["b"]}}),
        ({"sandbox": {"podTemplate": {"spec": {"tolerations": [{"key": "a"}], "nodeSelector": {"x": "y"}}}}},
         {"sandbox": {"podTemplate": {"spec": {"tolerations": []}}}},
         {"sandbox": {"podTemplate": {"spec": {"tolerations": [], "nodeSelector": {"x": "y"}}}}}),
        # credentials merge by name.
        (
            {"harness": {"credentials": [credential("A", "one"), credential("B", "one")]}},
            {"harness": {"credentials": [credential("B", "two"), credential("C", "two")]}},
            {"harness": {"credentials": [credential("A", "one"), credential("B", "two"), credential("C", "two")]}},
        ),
    ],
)  # fmt: skip
def test_what_holds(defaults: dict[str, Any], own: dict[str, Any], effective: dict[str, Any]) -> None:
    template = AgentTemplate.parse(defaults)
    merged = merge_defaults(template, parse_agent_spec(TASK | own))
    assert merged.dump() == TASK | effective
    assert merge_defaults(template, merged) == merged


def test_an_entry_becomes_the_spec_of_an_agent_without_the_defaults() -> None:
    entry = AgentEntry.parse({"name": "left", "parent": "lead", "waitFor": ["lead"], "prompt": "p"})
    spec = build_agent_spec("survey", entry)
    assert spec.dump() == {
        "swarm": "survey", "alias": "left", "parent": "lead", "waitFor": {"agents": ["lead"]}, "prompt": "p",
    }  # fmt: skip


templates = st.fixed_dictionaries(
    {},
    optional={
        "checkpoint": st.booleans(),
        "from": st.sampled_from(["Parent", "Fresh"]),
        "sandbox": st.fixed_dictionaries(
            {},
            optional={
                "home": st.sampled_from(["/root", "/home/agent"]),
                "runAsUser": st.integers(0, 9),
                "resources": st.fixed_dictionaries(
                    {}, optional={"limits": st.dictionaries(st.sampled_from(["cpu", "memory"]), st.integers(0, 9))}
                ),
            },
        ),
    },
)


@given(templates, templates)
def test_merging_again_changes_nothing_and_own_words_always_hold(defaults: dict[str, Any], own: dict[str, Any]) -> None:
    template = AgentTemplate.parse(defaults)
    agent = parse_agent_spec(TASK | own)
    merged = merge_defaults(template, agent)
    assert merge_defaults(template, merged) == merged
    assert merge_defaults(AgentTemplate(), agent) == agent
    for field in agent.model_fields_set - {"sandbox"}:
        assert getattr(merged, field) == getattr(agent, field)
