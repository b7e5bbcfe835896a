"""Waits: what is settled among the agents they name → over or not, and how; and the files the agent is given."""

import json
from typing import Any

import pytest

from alineod.crd.agent import AgentSpec
from alineod.domain.events import Outcome, WaitResolved
from alineod.domain.facts import Peer
from alineod.domain.state import Handle
from alineod.domain.waits import build_inputs, decide_wait
from tests.unit.domain.builders import build_spec

S, F, P = Outcome.SUCCESS, Outcome.FAILED, None


def _peers(**outcomes: Outcome | None) -> dict[str, Peer]:
    return {
        name: Peer(f"ns/{name}", Handle(outcome is not None, outcome, 1, name), False, True, False)
        for name, outcome in outcomes.items()
    }


def _spec(wait: Any) -> AgentSpec:
    return build_spec(waitFor=wait)


QUORUM = {"agents": ["a", "b", "c"], "mode": "Quorum", "k": 2}


@pytest.mark.parametrize(
    ("wait", "peers", "outcome", "failed"),
    [
        (["a", "b"], _peers(a=S, b=S), "satisfied", False),
        (["a", "b"], _peers(a=S, b=P), None, False),
        (["a", "b"], _peers(a=S, b=F), "satisfied", False),
        ({"agents": ["a", "b"], "onDepFailure": "Fail"}, _peers(a=P, b=F), "failed", True),
        ({"agents": ["a", "b"], "mode": "All"}, _peers(a=P, b=F), "failed", True),
        ({"agents": ["a", "b"], "mode": "All", "onDepFailure": "Proceed"}, _peers(a=P, b=F), None, False),
        ({"agents": ["a", "b"], "mode": "All", "onDepFailure": "Proceed"}, _peers(a=S, b=F), "failed", False),
        ({"agents": ["a", "b"], "mode": "Any"}, _peers(a=P, b=S), "satisfied", False),
        ({"agents": ["a", "b"], "mode": "Any"}, _peers(a=F, b=F), "failed", True),
        (QUORUM, _peers(a=S, b=P, c=S), "satisfied", False),
        (QUORUM, _peers(a=S, b=P, c=F), None, False),
        (QUORUM, _peers(a=F, b=P, c=F), "failed", True),
    ],
)
def test_modes(wait: Any, peers: dict[str, Peer], outcome: str | None, failed: bool) -> None:
    spec = _spec(wait)
    assert spec.wait_for is not None
    verdict = decide_wait(spec.wait_for, peers, since=0.0, now=1.0)
    assert (verdict.resolved.outcome if verdict.resolved else None) == outcome
    assert verdict.failed is failed


@pytest.mark.parametrize(("policy", "failed"), [("Proceed", False), ("Fail", True)])
def test_a_deadline_counts_from_the_beginning_of_the_wait(policy: str, failed: bool) -> None:
    spec = _spec({"agents": ["a", "b"], "deadline": "10s", "onDeadline": policy})
    assert spec.wait_for is not None
    before = decide_wait(spec.wait_for, _peers(a=S, b=P), since=100.0, now=109.0)
    after = decide_wait(spec.wait_for, _peers(a=S, b=P), since=100.0, now=110.0)
    assert (before.resolved, before.again_at) == (None, 110.0)
    assert after.resolved is not None
    assert (after.resolved.outcome, after.resolved.pending, after.failed) == ("deadline", ["b"], failed)


def test_an_agent_that_is_not_there_yet_is_named() -> None:
    spec = _spec(["a", "b"])
    assert spec.wait_for is not None
    assert decide_wait(spec.wait_for, _peers(a=S), 0.0, 1.0).missing == ("b",)


def test_a_plain_list_that_went_well_gives_files_and_an_index_of_them() -> None:
    resolved = WaitResolved(mode="Settled", outcome="satisfied", outcomes={"a": S}, turns={"a": 1}, plain=True)
    text, index = build_inputs(resolved, {"a": "the text"})
    assert (text.path, text.text) == ("/inputs/a.txt", "the text")
    assert index.path == "/inputs.json"
    assert json.loads(index.text) == {"a": {"path": "/inputs/a.txt", "outcome": "success"}}


@pytest.mark.parametrize(
    "resolved",
    [
        WaitResolved(mode="Settled", outcome="satisfied", outcomes={"a": F}, plain=True),
        WaitResolved(mode="Quorum", outcome="satisfied", outcomes={"a": S}, pending=["b"]),
    ],
)
def test_any_other_wait_says_how_it_ended(resolved: WaitResolved) -> None:
    *_, index = build_inputs(resolved, {})
    waited = json.loads(index.text)["__wait"]
    assert waited == {"mode": resolved.mode, "outcome": resolved.outcome, "pending": resolved.pending}
