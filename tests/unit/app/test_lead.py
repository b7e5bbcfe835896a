"""The end of a term: who acts stops first, then the lease goes, then everything that only takes time."""

import asyncio
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from alineod.app.serve import Switch
from alineod.app.term import lead
from alineod.kube.health import Health, Verdict, decide_readiness
from tests.support.manual_clock import ManualClock


class Elector:
    """Notes in `order` when the lease is given back."""

    is_alive, problem = True, ""

    def __init__(self, order: list[str]) -> None:
        self._order = order
        self.is_leader = True

    def compute_read_age(self) -> float:
        return 0.0

    def release(self) -> None:
        self.is_leader = False
        self._order.append("the lease is given back")


class Term:
    """Works until it is told to stop; what it still does then takes until `done`."""

    def __init__(self, order: list[str], failure: Exception | None = None) -> None:
        self._order, self._failure = order, failure
        self.stopping, self.done = asyncio.Event(), asyncio.Event()

    async def work(self, stopped: asyncio.Event, serve: Any) -> None:
        await serve()
        await stopped.wait()
        if self._failure is not None:
            raise self._failure

    async def stop(self) -> None:
        self.stopping.set()
        await self.done.wait()
        self._order.append("nothing acts any more")


async def answer(request: Request) -> Response:
    return PlainTextResponse("here")


async def hold(request: Request) -> Response:
    await asyncio.Event().wait()
    raise AssertionError


class World:
    """A leader that serves two paths, one of which holds its questions."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.order: list[str] = []
        self.term, self.elector = Term(self.order, failure), Elector(self.order)
        self.switch, self.stopped = Switch(Starlette()), asyncio.Event()
        self.health = Health(self.elector, ManualClock())
        settings = SimpleNamespace(instance="default")
        self.parts: Any = SimpleNamespace(
            health=self.health, switch=self.switch, elector=self.elector, settings=settings
        )

    async def serve(self) -> None:
        self.switch.turn_to(Starlette(routes=[Route("/", answer), Route("/held", hold)]))
        self.health.set_serving()

    def start(self) -> "asyncio.Task[None]":
        term: Any = self.term
        return asyncio.create_task(lead(self.parts, term, self.stopped, self.serve))

    async def ask(self, path: str = "/") -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(self.switch), base_url="http://it") as client:
            return await client.get(path)


async def test_the_lease_goes_when_nothing_acts_any_more_and_who_asks_is_told_to_come_again() -> None:
    world = World()
    leading = world.start()
    await asyncio.sleep(0)
    assert (await world.ask()).text == "here"
    held = asyncio.create_task(world.ask("/held"))
    await asyncio.sleep(0.01)
    world.stopped.set()
    await world.term.stopping.wait()
    refused = await world.ask()
    assert (refused.status_code, refused.json()["title"], refused.headers["retry-after"]) == (503, "NotLeader", "1")
    assert decide_readiness(world.health.read_facts()) == Verdict(False, "Leading, but about to end.")
    assert (await world.ask("/v1/health")).json()["phase"] == "stopping"
    assert (world.order, held.done()) == ([], False)
    world.term.done.set()
    await leading
    assert world.order == ["nothing acts any more", "the lease is given back"]
    async with asyncio.timeout(20):
        assert (await held).status_code == 503


async def test_a_term_that_fails_gives_the_lease_back_too() -> None:
    world = World(ValueError("a bug"))
    leading = world.start()
    world.stopped.set()
    world.term.done.set()
    with pytest.raises(ValueError, match="a bug"):
        await leading
    assert world.order == ["nothing acts any more", "the lease is given back"]
