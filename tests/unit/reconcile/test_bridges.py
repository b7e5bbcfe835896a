"""Calls to a sandbox end with the lease: nothing is handed over by who leads no more."""

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from alineod.domain.facts import PodFacts, PodPhase
from alineod.errors import Refused, Unavailable
from alineod.reconcile import bridges as module
from alineod.reconcile.bridges import HttpBridges
from alineod.wire.base import encode
from alineod.wire.turns import BridgeReason, TurnAccepted, TurnRequest, TurnState

REQUEST = TurnRequest(turn=1, turn_id="t", prompt="p")


@pytest.fixture
async def heard(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[str]]:
    """What a bridge hears; its address is that of every pod."""
    requests = list[str]()

    async def answer(request: web.Request) -> web.Response:
        requests.append(request.path)
        return web.Response(body=encode(TurnAccepted(turn=1, turn_id="t", state=TurnState.RUNNING)))

    app = web.Application()
    app.router.add_post("/v1/turns", answer)
    async with TestServer(app) as server:
        monkeypatch.setattr(module, "_url", lambda pod, port, path: str(server.make_url(path)))
        yield requests


@pytest.mark.parametrize("left", [0.0, -60.0])
async def test_a_turn_is_handed_over_only_by_who_leads(heard: list[str], left: float) -> None:
    remaining, pod = [10.0], PodFacts("n", "u", "o", 1, PodPhase.RUNNING, 0.0)
    async with aiohttp.ClientSession() as session:
        bridges = HttpBridges(session, lambda: remaining[0])
        await bridges.start_turn(pod, "token", REQUEST)  # and the connection stays open
        remaining[0] = left
        with pytest.raises(Unavailable) as caught:
            await bridges.start_turn(pod, "token", REQUEST)
    assert caught.value.reason == "LeaseLost"
    assert heard == ["/v1/turns"]


@pytest.mark.parametrize(
    ("status", "said", "reason"),
    [
        (401, BridgeReason.LOCKED, "BridgeTokenLost"),
        (401, BridgeReason.UNAUTHORIZED, "BridgeDenied"),
        (401, "", "BridgeRefused"),  # somebody between us says so
        (403, BridgeReason.UNAUTHORIZED, "BridgeRefused"),
    ],
)
async def test_a_sandbox_that_lets_nobody_in_and_one_that_does_not_know_us_are_told_apart(
    monkeypatch: pytest.MonkeyPatch, status: int, said: str, reason: str
) -> None:
    async def refuse(request: web.Request) -> web.Response:
        return web.json_response({"reason": said, "detail": "why not"} if said else [], status=status)

    app = web.Application()
    app.router.add_get("/v1/state", refuse)
    pod = PodFacts("n", "u", "o", 1, PodPhase.RUNNING, 0.0)
    async with TestServer(app) as server, aiohttp.ClientSession() as session:
        monkeypatch.setattr(module, "_url", lambda pod, port, path: str(server.make_url(path)))
        with pytest.raises(Refused, match="why not" if said else "HTTP 401") as caught:
            await HttpBridges(session).read_state(pod, "token")
    assert caught.value.reason == reason


async def test_a_sandbox_that_hangs_is_not_waited_for_as_long_as_one_that_has_to_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "STATE_SECONDS", 0.05)

    async def hang(request: web.Request) -> web.Response:
        await asyncio.sleep(3600)
        raise AssertionError

    app = web.Application()
    app.router.add_get("/v1/state", hang)
    pod = PodFacts("n", "u", "o", 1, PodPhase.RUNNING, 0.0)
    async with TestServer(app) as server, aiohttp.ClientSession() as session, asyncio.timeout(module.CALL_SECONDS / 2):
        monkeypatch.setattr(module, "_url", lambda pod, port, path: str(server.make_url(path)))
        with pytest.raises(Unavailable, match="nothing answers"):
            await HttpBridges(session).read_state(pod, "token")
