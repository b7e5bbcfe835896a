"""The API serves when there is an answer for every agent of before the term; sandboxes are answered from the start."""

import asyncio
import logging
from typing import Any

import pytest

from alineod.app.reconnect import wait_reconnected
from alineod.domain import events as ev
from alineod.errors import Unavailable
from alineod.kube.gateway import Identity
from alineod.kube.objects import PODS, SWARMS, Json, Ref, Resource
from alineod.reconcile.reconnect import Reconnection
from tests.unit.app.leading import Hanging, Leading
from tests.unit.reconcile.simulation import NAMESPACE, Simulation

RESULT = f"/v1/agents/{NAMESPACE}/survey-a/result"
MANY = 33  # sandboxes that hang; one more than the queue once had workers


def build_swarm(*names: str) -> Json:
    return {
        "metadata": {"name": "survey", "namespace": NAMESPACE},
        "spec": {
            "defaults": {"harness": {"model": {"provider": "openai", "id": "m"}}},
            "agents": [{"name": name, "prompt": "p"} for name in names],
        },
    }


async def live(*names: str) -> Simulation:
    """Agents that are done, each with its sandbox, and one person."""
    simulation = Simulation()
    simulation.gateway.tokens["ada"] = Identity("ada", audiences=("alineod",))
    simulation.gateway.write(SWARMS, build_swarm(*names))
    await simulation.settle()
    return simulation


@pytest.mark.behaviour("5.18", "5.19")
async def test_people_are_answered_when_every_agent_is_reconnected_and_sandboxes_before() -> None:
    simulation = await live("a", "b", "slow")
    bridges = Hanging(simulation.sandboxes, "survey-slow-1")
    leader = Leading(simulation, bridges)
    async with leader.running():
        health = await leader.wait_for(reconnected=2)
        assert (health["phase"], health["toReconnect"]) == ("reconnecting", 1)
        assert leader.opened.is_set()
        refused = await leader.ask("GET", RESULT, "ada")
        assert (refused.status_code, refused.json()["title"]) == (503, "Reconnecting")
        bridges.let()
        health = await leader.wait_for(phase="serving")
        assert (health["reconnected"], health["toReconnect"]) == (3, 0)
        assert (await leader.ask("GET", RESULT, "ada")).json()["result"] == "did: p"
    rungs = [row.body.rung for row in simulation.stored.rows if isinstance(row.body, ev.AgentRestored)]
    assert rungs == [ev.Rung.REATTACH] * 3


@pytest.mark.behaviour("5.18")
async def test_a_restore_is_no_reason_to_wait_and_its_sandbox_is_answered_during_the_reconnection() -> None:
    """Else the API would wait for the restore, and the restore's container for the API."""
    simulation = await live("a", "slow")
    simulation.delete_pod("survey-a")
    bridges = Hanging(simulation.sandboxes, "survey-slow-1")
    leader = Leading(simulation, bridges)
    async with leader.running():
        await leader.wait_for(phase="reconnecting", reconnected=1, toReconnect=1)
        pod = simulation.gateway.objects.read(Ref(PODS, NAMESPACE, "survey-a-2"))["metadata"]["uid"]
        extra = {"authentication.kubernetes.io/pod-uid": (pod,)}
        simulation.gateway.tokens["pod"] = Identity("sandbox", extra=extra, audiences=("alineod",))
        start = await leader.ask("POST", "/v1/sandbox/start", "pod", {"incarnation": 2})
        assert start.status_code == 200, start.text
        assert (await leader.read_health())["phase"] == "reconnecting"
        bridges.let()
        await leader.wait_for(phase="serving")
        assert leader.ledger.state.agents[f"{NAMESPACE}/survey-a"].restored is None  # it is still on its way


async def test_sandboxes_that_hang_keep_no_other_waiting() -> None:
    silent = [f"a{number:02d}" for number in range(MANY)]
    simulation = await live(*silent, "z")
    bridges = Hanging(simulation.sandboxes, *(f"survey-{name}-1" for name in silent))
    leader = Leading(simulation, bridges)
    async with leader.running():
        await leader.wait_for(reconnected=1, toReconnect=MANY)
        assert len(bridges.asked) == MANY + 1
        bridges.let()
        await leader.wait_for(phase="serving")


async def test_a_bridge_that_is_out_of_reach_is_asked_twice_and_then_waited_for_no_more() -> None:
    simulation = await live("a", "b")
    for raw in simulation.gateway.read_all(PODS):
        simulation.sandboxes.pods[raw["metadata"]["uid"]].gone = raw["metadata"]["name"] == "survey-a-1"
    bridges = Hanging(simulation.sandboxes)
    leader = Leading(simulation, bridges)
    async with leader.running():
        await leader.wait_for(phase="serving", reconnected=2)
        assert bridges.asked.count("survey-a-1") >= 2


class Refusing:
    """An API server that makes no pods until it is let."""

    def __init__(self, gateway: Any) -> None:
        self._gateway = gateway
        self.asked, self.free = asyncio.Event(), asyncio.Event()

    async def create(self, resource: Resource, body: Json, **named: Any) -> Json:
        if resource is PODS:
            self.asked.set()
            await self.free.wait()
        made: Json = await self._gateway.create(resource, body, **named)
        return made

    def __getattr__(self, name: str) -> Any:
        return getattr(self._gateway, name)


@pytest.mark.behaviour("5.18")
async def test_a_spawn_is_taken_up_behind_the_api(monkeypatch: pytest.MonkeyPatch) -> None:
    simulation = Simulation()
    with monkeypatch.context() as patch:
        make = simulation.gateway.create

        async def refuse(resource: Resource, body: Json, **named: Any) -> Json:
            if resource is PODS and body["metadata"]["name"] == "survey-b-1":
                raise Unavailable("ApiUnreachable", "not now")
            return await make(resource, body, **named)

        patch.setattr(simulation.gateway, "create", refuse)
        simulation.gateway.write(SWARMS, build_swarm("a", "b"))
        for _ in range(20):
            await simulation.step()
    held = Refusing(simulation.gateway)
    leader = Leading(simulation, Hanging(simulation.sandboxes), held)
    async with leader.running():
        async with asyncio.timeout(60):
            await held.asked.wait()
        health = await leader.wait_for(phase="serving")
        assert (health["reconnected"], health["toReconnect"]) == (1, 0)
        assert leader.ledger.state.agents[f"{NAMESPACE}/survey-b"].pod is None
        held.free.set()
        async with asyncio.timeout(60):
            while leader.ledger.state.agents[f"{NAMESPACE}/survey-b"].pod is None:  # noqa: ASYNC110  (no one tells)
                await asyncio.sleep(0.01)


async def test_without_agents_nothing_is_waited_for() -> None:
    simulation = Simulation()
    leader = Leading(simulation, Hanging(simulation.sandboxes))
    async with leader.running():
        await leader.wait_for(phase="serving")


async def test_nothing_is_waited_for_without_end(caplog: pytest.LogCaptureFixture) -> None:
    reconnection = Reconnection()
    reconnection.begin({"research/survey-a", "research/survey-b"})
    reconnection.answer("research/survey-b")
    with caplog.at_level(logging.WARNING):
        await wait_reconnected(reconnection, 0.01)
    assert caplog.messages == ["1 agents are not reconnected after 0.01 s: research/survey-a"]


async def test_nothing_is_kept_of_a_pod_that_is_gone() -> None:
    simulation = await live("a")
    leader = Leading(simulation, Hanging(simulation.sandboxes))
    async with leader.running():
        await leader.wait_for(phase="serving")
        memory = leader.memory
        kept = (memory.heard, memory.errors, memory.silences, memory.started, memory.start_waits)
        assert any(kept)
        leader.lose("survey-a-1")
        assert not any(kept)
