"""The gateway over a server that is ill: hangs, throttles, forgets the token, is no API server at all."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import web

from alineod.clock import SystemClock
from alineod.errors import Denied, Unavailable
from alineod.kube.access import ClusterAccess
from alineod.kube.api import ApiGateway, ApiOptions, open_api
from alineod.kube.objects import AGENTS, Json
from tests.support.fakeapi import FakeApi, Obstacle, answer_once, demand_token, refuse, serve


@dataclass
class Bench:
    """A server, a gateway to it, and what the gateway told of its calls."""

    api: FakeApi
    gateway: ApiGateway
    token_file: Path
    codes: list[int] = field(default_factory=list)


@asynccontextmanager
async def opened(
    directory: Path,
    *obstacles: Obstacle,
    options: ApiOptions | None = None,
    remaining: Callable[[], float] = lambda: 60.0,
) -> AsyncIterator[Bench]:
    api, codes, token_file = FakeApi(), list[int](), directory / "token"
    api.obstacles.extend(obstacles)
    token_file.write_text("first")

    def observe(verb: str, resource: str, code: int, seconds: float) -> None:
        codes.append(code)

    async with serve(api) as server:
        access = ClusterAccess(server, token_file=token_file)
        async with open_api(access, SystemClock(), options=options, remaining=remaining, observe=observe) as gateway:
            yield Bench(api, gateway, token_file, codes)


def build_agent() -> Json:
    return {"metadata": {"name": "a", "namespace": "ns"}}


async def hang(request: web.Request) -> web.StreamResponse | None:
    await asyncio.Event().wait()
    return None


async def test_every_request_carries_the_token_of_the_file(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        await bench.gateway.create(AGENTS, build_agent())
        bench.token_file.write_text("second")
        await bench.gateway.get(AGENTS, "ns", "a")
    assert [request.token for request in bench.api.requests] == ["first", "second"]


async def test_a_token_replaced_in_between_is_read_again(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        bench.api.put(AGENTS, build_agent())

        async def rotate(request: web.Request) -> web.StreamResponse | None:
            bench.token_file.write_text("second")
            return None

        bench.api.obstacles.extend([rotate, demand_token(lambda: {"second"})])
        found = await asyncio.gather(*(bench.gateway.get(AGENTS, "ns", "a") for _ in range(50)))
    assert len(found) == 50
    assert set(bench.codes) == {401, 200}


async def test_a_token_that_is_refused_twice_is_refused(tmp_path: Path) -> None:
    async with opened(tmp_path, demand_token(lambda: {"other"})) as bench:
        with pytest.raises(Denied) as caught:
            await bench.gateway.get(AGENTS, "ns", "a")
    assert caught.value.reason == "Unauthorized"
    assert bench.codes == [401, 401]


@pytest.mark.parametrize("code", [429, 503])
async def test_a_server_that_names_a_time_is_asked_again(tmp_path: Path, code: int) -> None:
    patience = answer_once(*[lambda: refuse(code, headers={"Retry-After": "0.01"})] * 2)
    async with opened(tmp_path, patience) as bench:
        made = await bench.gateway.create(AGENTS, build_agent())
    assert made["metadata"]["name"] == "a"
    assert bench.codes == [code, code, 200]


@pytest.mark.parametrize(
    ("answer", "codes", "retry_after"),
    [
        (lambda: refuse(429), [429], None),
        (lambda: web.Response(status=429, text="Too many requests, please try again later."), [429], None),
        (lambda: refuse(503, headers={"Retry-After": "60"}), [503], 60.0),
        (lambda: refuse(429, headers={"Retry-After": "0.01"}), [429, 429, 429], 0.01),
        (lambda: refuse(500), [500], None),
        (lambda: refuse(504), [504], None),
    ],
)
async def test_a_server_that_is_not_well_is_told_with_its_wish(
    tmp_path: Path, answer: Callable[[], web.StreamResponse], codes: list[int], retry_after: float | None
) -> None:
    async with opened(tmp_path, answer_once(*[answer] * 9)) as bench:
        with pytest.raises(Unavailable) as caught:
            await bench.gateway.create(AGENTS, build_agent())
    assert (bench.codes, caught.value.retry_after) == (codes, retry_after)


async def test_a_server_that_hangs_is_left(tmp_path: Path) -> None:
    async with opened(tmp_path, hang, options=ApiOptions(call=0.05)) as bench:
        with pytest.raises(Unavailable, match=r"did not answer in time: GET /apis/alineo\.dev") as caught:
            await bench.gateway.get(AGENTS, "ns", "a")
    assert caught.value.reason == "Unreachable"
    assert bench.codes == [0]


async def test_no_call_outlives_the_lease(tmp_path: Path) -> None:
    left = 0.05
    async with opened(tmp_path, hang, remaining=lambda: left) as bench:
        with pytest.raises(Unavailable, match="did not answer in time"):
            await bench.gateway.get(AGENTS, "ns", "a")
        left = 0.0
        with pytest.raises(Unavailable) as caught:
            await bench.gateway.create(AGENTS, build_agent())
    assert caught.value.reason == "LeaseLost"
    assert bench.api.writes == []


async def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        pass
    access = ClusterAccess(bench.api.server)
    async with open_api(access, SystemClock()) as gateway:
        with pytest.raises(Unavailable, match="could not be reached"):
            await gateway.get(AGENTS, "ns", "a")


@pytest.mark.parametrize("text", ["<html>Sign in</html>", "[]", ""])
async def test_what_is_no_api_server_is_told(tmp_path: Path, text: str) -> None:
    async with opened(tmp_path, answer_once(lambda: web.Response(text=text))) as bench:
        with pytest.raises(Unavailable) as caught:
            await bench.gateway.get(AGENTS, "ns", "a")
    assert caught.value.reason == "BadAnswer"


async def test_no_redirect_is_followed_with_our_token(tmp_path: Path) -> None:
    away = answer_once(lambda: web.Response(status=302, headers={"Location": "/elsewhere"}))
    async with opened(tmp_path, away) as bench:
        with pytest.raises(Unavailable):
            await bench.gateway.get(AGENTS, "ns", "a")
    assert len(bench.api.requests) == 1
