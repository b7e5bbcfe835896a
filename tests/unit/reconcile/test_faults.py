"""Faults that were found once, each as a case of its kind."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from alineod.crd.swarm import SupervisionSpec
from alineod.domain import events as ev
from alineod.domain.actions import AbortTurn
from alineod.domain.agent_rules import decide_agent
from alineod.domain.causes import End, EndKind
from alineod.domain.facts import PodFacts
from alineod.domain.turn_ends import build_interruption
from alineod.errors import Denied
from alineod.kube.objects import AGENTS, NAMESPACES, PODS, SWARMS, Json, Ref, Resource, read_uid
from alineod.reconcile.drive import KUBELET_LOOK, RETRY
from alineod.reconcile.gather import gather_agent
from alineod.reconcile.passes import run_agent_pass, run_swarm_pass
from alineod.reconcile.prompts import queue_prompt
from alineod.reconcile.world import World
from alineod.wire.heard import Heard
from alineod.wire.turns import TurnState
from tests.unit.reconcile.simulation import NAMESPACE, Simulation

Pass = Callable[[World, str], Awaitable[float | None]]
MODEL = {"harness": {"model": {"provider": "openai", "id": "m"}}}


def _swarm(*agents: Json) -> Json:
    entries = [{"prompt": "p", **agent} for agent in agents]
    return {"metadata": {"name": "s", "namespace": NAMESPACE}, "spec": {"defaults": MODEL, "agents": entries}}


async def _settled(swarm: Json) -> Simulation:
    simulation = Simulation()
    simulation.gateway.write(SWARMS, swarm)
    await simulation.settle()
    return simulation


async def test_a_sandbox_that_refuses_is_not_asked_without_a_pause() -> None:
    simulation = await _settled(_swarm({"name": "a"}))
    asked = 0

    def refuse(what: str) -> None:
        nonlocal asked
        if what == "before start turn":
            asked += 1
            raise Denied("BridgeDenied", "the sandbox refused the operator's token")

    simulation.sandboxes.hook = refuse
    await queue_prompt(simulation.world, f"{NAMESPACE}/s-a", "go on", "k")
    for _ in range(50):
        await simulation.step()
    assert asked == 1
    await simulation.drivers.close()


async def test_children_that_wait_for_their_parent_do_not_keep_it_out() -> None:
    """The children's pods come first and take every place; their restore waits for the parent, which needs one."""
    simulation = Simulation()
    simulation.door = simulation.world = replace(simulation.world, restores_at_once=1)
    simulation.gateway.write(SWARMS, _swarm({"name": "z"}, {"name": "a", "parent": "z"}, {"name": "b", "parent": "z"}))
    await simulation.settle()
    for name in ("z", "a", "b"):
        simulation.delete_pod(f"s-{name}")
    await simulation.settle()
    rungs = [agent["status"]["restore"]["rung"] for agent in simulation.gateway.read_all(AGENTS)]
    assert rungs == ["Restore"] * 3


async def test_an_entry_that_is_removed_and_written_again_is_made_again() -> None:
    simulation = await _settled(_swarm({"name": "a"}, {"name": "b"}))
    simulation.gateway.write(SWARMS, _swarm({"name": "a"}))
    await simulation.settle()
    assert [obj["metadata"]["name"] for obj in simulation.gateway.read_all(AGENTS)] == ["s-a"]
    assert simulation.read(SWARMS, "s")["status"]["agents"]["progress"] == "1/1"
    simulation.gateway.write(SWARMS, _swarm({"name": "a"}, {"name": "b", "prompt": "anew"}))
    await simulation.settle()
    assert [prompt for _, prompt in simulation.sandboxes.asked].count("anew") == 1


@pytest.mark.parametrize("first", [run_agent_pass, run_swarm_pass])
@pytest.mark.parametrize("prompt", ["p", "HANG"])
async def test_an_agent_that_a_person_deleted_is_not_made_again(first: Pass, prompt: str) -> None:
    """Whichever of the two hears of it first."""
    simulation = await _settled(_swarm({"name": "a", "prompt": prompt}))
    uid = simulation.read(AGENTS, "s-a")["metadata"]["uid"]
    await simulation.gateway.delete(AGENTS, NAMESPACE, "s-a", uid=uid)
    await first(simulation.world, f"{NAMESPACE}/s" if first is run_swarm_pass else f"{NAMESPACE}/s-a")
    await simulation.settle()
    assert simulation.gateway.read_all(AGENTS) == ()
    assert len(simulation.sandboxes.asked) == 1
    await simulation.drivers.close()


async def test_the_sandbox_of_an_agent_whose_name_another_object_took_goes_with_its_turn() -> None:
    simulation = await _settled(_swarm({"name": "a", "prompt": "HANG"}))
    (former,) = simulation.sandboxes.pods.values()
    agent = simulation.read(AGENTS, "s-a")
    simulation.gateway.objects.remove(Ref(AGENTS, NAMESPACE, "s-a"))
    metadata = {key: agent["metadata"][key] for key in ("name", "namespace", "labels", "ownerReferences")}
    simulation.gateway.write(AGENTS, {"metadata": metadata, "spec": {**agent["spec"], "prompt": "anew"}})
    await run_agent_pass(simulation.world, f"{NAMESPACE}/s-a")
    assert former.memory.turns[1].state is TurnState.ABORTED
    await simulation.settle()
    await asyncio.sleep(2 * RETRY)  # whoever followed the former turn looks at what runs now
    await simulation.settle()
    assert [prompt for _, prompt in simulation.sandboxes.asked] == ["HANG", "anew"]
    await simulation.drivers.close()


@pytest.mark.behaviour("2.14")
async def test_a_clean_turn_that_no_checkpoint_kept_is_said_to_be_lost() -> None:
    simulation = await _settled(_swarm({"name": "a"}))
    await queue_prompt(simulation.world, f"{NAMESPACE}/s-a", "go on", "k")
    await simulation.settle()
    simulation.delete_pod("s-a")
    await simulation.settle()
    said = {c["type"]: c for c in simulation.read(AGENTS, "s-a")["status"]["conditions"]}["Interrupted"]
    assert (said["status"], said["reason"]) == ("True", "CleanTurnLost")
    assert said["message"].startswith("turn 2 is lost: it had ended cleanly, but its spec asks for no checkpoints")
    assert "came back blank" in said["message"]


async def test_what_survived_is_of_the_turn_that_was_cut() -> None:
    simulation = await _settled(_swarm({"name": "a"}))
    key = f"{NAMESPACE}/s-a"
    simulation.world.term.turns[key] = (1, Heard("TEXT OF TURN 1"))
    await queue_prompt(simulation.world, key, "HANG", "k")
    await simulation.settle()
    simulation.delete_pod("s-a")
    await simulation.settle()
    (cut,) = [row.body for row in simulation.stored.rows if isinstance(row.body, ev.AgentTurnInterrupted)]
    assert cut.text == ""


async def test_an_operator_that_cannot_append_says_so_on_the_agent() -> None:
    simulation = await _settled(_swarm({"name": "a"}))

    async def refuse(entries: object) -> list[ev.Row]:
        raise Denied("RecordTooLarge", "the record is too large")

    await queue_prompt(simulation.world, f"{NAMESPACE}/s-a", "go on", "k")
    simulation.ledger.append = refuse  # type: ignore[method-assign, assignment]
    await simulation.step()
    said = {c["type"]: c for c in simulation.read(AGENTS, "s-a")["status"]["conditions"]}["Stalled"]
    assert (said["status"], said["reason"]) == ("True", "RecordTooLarge")


@pytest.mark.parametrize("going", [False, True], ids=["drained", "with its namespace"])
async def test_nobody_waits_for_a_turn_whose_namespace_is_being_deleted(going: bool) -> None:
    simulation = await _settled(_swarm({"name": "a", "prompt": "HANG"}))
    if going:
        namespace = await simulation.gateway.get(NAMESPACES, "", NAMESPACE)
        await simulation.gateway.delete(NAMESPACES, "", NAMESPACE, uid=read_uid(namespace))
    simulation.kubelets.delete("s-a")
    simulation.world.store.put(PODS, simulation.read(PODS, "s-a-1"))
    facts, _ = await gather_agent(simulation.world, f"{NAMESPACE}/s-a")
    assert any(isinstance(action, AbortTurn) for action in decide_agent(facts).actions) is going
    await simulation.drivers.close()


async def test_a_turn_that_ends_while_a_pass_looks_settles_once() -> None:
    simulation = await _settled(_swarm({"name": "a", "prompt": "HANG"}))
    key = f"{NAMESPACE}/s-a"
    agent = simulation.ledger.state.agents[key]
    simulation.gateway.objects.remove(Ref(AGENTS, NAMESPACE, "s-a"))
    read = simulation.world.gateway.get

    async def read_late(kind: Resource, namespace: str, name: str) -> Json:
        if kind is AGENTS and not simulation.ledger.state.agents[key].handle.settled:
            cut = build_interruption(agent, SupervisionSpec(), End(EndKind.DISRUPTION, "Seen", "by its driver"))
            await simulation.ledger.append(cut)
        return await read(kind, namespace, name)

    simulation.world.gateway.get = read_late  # type: ignore[method-assign]
    await run_agent_pass(simulation.world, key)
    settled = [row.body for row in simulation.stored.rows if isinstance(row.body, ev.HandleSettled)]
    assert [one.turn for one in settled] == [1]
    assert simulation.ledger.state.agents[key].closed
    await simulation.drivers.close()


async def test_how_a_container_ended_is_waited_for_where_its_kubelet_is_slower_than_the_next_bridge() -> None:
    simulation = await _settled(_swarm({"name": "a", "prompt": "HANG"}))
    (sandbox,) = simulation.sandboxes.pods.values()
    sandbox.interrupt("the container of the agent ended in the middle of the turn")
    await simulation.settle()
    assert simulation.ledger.state.agents[f"{NAMESPACE}/s-a"].turn_running
    simulation.kubelets.kill("s-a", "OOMKilled")
    await asyncio.sleep(2 * KUBELET_LOOK)
    await simulation.settle()
    (cut,) = [row.body for row in simulation.stored.rows if isinstance(row.body, ev.AgentTurnInterrupted)]
    assert (cut.reason, cut.own_fault) == ("OOMKilled", True)
    await simulation.drivers.close()


async def test_an_agent_whose_image_was_mended_gets_another_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    async def pull_in_vain(raw: Json, pod: PodFacts) -> None:
        pass

    simulation = await _settled(_swarm({"name": "z"}))
    monkeypatch.setattr(simulation.kubelets, "_start", pull_in_vain)
    simulation.gateway.write(SWARMS, _swarm({"name": "z"}, {"name": "a", "sandbox": {"image": "wrong:1"}}))
    await simulation.run_for(1)
    assert not simulation.ledger.state.agents[f"{NAMESPACE}/s-a"].turn
    agent = simulation.read(AGENTS, "s-a")
    monkeypatch.undo()
    mended = {**agent["spec"], "sandbox": {"image": "right:1"}}
    simulation.gateway.write(AGENTS, {"metadata": agent["metadata"], "spec": mended})
    await simulation.settle()
    pods = sorted(pod["metadata"]["name"] for pod in simulation.gateway.read_all(PODS))
    assert pods == ["s-a-2", "s-z-1"]
    assert simulation.ledger.state.agents[f"{NAMESPACE}/s-a"].handle.result == "did: p"
    await simulation.drivers.close()


async def test_what_is_wrong_with_the_defaults_is_named_where_it_was_written() -> None:
    swarm = _swarm({"name": "a"})
    template = {"podTemplate": {"spec": {"containers": [{"name": "agent"}]}}}
    swarm["spec"]["defaults"] = {**MODEL, "sandbox": template}
    simulation = await _settled(swarm)
    said = {c["type"]: c for c in simulation.read(AGENTS, "s-a")["status"]["conditions"]}["Ready"]
    assert said["message"].startswith("spec.defaults.sandbox.podTemplate.spec.containers")
    assert "of the Swarm s: " in said["message"]
