"""The admission policies as data. What they do is asked of a real API server in tests/component/door."""

import re

import pytest

from alineod.crd.policy import POLICIES, Policy, build_policy_spec


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.definition.kind)
def test_a_policy_is_whole(policy: Policy) -> None:
    spec = build_policy_spec(policy)
    (rule,) = spec["matchConstraints"]["resourceRules"]
    assert rule["resources"] == [policy.definition.plural], "the status is not theirs"
    assert spec["failurePolicy"] == "Fail"
    known: set[str] = set()
    for variable in spec["variables"]:
        assert set(re.findall(r"variables\.(\w+)", variable["expression"])) <= known, variable["name"]
        assert variable["name"] not in known
        known.add(variable["name"])
    for check, validation in zip(policy.checks, spec["validations"], strict=True):
        assert validation["expression"] == f"variables.{check.name}.size() == 0"
        assert check.sentence in validation["messageExpression"].replace("\\'", "'")
        assert validation["message"] == check.sentence
