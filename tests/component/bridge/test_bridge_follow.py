"""The operator's own follower on a real bridge with Pi: leaders come and go, journals are lost, turns are recorded."""

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from alineod.clock import SystemClock
from alineod.domain import events as ev
from alineod.domain.events import AnyBody, Entry
from alineod.domain.state import AgentState
from alineod.kube.memory import MemoryGateway
from alineod.kube.objects import PODS
from alineod.kube.store import Store
from alineod.ledger.memory import MemoryLedger
from alineod.podspec.context import PodContext
from alineod.reconcile.bridges import HttpBridges
from alineod.reconcile.drive import drive_turn
from alineod.reconcile.world import Release, Term, World
from alineod.wire.turns import BRIDGE_PORT
from tests.component.bridge.bridge_rig import Bridge, ScriptedModel, script

KEY, RUN, POD_UID = "research/survey-left", "research/survey", "uid-pod"
WAITS = {"tool": "bash", "args": {"command": "until [ -e go ]; do sleep 0.05; done"}}
SPEC = {"swarm": "survey", "prompt": "p", "harness": {"model": {"provider": "openai", "id": "scripted-1"}}}


class Operator:
    """Leaders over one ledger, and the sandbox at an address of its own."""

    def __init__(self, bridge: Bridge, ip: str, session: aiohttp.ClientSession) -> None:
        self.bridge, self.clock = bridge, SystemClock()
        self.ledger = MemoryLedger(self.clock)
        store = Store()
        status = {"phase": "Running", "podIP": ip, "containerStatuses": [{"name": "agent", "state": {"running": {}}}]}
        metadata = {"name": "survey-left-1", "namespace": "research", "uid": POD_UID}
        store.put(PODS, {"metadata": metadata, "status": status})
        self.world = World(
            gateway=MemoryGateway(self.clock), store=store, ledger=self.ledger, bucket=None,
            bridges=HttpBridges(session), clock=self.clock, pods=PodContext("a", "s", "Never", "http://o", 1),
            release=Release("default", "cluster", 1), wake=lambda ref: None, drive=lambda key, turn: None,
        )  # fmt: skip
        (bridge.control / "bridge-token").write_text(self.world.bridge_token(POD_UID))

    @property
    def agent(self) -> AgentState:
        return self.ledger.state.agents[KEY]

    async def append(self, *bodies: AnyBody) -> None:
        begun = self.ledger.acknowledged_seq
        await self.ledger.append(
            [Entry(id=f"{begun}/{n}", run=RUN, agent=KEY, body=body) for n, body in enumerate(bodies)]
        )

    async def start(self, turn: int, prompt: str) -> None:
        await self.append(ev.AgentTurnStarted(turn=turn, turn_id=f"id-{turn}", prompt=prompt, incarnation=1))

    def lead(self) -> "asyncio.Task[None]":
        """A new leader, who has heard nothing yet, follows the running turn."""
        world = replace(self.world, term=Term())
        assert self.agent.turn is not None
        return asyncio.create_task(drive_turn(world, KEY, self.agent.turn.number))

    async def follow(self) -> None:
        await asyncio.wait_for(self.lead(), 60)

    async def until(self, event: str) -> None:
        async with asyncio.timeout(60):
            while event not in await self.types():  # noqa: ASYNC110
                await asyncio.sleep(0.05)

    async def bodies(self) -> list[Any]:
        return [row.body for row in await self.ledger.read(agent=KEY)]

    async def types(self) -> list[str]:
        """The harness's events that were recorded."""
        return [body.type for body in await self.bodies() if isinstance(body, ev.HarnessEvent)]


@pytest.fixture
async def operator(make_bridge: Callable[..., Bridge], request: pytest.FixtureRequest) -> AsyncIterator[Operator]:
    ip = f"127.{sum(request.node.name.encode()) % 200 + 20}.7.5"
    bridge = make_bridge(ALINEO_BRIDGE_LISTEN=f"{ip}:{BRIDGE_PORT}")
    bridge.client.base_url = f"http://{ip}:{BRIDGE_PORT}"
    async with aiohttp.ClientSession() as session:
        operator = Operator(bridge, ip, session)
        bridge.client.headers["authorization"] = f"Bearer {operator.world.bridge_token(POD_UID)}"
        await asyncio.to_thread(bridge.start)
        spawned = ev.AgentSpawned(uid="uid-a", alias="left", spec=SPEC)
        await operator.append(spawned, ev.AgentProvisioned(pod="survey-left-1", uid=POD_UID, incarnation=1))
        yield operator


async def _leave_in_a_tool(operator: Operator, prompt: str) -> None:
    """A turn is in a tool, and the leader that followed it is gone."""
    await operator.start(1, prompt)
    leading = operator.lead()
    await operator.until("tool.started")
    leading.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await leading


@pytest.mark.behaviour("3.9", "3.11", "3.12")
async def test_a_turn_that_ends_while_nobody_leads_is_recorded_whole(operator: Operator, model: ScriptedModel) -> None:
    prompt = "while nobody leads " + script(WAITS, {"text": "it is done"})
    await _leave_in_a_tool(operator, prompt)
    before = operator.agent.journal_seq
    (operator.bridge.workspace / "go").touch()
    await asyncio.to_thread(operator.bridge.result, 1)
    assert operator.agent.journal_seq == before
    await operator.follow()
    recorded = [body.seq for body in await operator.bodies() if isinstance(body, ev.HarnessEvent)]
    assert recorded == list(range(1, operator.bridge.state()["journalSeq"] + 1))
    (ended,) = [body for body in await operator.bodies() if isinstance(body, ev.AgentTurnEnded)]
    assert ended.text == "it is done"
    assert operator.agent.interruption is None
    assert (
        sum(entry["users"][-1].startswith("while nobody leads") for entry in model.log()) == 2
    )  # before the tool, and after


@pytest.mark.behaviour("3.5", "3.18")
async def test_a_turn_whose_journal_is_lost_is_interrupted_and_the_next_one_runs(
    operator: Operator, model: ScriptedModel
) -> None:
    bridge, prompt = operator.bridge, "never twice " + script(WAITS, {"text": "it is done"})
    await _leave_in_a_tool(operator, prompt)
    asked = len(model.log())
    await asyncio.to_thread(bridge.kill)
    shutil.rmtree(bridge.control / "journal")
    (bridge.control / "begun-journal.json").unlink()
    await asyncio.to_thread(bridge.start)
    heard = operator.agent.journal_seq
    await operator.follow()
    (cut,) = [body for body in await operator.bodies() if isinstance(body, ev.AgentTurnInterrupted)]
    assert (cut.turn, cut.reason, cut.tools) == (1, "JournalLost", ["bash"])
    assert cut.usage.input_tokens > 0
    lost = [body for body in await operator.bodies() if isinstance(body, ev.HarnessEvent)][-1]
    assert (lost.type, lost.seq, lost.data["to"]) == ("journal.lost", heard + 1, heard)
    assert len(model.log()) == asked
    await operator.start(2, "go on")
    await operator.follow()
    assert operator.agent.last_clean_turn == 2


@pytest.mark.behaviour("3.18")
async def test_a_turn_whose_end_was_spoilt_before_anyone_read_it_is_not_followed_for_ever(operator: Operator) -> None:
    bridge = operator.bridge
    await _leave_in_a_tool(operator, "go" + script(WAITS, {"text": "it is done"}))
    (bridge.workspace / "go").touch()
    await asyncio.to_thread(bridge.result, 1)
    _spoil_end(bridge.control / "journal")
    await operator.follow()
    assert (await operator.types())[-2:] == ["journal.damaged", "journal.lost"]
    (cut,) = [body for body in await operator.bodies() if isinstance(body, ev.AgentTurnInterrupted)]
    assert (cut.reason, cut.tools) == ("JournalLost", ["bash"])


def _spoil_end(journal: Path) -> None:
    newest = sorted(journal.glob("*.jsonl"))[-1]
    *others, _ = newest.read_bytes().splitlines(keepends=True)
    newest.write_bytes(b"".join(others) + b"no record\n")
