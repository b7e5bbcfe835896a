"""Situation of a swarm → rule, reason, actions."""

from dataclasses import replace
from typing import Any

import pytest

from alineod.crd.swarm import SwarmSpec
from alineod.domain import events as ev
from alineod.domain.actions import AdoptAgent, Append, CreateAgent, DeleteAgent, DeleteArchives, UpdateAgent
from alineod.domain.facts import MemberObject, Owner, SwarmFacts, SwarmObject, Trouble
from alineod.domain.swarm_rules import decide_swarm
from tests.unit.domain.builders import RUN, build_ledger, build_run_state


def _spec(*names: str) -> SwarmSpec:
    return SwarmSpec.parse({"agents": [{"name": name, "prompt": "p"} for name in names]})


def _object(**change: Any) -> SwarmObject:
    fields: dict[str, Any] = {"uid": "uid-s", "generation": 1, "spec": _spec("lead"), "instance": "default"}
    return SwarmObject(**(fields | change))


def _member(owner: Owner = Owner.OURS, alias: str = "lead", **change: Any) -> MemberObject:
    return MemberObject(f"survey-{alias}", f"uid-{alias}", alias, owner, **change)


def _facts(**change: Any) -> SwarmFacts:
    fields: dict[str, Any] = {
        "now": 100.0, "key": RUN, "cluster_uid": "c", "instance": "default", "object": _object(), "invalid": None,
        "ledger": build_run_state(), "members": (_member(),), "agents": {"research/survey-lead": build_ledger()},
    }  # fmt: skip
    return SwarmFacts(**(fields | change))


def _bodies(facts: SwarmFacts) -> list[str]:
    actions = decide_swarm(facts).actions
    return [ev.event_name(e.body) for action in actions if isinstance(action, Append) for e in action.entries]


def test_at_rest() -> None:
    decision = decide_swarm(_facts())
    assert decision.actions == ()
    assert decision.standing is not None
    assert decision.standing.ready


def test_a_new_object_is_a_new_run() -> None:
    assert _bodies(_facts(ledger=None)) == ["run.started"]


@pytest.mark.behaviour("10.2")
def test_another_uid_in_the_same_cluster_ends_the_former_run() -> None:
    events = _bodies(_facts(object=_object(uid="uid-new")))
    assert events == ["agent.ended", "handle.settled", "run.deleted", "run.started"]


@pytest.mark.behaviour("10.2", "10.9")
def test_the_former_run_s_own_deletion_policy_is_kept() -> None:
    run = build_run_state(deletion_policy="Delete")
    actions = decide_swarm(_facts(object=_object(uid="uid-new"), ledger=run)).actions
    assert DeleteArchives(("research/survey-lead",)) in actions


@pytest.mark.behaviour("10.4", "10.5")
@pytest.mark.parametrize("change", [{"cluster_uid": "c2"}, {"object": _object(uid="uid-new", adopt=True)}])
def test_brought_over_it_is_the_same_run(change: dict[str, Any]) -> None:
    facts = _facts(**({"object": _object(uid="uid-new")} | change))
    (append,) = decide_swarm(facts).actions
    assert isinstance(append, Append)
    (entry,) = append.entries
    assert isinstance(entry.body, ev.RunStarted)
    assert entry.body.adopted


@pytest.mark.behaviour("10.7")
def test_a_swarm_that_went_with_its_crd_was_not_deleted_and_comes_back_as_itself() -> None:
    assert decide_swarm(_facts(object=None, kind_renewed=True)).actions == ()
    (append,) = decide_swarm(_facts(object=_object(uid="uid-new"), kind_renewed=True)).actions
    assert isinstance(append, Append)
    assert [type(entry.body) for entry in append.entries] == [ev.RunStarted]
    assert append.entries[0].body == ev.RunStarted(uid="uid-new", cluster_uid="c", instance="default", adopted=True)


@pytest.mark.behaviour("10.7")
def test_in_another_cluster_a_swarm_that_is_not_there_yet_is_not_deleted() -> None:
    assert decide_swarm(_facts(object=None, cluster_uid="c2")).actions == ()
    assert _bodies(_facts(object=None)) == ["agent.ended", "handle.settled", "run.deleted"]


@pytest.mark.behaviour("10.6")
def test_another_release_s_swarm_is_left_alone() -> None:
    decision = decide_swarm(_facts(object=_object(instance="other"), ledger=None))
    assert (decision.rule, decision.actions, decision.standing) == ("other_instance", (), None)


def test_entries_are_made_and_removed_ones_go() -> None:
    facts = _facts(object=_object(spec=_spec("lead", "left")), members=(_member(), _member(alias="old")))
    assert decide_swarm(facts).actions == (DeleteAgent("survey-old", "uid-old"), CreateAgent("left"))


@pytest.mark.parametrize(
    ("member", "actions"),
    [
        (_member(outdated=True, version="7"), (UpdateAgent("lead", "survey-lead", "uid-lead", "7"),)),
        (
            _member(outdated=True, version="7", controlled=True),
            (UpdateAgent("lead", "survey-lead", "uid-lead", "7", control=False),),
        ),
        (_member(outdated=True, fixed=("prompt",)), ()),
        (_member(outdated=True, deleting=True), ()),
        (_member(outdated=False), ()),
    ],
    ids=["changed", "brought over", "cannot be changed", "leaving", "as it was"],
)
def test_an_entry_that_was_changed_is_written_into_its_agent(member: MemberObject, actions: tuple[object, ...]) -> None:
    assert decide_swarm(_facts(members=(member,))).actions == actions


def test_what_cannot_be_changed_is_said_and_keeps_no_other_from_its_change() -> None:
    members = (_member(outdated=True, fixed=("prompt", "waitFor")), _member(alias="left", outdated=True, version="3"))
    facts = _facts(object=_object(spec=_spec("lead", "left")), members=members)
    assert decide_swarm(facts).actions == (UpdateAgent("left", "survey-left", "uid-left", "3"),)
    rest = decide_swarm(replace(facts, members=(members[0], _member(alias="left")))).standing
    assert rest is not None
    assert (rest.reason, rest.stalled) == ("ImmutableField", True)
    assert rest.message.startswith("lead: prompt, waitFor cannot change once the agent is made: use the prompt verb")


def test_what_is_done_to_agents_is_said_of_each_kind() -> None:
    facts = _facts(object=_object(spec=_spec("lead", "left")), members=(_member(), _member(alias="old")))
    standing = decide_swarm(facts).standing
    assert standing is not None
    assert standing.message == "1 agents are being removed, 1 agents are being made"


def test_an_agent_that_somebody_deleted_is_not_made_again_and_that_is_said() -> None:
    facts = _facts(members=(), agents={"research/survey-lead": build_ledger(closed=True)})
    decision = decide_swarm(facts)
    assert decision.actions == ()
    assert decision.standing is not None
    assert decision.standing.message.endswith("; not made again, since somebody deleted them: lead")
    ended = decide_swarm(replace(facts, members=(_member(),))).standing
    assert ended is not None
    assert "deleted" not in ended.message


@pytest.mark.behaviour("10.2")
def test_an_agent_that_ended_in_a_former_run_is_made_for_the_new_one() -> None:
    run = build_run_state(started_seq=50, resumed_seq=50)
    facts = _facts(members=(), ledger=run, agents={"research/survey-lead": build_ledger(closed=True)})
    assert decide_swarm(facts).actions == (CreateAgent("lead"),)


@pytest.mark.behaviour("10.4")
def test_children_of_a_former_object_are_taken_over_by_name_when_the_run_was_brought_over() -> None:
    facts = _facts(members=(_member(Owner.FORMER),), ledger=build_run_state(resumed_seq=50))
    assert decide_swarm(facts).actions == (AdoptAgent("survey-lead", "uid-lead"),)


@pytest.mark.behaviour("10.2")
def test_children_that_a_former_run_left_behind_go_with_it() -> None:
    facts = _facts(members=(_member(Owner.FORMER),))
    assert decide_swarm(facts).actions == (DeleteAgent("survey-lead", "uid-lead"),)


@pytest.mark.behaviour("10.11")
def test_a_name_that_is_taken_is_said_and_never_adopted() -> None:
    facts = _facts(members=(_member(Owner.NOBODY),), taken=("survey-lead",), agents={})
    decision = decide_swarm(facts)
    assert decision.actions == ()
    assert decision.standing is not None
    assert (decision.standing.reason, decision.standing.stalled) == ("AgentNameTaken", True)
    assert "survey-lead" in decision.standing.message


@pytest.mark.behaviour("2.19")
def test_a_swarm_is_not_ready_while_an_agent_is_stuck() -> None:
    standing = decide_swarm(_facts(stuck=("left",))).standing
    assert standing is not None
    assert (standing.ready, standing.reason) == (False, "AgentStalled")
    invalid = decide_swarm(_facts(invalid=Trouble("WaitCycle", "a waits for b"))).standing
    assert invalid is not None
    assert invalid.stalled
