"""What the API server itself refuses, in the sentences a person reads, and what it lets pass."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import yaml

from alineod.crd.check import check_agent, check_swarm
from alineod.crd.definition import DEFINITIONS
from alineod.crd.parse import parse_agent_spec, parse_swarm_spec
from alineod.crd.policy import POLICIES
from alineod.crd.schema import build_schema
from alineod.errors import Refused
from alineod.generate.policies import build_policies
from alineod.generate.reference import read_sentences
from tests.component.door.conftest import Door, wait_until
from tests.support.apiserver import Answer
from tests.support.door_cases import CASES, CHANGES, TREE, Case, Change, alone, build_object, listed

ROOT = Path(__file__).resolve().parents[3]
LIMIT = 200 * 1024


SWARM_GUARD = "validatingadmissionpolicybinding/alineod-swarms"


@pytest.fixture(scope="module")
def ask(door: Door) -> Callable[[Case | Change], Answer]:
    """The door's answer, asked for once."""

    @cache
    def answer(label: str) -> Answer:
        item = next(item for item in (*CASES, *CHANGES) if name(item) == label)
        return door.create(item.build(), dry_run=True) if isinstance(item, Case) else door.change(item)

    return lambda item: answer(name(item))


def name(item: Case | Change) -> str:
    return f"{type(item).__name__} of {item.kind}: {item.label}"


@pytest.mark.parametrize("case", CASES, ids=name)
@pytest.mark.behaviour("6.3", "6.4", "10.10")
def test_what_cannot_work_is_refused_with_what_to_write_instead(ask: Callable[[Case], Answer], case: Case) -> None:
    answer = ask(case)
    assert not answer.ok
    for words in case.words:
        assert words in answer.text


@pytest.mark.parametrize("change", CHANGES, ids=name)
def test_what_may_change_and_what_may_not(ask: Callable[[Change], Answer], change: Change) -> None:
    answer = ask(change)
    assert answer.ok is not bool(change.words), answer.text
    for words in change.words:
        assert words in answer.text


def test_every_sentence_was_heard(ask: Callable[[Case | Change], Answer]) -> None:
    heard = " ".join(ask(item).text for item in (*CASES, *CHANGES)).lower()
    for definition in DEFINITIONS:
        for sentence in read_sentences(definition):
            assert sentence.removesuffix(".").lower() in heard


@pytest.mark.parametrize("case", CASES, ids=name)
def test_the_operator_finds_the_same_where_the_door_stands_open(case: Case) -> None:
    assert find_problems(case)


def find_problems(case: Case) -> object:
    try:
        if case.kind == "Swarm":
            return check_swarm(case.name, parse_swarm_spec(case.spec))
        return check_agent(case.name, parse_agent_spec(case.spec))
    except Refused as refusal:
        return refusal.reason == "InvalidSpec"


def test_what_slipped_in_can_still_be_labelled_paused_and_deleted(door: Door) -> None:
    wrong = build_object("Swarm", listed({"name": "a", "waitFor": ["z"]}), "slipped")
    assert door.kubectl("delete", SWARM_GUARD).ok
    wait_until(door, wrong, refused=False)
    assert door.create(wrong).ok
    assert door.apply(*build_policies()).ok
    wait_until(door, wrong | {"metadata": {"name": "another"}}, refused=True)
    assert door.replace(wrong | {"metadata": {"name": "slipped", "labels": {"colour": "blue"}}}).ok
    assert door.replace(wrong | {"spec": wrong["spec"] | {"paused": True}}).ok
    assert door.delete("Swarm", "slipped").ok


@pytest.mark.behaviour("1.1", "1.2")
def test_both_kinds_are_namespaced_and_known_by_their_short_names(door: Door) -> None:
    listed_kinds = door.kubectl("api-resources", "--categories=alineo", "--no-headers").text.splitlines()
    assert sorted(line.split() for line in listed_kinds) == [
        ["agents", "ag", "alineo.dev/v1alpha1", "true", "Agent"],
        ["swarms", "sw", "alineo.dev/v1alpha1", "true", "Swarm"],
    ]


def test_nobody_has_looked_at_a_new_object(door: Door) -> None:
    for kind, spec in (("Swarm", TREE), ("Agent", alone())):
        assert door.create(build_object(kind, spec, "fresh")).ok
        stored = door.read(kind, "fresh")
        assert stored["status"] == {"observedGeneration": -1}
        assert stored["spec"] == spec, "no default may be written into a spec"
        door.delete(kind, "fresh")


def test_applying_twice_changes_nothing(door: Door) -> None:
    body = build_object("Swarm", listed({"name": "a"}, {"name": "b", "parent": "a", "waitFor": ["a"]}), "twice")
    seen = []
    for _ in range(3):
        assert door.apply(body).ok
        seen.append(door.read("Swarm", "twice"))
    door.delete("Swarm", "twice")
    assert seen[0]["metadata"]["generation"] == seen[2]["metadata"]["generation"] == 1
    assert seen[0]["spec"] == seen[2]["spec"]
    # The first write after the creation stores the default of the status; nothing does from then on.
    assert seen[1] == seen[2]


@pytest.mark.behaviour("2.20", "2.21", "2.22")
def test_columns_as_kubectl_prints_them(door: Door) -> None:
    assert door.create(build_object("Swarm", TREE, "columns")).ok
    assert door.create(build_object("Agent", alone(), "columns")).ok

    def columns(*words: str) -> list[str]:
        return door.kubectl("get", *words).text.splitlines()[0].split()

    agents = ["NAME", "PHASE", "SWARM", "PARENT", "TURN", "CHECKPOINT", "SAVED", "RUNG", "RESTARTS", "AGE"]
    assert columns("ag") == agents
    assert columns("agents", "-o", "wide") == [*agents, "POD", "NODE", "OUTCOME"]
    assert columns("sw") == ["NAME", "READY", "AGENTS", "INTERRUPTED", "LOST", "AGE"]
    both = door.kubectl("get", "alineo").text
    assert "swarm.alineo.dev/columns" in both
    assert "agent.alineo.dev/columns" in both
    door.kubectl("delete", "swarm,agent", "columns")


def test_a_full_status_is_taken_and_shown(door: Door) -> None:
    assert door.create(build_object("Agent", alone(parent="lead"), "shown")).ok
    now = "2024-05-01T10:00:00Z"
    status = {
        "observedGeneration": 1, "phase": "Done", "outcome": "Success",
        "conditions": [{"type": "Ready", "status": "True", "reason": "Completed", "message": "",
                        "observedGeneration": 1, "lastTransitionTime": now}],
        "turn": {"number": 3, "id": "u/3", "state": "Clean", "startedAt": now},
        "sandbox": {"pod": "shown-2", "node": "n1", "incarnation": 2, "restarts": 4},
        "checkpoint": {"turn": 3, "time": now, "bytes": 10, "remoteRef": "k"},
        "restore": {"rung": "Restore", "turn": 2, "time": now, "reason": "pod gone"},
        "usage": {"inputTokens": 5, "outputTokens": 7, "usd": "0.10"},
    }  # fmt: skip
    patched = door.kubectl(
        "patch", "agent", "shown", "--subresource=status", "--type=merge", "-p", json.dumps({"status": status})
    )
    assert patched.ok, patched.text
    assert door.read("Agent", "shown")["status"] == status
    row = door.kubectl("get", "agent", "shown", "-o", "wide", "--no-headers").text.split()
    assert row[:6] == ["shown", "Done", "survey", "lead", "3", "3"]
    assert row[7:9] == ["Restore", "4"]
    assert row[-3:] == ["shown-2", "n1", "Success"]
    door.delete("Agent", "shown")


@pytest.mark.parametrize(("count", "waits"), [(2000, 5), (400, 60), (5000, 1)])
def test_large_swarms_pass(door: Door, count: int, waits: int) -> None:
    entries = [
        {
            "name": f"a{i:05}",
            "prompt": "Work.",
            "waitFor": [f"a{j:05}" for j in range(max(0, i - waits), i)] or ["a00000"],
        }
        for i in range(1, count)
    ]
    body = build_object("Swarm", listed({"name": "a00000"}, *entries), f"large-{count}")
    answer = door.create(body, dry_run=True)
    assert answer.ok, answer.text


def test_a_schema_explains_itself(door: Door) -> None:
    explained = door.kubectl("explain", "swarm.spec.agents.waitFor").text
    assert "What the agent waits for before its first turn" in explained
    for definition in DEFINITIONS:
        for field in (
            "",
            ".spec",
            ".status",
            ".spec.sandbox" if definition.kind == "Agent" else ".spec.defaults.sandbox",
        ):
            assert "<no description>" not in door.kubectl("explain", f"{definition.plural}{field}").text


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.yaml")), ids=lambda path: path.name)
def test_examples_pass(door: Door, path: Path) -> None:
    namespaces = {body["metadata"].get("namespace") for body in yaml.safe_load_all(path.read_text())} - {None}
    for namespace in namespaces:
        door.kubectl("create", "namespace", namespace)
    answer = door.kubectl("apply", "--dry-run=server", "-f", str(path))
    assert answer.ok, answer.text


def test_files_are_small_enough_for_every_way_of_applying_them() -> None:
    for path in (ROOT / "crds").glob("*.yaml"):
        assert path.stat().st_size < LIMIT


def test_no_default_hides_the_defaults_of_a_swarm() -> None:
    for definition in DEFINITIONS:
        assert '"default"' not in json.dumps(build_schema(definition.spec))


def test_policies_and_kinds_belong_together() -> None:
    assert [policy.definition for policy in POLICIES] == list(DEFINITIONS)
