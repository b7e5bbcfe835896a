"""Kopf over a server that breaks: what reaches the store, what a sweep mends, and when the process has to end."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from alineod.clock import SystemClock
from alineod.handlers import feed as feed_module
from alineod.handlers.feed import Feed, build_deliver, build_settings
from alineod.handlers.login import Login
from alineod.kube.access import ClusterAccess
from alineod.kube.api import open_api
from alineod.kube.objects import AGENTS, PODS, SWARMS, WATCHED, Json, Ref, Resource
from alineod.kube.store import Store
from alineod.kube.sweep import Sweep, SweepOptions, SweepReport
from alineod.metrics import Metrics
from tests.support.fakeapi import FakeApi, demand_token, refuse, serve

SWEEP = SweepOptions(settle=20.0, look=0.01)


@dataclass
class Bench:
    """A server, a feed from it, the store it fills, and why the process would have ended."""

    api: FakeApi
    access: ClusterAccess
    store: Store
    metrics: Metrics
    feed: Feed
    deaths: list[str]

    def read_names(self, resource: Resource) -> set[str]:
        return {obj["metadata"]["name"] for obj in self.store.find(resource)}

    def read_events(self, kind: str) -> float:
        return self.metrics.registry.get_sample_value("alineod_watch_events_total", {"kind": kind}) or 0.0

    async def sweep(self, namespaces: Iterable[str] = ()) -> SweepReport:
        async with open_api(self.access, SystemClock()) as gateway:
            sweep = Sweep(gateway, self.store, WATCHED, namespaces, SystemClock(), self.metrics, options=SWEEP)
            return await sweep.sweep()


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110  (what is waited for has no event)
            await asyncio.sleep(0.01)


@asynccontextmanager
async def feeding(
    directory: Path, api: FakeApi | None = None, namespaces: tuple[str, ...] = (), **watching: Any
) -> AsyncIterator[Bench]:
    api = api or FakeApi()
    (directory / "token").write_text("first")
    settings = build_settings(WATCHED)
    settings.networking.error_backoffs = (0.01, 0.02)
    settings.process.ultimate_exiting_timeout = None  # kopf would kill the process of the tests
    for name, value in watching.items():
        setattr(settings.watching, name, value)
    store, metrics, deaths = Store(), Metrics(), list[str]()
    async with serve(api) as server:
        access = ClusterAccess(server, token_file=directory / "token")
        deliver = build_deliver(store, metrics)
        login = Login(access, SystemClock().now, patience=0.5)
        feed = Feed(login, WATCHED, namespaces, deliver=deliver, die=deaths.append, settings=settings)
        feed.start()
        try:
            yield Bench(api, access, store, metrics, feed, deaths)
        finally:
            ended = await feed.stop(20)
            assert ended or deaths, "kopf does not end"  # one that had to die does not always come to its end


def build_object(name: str, **spec: Any) -> Json:
    return {"metadata": {"name": name}, "spec": spec}


async def test_what_was_there_and_what_comes_reaches_the_store(tmp_path: Path) -> None:
    api = FakeApi()
    old = api.put(AGENTS, build_object("old"))
    async with feeding(tmp_path, api) as bench:
        await until(lambda: api.count_watches("agents") and api.count_watches("pods") and api.count_watches("swarms"))
        api.put(SWARMS, build_object("new"))
        api.put(PODS, build_object("pod"))
        await until(lambda: bench.read_names(SWARMS) and bench.read_names(PODS) and bench.read_names(AGENTS))
        assert bench.store.get(Ref(AGENTS, "ns", "old")) == old
        api.put(AGENTS, build_object("old", a=1))
        await until(lambda: (bench.store.get(Ref(AGENTS, "ns", "old")) or {})["spec"] == {"a": 1})
        api.delete(AGENTS, "old")
        await until(lambda: not bench.read_names(AGENTS))
    assert bench.deaths == []


async def test_pods_are_asked_for_by_our_label_and_lists_come_in_pages(tmp_path: Path) -> None:
    api = FakeApi()
    for number in range(7):
        api.put(AGENTS, build_object(f"a{number}"))
    async with feeding(tmp_path, api, chunk_size=3) as bench:
        await until(lambda: len(bench.read_names(AGENTS)) == 7 and api.count_watches("pods"))
        asked = [request.query for request in api.requests if request.path == "/api/v1/pods"]
        assert {query["labelSelector"] for query in asked} == {"app.kubernetes.io/managed-by=alineod"}
        pages = [request.query for request in api.requests if request.path.endswith("/agents")]
        assert [query["continue"] for query in pages if "continue" in query] == ["3", "6"]


async def test_only_the_namespaces_named_are_watched(tmp_path: Path) -> None:
    api = FakeApi()
    api.put(AGENTS, build_object("mine"))
    api.put(AGENTS, {"metadata": {"name": "theirs", "namespace": "other"}})
    async with feeding(tmp_path, api, ("ns", "not-there")) as bench:
        await until(lambda: bench.read_names(AGENTS) and api.count_watches("agents") == 2)
        assert bench.read_names(AGENTS) == {"mine"}
        assert await bench.sweep(("ns", "not-there")) == SweepReport(0, 0)
    roots = {request.path for request in api.requests if request.path.endswith(("/agents", "/pods", "/swarms"))}
    assert all("/namespaces/ns/" in path or "/namespaces/not-there/" in path for path in roots)


async def test_an_object_deleted_in_a_gap_is_gone_after_a_sweep(tmp_path: Path) -> None:
    api = FakeApi()
    for name in ("ghost", "alive"):
        api.put(AGENTS, build_object(name))
    async with feeding(tmp_path, api) as bench:
        await until(lambda: api.count_watches("agents") and bench.read_names(AGENTS) == {"ghost", "alive"})
        api.silent = True
        api.delete(AGENTS, "ghost")
        api.forget()
        api.silent = False
        api.cut_watches()
        api.put(AGENTS, build_object("later"))
        await until(lambda: "later" in bench.read_names(AGENTS))
        report = await bench.sweep()
        assert bench.read_names(AGENTS) == {"alive", "later"}
        assert report == SweepReport(ghosts=1, missed=0)
    assert bench.deaths == []


async def test_a_watch_that_was_cut_goes_on_where_it_was(tmp_path: Path) -> None:
    async with feeding(tmp_path) as bench:
        await until(lambda: bench.api.count_watches("agents"))
        bench.api.silent = True
        bench.api.put(AGENTS, build_object("made-meanwhile"))
        bench.api.silent = False
        bench.api.cut_watches()
        await until(lambda: bench.read_names(AGENTS) == {"made-meanwhile"})
        assert (
            sum(request.path.endswith("/agents") and "watch" not in request.query for request in bench.api.requests)
            == 1
        )


async def test_a_history_that_was_forgotten_is_listed_anew(tmp_path: Path) -> None:
    async with feeding(tmp_path) as bench:
        await until(lambda: bench.api.count_watches("agents"))
        bench.api.silent = True
        bench.api.put(AGENTS, build_object("made-meanwhile"))
        bench.api.forget()
        bench.api.silent = False
        bench.api.cut_watches()
        await until(lambda: bench.read_names(AGENTS) == {"made-meanwhile"})
    assert bench.deaths == []


async def test_a_watch_that_fell_silent_is_begun_again(tmp_path: Path) -> None:
    async with feeding(tmp_path, inactivity_timeout=0.2) as bench:
        await until(lambda: bench.api.count_watches("agents"))
        bench.api.silent = True
        bench.api.put(AGENTS, build_object("unheard"))
        await until(lambda: bench.read_names(AGENTS) == {"unheard"})
    assert bench.deaths == []


async def test_an_error_in_the_stream_ends_the_process(tmp_path: Path) -> None:
    async with feeding(tmp_path) as bench:
        await until(lambda: bench.api.count_watches("agents"))
        bench.api.fail_watches(500)
        await until(lambda: bench.deaths)
    # Kopf ends with the error, or does not come to its end and is seen to have lost a watch.
    assert bench.deaths[0].startswith(("the watches failed", "a watch ended and kopf did not"))


@pytest.mark.parametrize(("code", "reason"), [(403, "Forbidden"), (404, "NotFound")])
async def test_a_list_that_is_refused_for_good_ends_the_process(tmp_path: Path, code: int, reason: str) -> None:
    async with feeding(tmp_path) as bench:
        await until(lambda: bench.api.count_watches("agents"))

        async def obstacle(request: web.Request) -> web.StreamResponse | None:
            return refuse(code, reason) if request.path.endswith("/agents") else None

        bench.api.obstacles.append(obstacle)
        bench.api.forget()
        bench.api.cut_watches()
        await until(lambda: bench.deaths)


async def test_kopf_names_its_watches_as_the_guard_counts_them(tmp_path: Path) -> None:
    async with feeding(tmp_path) as bench:
        await until(lambda: all(bench.api.count_watches(each.resource.plural) for each in WATCHED))
        loop = bench.feed._kopf_loop
        assert loop is not None
        names = [task.get_name() for task in asyncio.all_tasks(loop)]
        assert sum(name.startswith(feed_module.WATCH) for name in names) == len(WATCHED)


async def test_a_watch_that_ended_ends_the_process_even_if_kopf_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang(stop_flag: asyncio.Event, **_: Any) -> None:
        watch = asyncio.create_task(asyncio.sleep(0.2), name=f"{feed_module.WATCH}agents")
        await stop_flag.wait()
        await watch

    monkeypatch.setattr(feed_module.kopf, "operator", hang)
    monkeypatch.setattr(feed_module, "LOOK", 0.01)
    monkeypatch.setattr(feed_module, "GRACE", 0.1)
    async with feeding(tmp_path) as bench:
        await until(lambda: bench.deaths)
        assert bench.deaths == ["a watch ended and kopf did not"]


async def test_a_token_that_was_rotated_is_taken_from_its_file(tmp_path: Path) -> None:
    valid = {"first"}
    api = FakeApi()
    api.obstacles.append(demand_token(lambda: valid))
    async with feeding(tmp_path, api) as bench:
        await until(lambda: api.count_watches("agents"))
        (tmp_path / "token").write_text("second")
        valid.clear()
        valid.add("second")
        api.cut_watches()
        await until(lambda: any(request.token == "second" and "watch" in request.query for request in api.requests))
        api.put(AGENTS, build_object("after"))
        await until(lambda: bench.read_names(AGENTS) == {"after"})
        assert await bench.sweep() == SweepReport(0, 0)
    assert bench.deaths == []


async def test_a_token_that_nobody_accepts_ends_the_process(tmp_path: Path) -> None:
    api, valid = FakeApi(), {"first"}
    api.obstacles.append(demand_token(lambda: valid))
    async with feeding(tmp_path, api) as bench:
        await until(lambda: api.count_watches("agents"))
        valid.clear()
        api.cut_watches()
        await until(lambda: bench.deaths)
    assert "LoginError" in bench.deaths[0]


@pytest.mark.behaviour("11.19")
async def test_no_event_makes_it_write(tmp_path: Path) -> None:
    api = FakeApi()
    for number in range(300):
        api.put(AGENTS, build_object(f"a{number}"))
    async with feeding(tmp_path, api) as bench:
        await until(lambda: api.count_watches("agents") and len(bench.read_names(AGENTS)) == 300)
        for round_number in range(3):
            for number in range(300):
                api.put(AGENTS, build_object(f"a{number}", round=round_number, text="ünïcode" * 20))
        for number in range(300):
            api.delete(AGENTS, f"a{number}")
        await until(lambda: not bench.read_names(AGENTS))
        assert bench.read_events("agents") >= 600
    assert api.writes == []
    assert {request.method for request in api.requests} == {"GET"}


async def test_to_stop_is_not_to_die(tmp_path: Path) -> None:
    async with feeding(tmp_path) as bench:
        await until(lambda: bench.api.count_watches("agents"))
        assert await bench.feed.stop(20)
    assert bench.deaths == []
