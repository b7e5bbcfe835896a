"""What an entry of a swarm's list says reaches the Agent that was made of it, and a person's own words in it stay."""

from typing import Any

import pytest

from alineod.crd.parse import parse_swarm
from alineod.domain.facts import MemberObject, Owner
from alineod.kube.objects import AGENTS, PODS, SWARMS, Json
from alineod.reconcile.act import build_agent_object, create_agent
from alineod.reconcile.gather_swarm import gather_swarm
from tests.unit.reconcile.simulation import NAMESPACE, Simulation

KEY = f"{NAMESPACE}/survey"
MODEL: Json = {"provider": "openai", "id": "m"}
SETUP: Json = {"sandbox": {"setup": "true"}}


def _swarm(*entries: Json) -> Json:
    spec = {"defaults": {"harness": {"model": MODEL}}, "agents": list(entries)}
    return {"metadata": {"name": "survey", "namespace": NAMESPACE}, "spec": spec}


def _entry(name: str, **words: Any) -> Json:
    return {"name": name, "prompt": "plan", **words}


async def _play(*entries: Json) -> Simulation:
    simulation = Simulation()
    simulation.gateway.write(SWARMS, _swarm(*entries))
    await simulation.settle()
    return simulation


async def _edit(simulation: Simulation, *entries: Json) -> Json:
    """The spec of the lead once the swarm's list says this."""
    simulation.gateway.write(SWARMS, _swarm(*entries))
    await simulation.settle()
    spec: Json = simulation.read(AGENTS, "survey-lead")["spec"]
    return spec


def _read_up_to_date(simulation: Simulation) -> tuple[str, str]:
    conditions = simulation.read(AGENTS, "survey-lead")["status"]["conditions"]
    found = next(c for c in conditions if c["type"] == "UpToDate")
    return found["status"], found["reason"]


async def test_an_entry_that_was_changed_is_told_at_once_and_applies_at_the_next_incarnation() -> None:
    simulation = await _play(_entry("lead"))
    pod = simulation.read(PODS, "survey-lead-1")
    assert _read_up_to_date(simulation) == ("True", "UpToDate")
    assert (await _edit(simulation, _entry("lead", **SETUP)))["sandbox"] == SETUP["sandbox"]
    assert simulation.read(PODS, "survey-lead-1")["metadata"]["uid"] == pod["metadata"]["uid"]
    assert _read_up_to_date(simulation) == ("False", "SpecChanged")
    simulation.delete_pod("survey-lead")
    await simulation.settle()
    made = simulation.read(PODS, "survey-lead-2")["spec"]["containers"]
    assert [env["value"] for c in made for env in c["env"] if env["name"] == "ALINEO_SETUP"] == ["true"]
    assert _read_up_to_date(simulation) == ("True", "UpToDate")


async def test_what_an_entry_no_longer_says_goes_from_its_agent() -> None:
    simulation = await _play(_entry("lead", checkpoint=True, **SETUP))
    spec = await _edit(simulation, _entry("lead"))
    assert not {"sandbox", "checkpoint"} & set(spec)


async def test_what_a_person_wrote_into_an_agent_stays_until_its_entry_says_something_else() -> None:
    simulation = await _play(_entry("lead"))
    agent = simulation.read(AGENTS, "survey-lead")
    simulation.gateway.write(AGENTS, agent | {"spec": agent["spec"] | {"paused": True} | SETUP})
    await simulation.settle()
    assert simulation.read(AGENTS, "survey-lead")["spec"]["sandbox"] == SETUP["sandbox"]
    spec = await _edit(simulation, _entry("lead", checkpoint=True))
    assert (spec["paused"], spec["checkpoint"], spec["sandbox"]) == (True, True, SETUP["sandbox"])
    spec = await _edit(simulation, _entry("lead", sandbox={"setup": "false"}))
    assert (spec["paused"], spec["sandbox"]) == (True, {"setup": "false"})


async def test_an_entry_s_agent_that_is_as_it_says_is_not_written_again() -> None:
    simulation = await _play(_entry("lead"))
    before = simulation.read(AGENTS, "survey-lead")["metadata"]["resourceVersion"]
    await _edit(simulation, _entry("lead"), _entry("left"))
    assert simulation.read(AGENTS, "survey-lead")["metadata"]["resourceVersion"] == before


async def test_what_a_former_leader_writes_too_late_is_set_right() -> None:
    simulation = await _play(_entry("lead"))
    old = parse_swarm(simulation.read(SWARMS, "survey"))
    await _edit(simulation, _entry("lead", **SETUP))
    body = build_agent_object(old, "lead")
    assert body is not None
    await simulation.gateway.apply(AGENTS, body, force=False)
    assert "sandbox" not in simulation.read(AGENTS, "survey-lead")["spec"]
    await simulation.settle()
    assert simulation.read(AGENTS, "survey-lead")["spec"]["sandbox"] == SETUP["sandbox"]


async def test_an_agent_that_somebody_made_meanwhile_is_looked_at_and_left() -> None:
    simulation = Simulation()
    simulation.gateway.write(SWARMS, _swarm(_entry("lead")))
    swarm = parse_swarm(simulation.read(SWARMS, "survey"))
    metadata = {"name": "survey-lead", "namespace": NAMESPACE}
    mine = {"metadata": metadata, "spec": {"swarm": "survey", "alias": "lead", "prompt": "plan"}}
    simulation.gateway.write(AGENTS, mine)
    simulation.world.store.discard(AGENTS, simulation.read(AGENTS, "survey-lead"))
    assert await create_agent(simulation.world, swarm, "lead")
    assert "ownerReferences" not in simulation.read(AGENTS, "survey-lead")["metadata"]


@pytest.mark.parametrize("name", ["my.swarm", "s" * 60])
async def test_a_swarm_whose_name_does_not_fit_says_so(name: str) -> None:
    simulation = Simulation()
    swarm = _swarm(_entry("lead"))
    simulation.gateway.write(SWARMS, swarm | {"metadata": swarm["metadata"] | {"name": name}})
    await simulation.settle()
    conditions = simulation.read(SWARMS, name)["status"]["conditions"]
    assert next(c for c in conditions if c["type"] == "Stalled")["reason"] in ("InvalidName", "NameTooLong")


@pytest.mark.parametrize("owner", [Owner.NOBODY, Owner.FORMER])
async def test_an_agent_that_the_swarm_did_not_make_is_not_told_what_to_say(owner: Owner) -> None:
    simulation = Simulation()
    makers = [{"apiVersion": "v", "kind": "Swarm", "name": "survey", "uid": "gone"}]
    metadata = {"name": "survey-lead", "namespace": NAMESPACE, "labels": {"alineo.dev/swarm": "survey"}}
    agent = {"metadata": metadata, "spec": {"swarm": "survey", "alias": "lead", "prompt": "mine"}}
    if owner is Owner.FORMER:
        agent["metadata"]["ownerReferences"] = makers
    simulation.gateway.write(AGENTS, agent)
    simulation.gateway.write(SWARMS, _swarm(_entry("lead")))
    facts, _ = await gather_swarm(simulation.world, KEY)
    (member,) = facts.members
    assert isinstance(member, MemberObject)
    assert (member.owner, member.outdated) == (owner, False)
