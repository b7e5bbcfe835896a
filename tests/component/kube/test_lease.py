"""Electors over a Lease behind real HTTP: a server on loopback, and a real API server."""

import asyncio
import threading
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import pytest
from aiohttp import web

from alineod.clock import SystemClock
from alineod.errors import Conflict, Denied, Unavailable
from alineod.kube.access import ClusterAccess, read_kubeconfig
from alineod.kube.elector import Elector
from alineod.kube.lease import LeaseRecord, LeaseTiming
from alineod.kube.lease_client import LeaseClient
from alineod.kube.lease_watch import LeaseWatch
from tests.support.fakeapi import FakeApi, answer_once, refuse, serve

FAST = LeaseTiming(duration=4.0, renew_deadline=3.0, retry=0.1)
# A standby with these looks again when the test is long over.
SLOW = LeaseTiming(duration=9000.0, renew_deadline=8000.0, retry=1000.0)


@dataclass
class Server:
    """Where a Lease can be kept; `api` is None for a real one."""

    access: ClusterAccess
    name: str
    api: FakeApi | None = None

    def build_client(self) -> LeaseClient:
        return LeaseClient(self.access, SystemClock(), "default", self.name)

    def build_watch(self) -> LeaseWatch:
        return LeaseWatch(self.access, SystemClock(), "default", self.name)

    def write(self, over: LeaseRecord | None, holder: str) -> LeaseRecord:
        """As someone else would, whose connection is closed at once."""
        client = self.build_client()
        try:
            version, uid = (over.version, over.uid) if over is not None else ("", "")
            return client.write(LeaseRecord(holder, 15, 1, version, uid), SystemClock().now(), 5)
        finally:
            client.close()


@pytest.fixture(params=["loopback", "cluster"])
async def server(request: pytest.FixtureRequest) -> AsyncIterator[Server]:
    name = f"alineod-{uuid.uuid4().hex[:8]}"
    if request.param == "cluster":
        yield Server(read_kubeconfig(request.getfixturevalue("kubeconfig")), name)
        return
    api = FakeApi()
    async with serve(api) as address:
        yield Server(ClusterAccess(address, token="t"), name, api)


@dataclass
class Contender:
    """An elector over its own connection, and what became of it."""

    elector: Elector
    client: LeaseClient
    acquired: threading.Event = field(default_factory=threading.Event)
    epochs: list[int] = field(default_factory=list)
    deaths: list[str] = field(default_factory=list)

    async def stop(self) -> None:
        await asyncio.to_thread(self.elector.release)
        self.client.close()


def start_contender(server: Server, name: str, timing: LeaseTiming = FAST) -> Contender:
    client, epochs, deaths, acquired = server.build_client(), list[int](), list[str](), threading.Event()

    def on_acquired(epoch: int) -> None:
        epochs.append(epoch)
        acquired.set()

    watch = server.build_watch()
    elector = Elector(client, watch, name, die=deaths.append, on_acquired=on_acquired, timing=timing)
    elector.start()
    return Contender(elector, client, acquired, epochs, deaths)


async def wait(event: threading.Event) -> None:
    assert await asyncio.to_thread(event.wait, 30)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110  (what is waited for has no event)
            await asyncio.sleep(0.01)


async def test_the_lease_is_made_read_and_replaced_under_preconditions(server: Server) -> None:
    def use() -> None:
        client, now = server.build_client(), SystemClock().now()
        assert client.read(5) is None
        made = client.write(LeaseRecord("me", 15, 1, ""), now, 5)
        assert (made.holder, made.epoch, made.duration) == ("me", 1, 15)
        assert client.read(5) == made
        with pytest.raises(Conflict):
            client.write(LeaseRecord("other", 15, 2, ""), now, 5)
        again = client.write(LeaseRecord("me", 15, 1, made.version, made.uid), now, 5)
        with pytest.raises(Conflict):
            client.write(LeaseRecord("other", 15, 2, made.version, made.uid), now, 5)
        assert client.read(5) == again
        client.close()

    await asyncio.to_thread(use)


async def test_leadership_goes_on_from_hand_to_hand_and_each_epoch_once(server: Server) -> None:
    first = start_contender(server, "first")
    await wait(first.acquired)
    second = start_contender(server, "second")
    await until(lambda: second.elector.compute_read_age() < 30)
    assert (second.elector.is_leader, first.elector.is_leader) == (False, True)
    await first.stop()
    await wait(second.acquired)
    assert await asyncio.to_thread(second.elector.raise_epoch, 38, 20.0) == 38
    await second.stop()
    third = start_contender(server, "third")
    await wait(third.acquired)
    await third.stop()
    assert (first.epochs, second.epochs, third.epochs) == ([1], [2], [39])
    assert first.deaths == second.deaths == third.deaths == []


async def test_a_released_lease_is_taken_by_a_standby_that_does_not_look(server: Server) -> None:
    first = start_contender(server, "first", SLOW)
    await wait(first.acquired)
    second = start_contender(server, "second", SLOW)
    await until(lambda: second.elector.compute_read_age() < 30)
    assert not second.elector.is_leader
    await first.stop()
    await wait(second.acquired)
    assert second.epochs == [2]
    await second.stop()


async def test_a_container_that_is_started_again_takes_its_pods_lease_back(server: Server) -> None:
    first = start_contender(server, "pod_uid_first", SLOW)
    await wait(first.acquired)
    second = start_contender(server, "pod_uid_second", SLOW)
    await wait(second.acquired)
    assert second.epochs == [2]
    await first.stop()
    assert second.elector.is_leader
    await second.stop()


async def test_a_watch_tells_of_every_change_but_of_what_is_known(server: Server) -> None:
    def use() -> None:
        watch = server.build_watch()
        made = server.write(None, "me")
        again = server.write(made, "me")
        last = server.write(again, "other")
        watch.wait(made, 30)
        assert watch._stream is not None
        watch.wait(last, 0.5)
        assert watch._stream is None  # it was silent to the end: the change that came then was the known one

    await asyncio.to_thread(use)


async def test_a_watch_that_was_silent_is_opened_again(server: Server) -> None:
    def use() -> None:
        watch = server.build_watch()
        made = server.write(None, "me")
        watch.wait(made, 0.2)
        server.write(made, "other")
        watch.wait(made, 30)
        watch.close()

    await asyncio.to_thread(use)


async def test_who_waits_is_told_to_stop_from_another_thread(server: Server) -> None:
    made = await asyncio.to_thread(server.write, None, "me")
    watch = server.build_watch()
    waiting = asyncio.ensure_future(asyncio.to_thread(watch.wait, made, 9000))
    await until(lambda: watch._stream is not None)
    watch.stop()
    async with asyncio.timeout(30):
        await asyncio.gather(waiting, return_exceptions=True)
        await asyncio.to_thread(watch.wait, made, 9000)
    watch.close()


async def test_a_watch_that_cannot_be_is_said_and_the_lease_is_looked_at_instead() -> None:
    api = FakeApi()

    async def refuse_watches(request: web.Request) -> web.StreamResponse | None:
        return refuse(403, "Forbidden") if request.query.get("watch") else None

    async with serve(api) as address:
        server = Server(ClusterAccess(address, token="t"), "l", api)
        api.obstacles.append(refuse_watches)
        made = await asyncio.to_thread(server.write, None, "other")
        with pytest.raises(Denied):
            await asyncio.to_thread(server.build_watch().wait, made, 30)
        standby = start_contender(server, "standby")
        await until(lambda: sum(bool(request.query.get("watch")) for request in api.requests) > 3)
        await asyncio.to_thread(server.write, made, "")
        await wait(standby.acquired)
        await standby.stop()


@pytest.mark.parametrize("how", ["cut", "expired"])
async def test_a_stream_that_breaks_before_it_told_anything_is_no_watch(how: str) -> None:
    api = FakeApi()
    async with serve(api) as address:
        server = Server(ClusterAccess(address, token="t"), "l", api)
        made = await asyncio.to_thread(server.write, None, "me")
        watch = server.build_watch()
        waiting = asyncio.ensure_future(asyncio.to_thread(watch.wait, made, 30))
        await until(lambda: api.count_watches("leases") == 1)
        api.cut_watches() if how == "cut" else api.fail_watches(410)
        with pytest.raises((Unavailable, Conflict)):
            await waiting
        again = await asyncio.to_thread(server.write, made, "me")
        await asyncio.to_thread(watch.wait, made, 30)
        ended = asyncio.ensure_future(asyncio.to_thread(watch.wait, again, 30))
        await until(lambda: api.count_watches("leases") == 1)
        api.cut_watches()
        await ended
        watch.close()
    with pytest.raises(Unavailable):
        await asyncio.to_thread(watch.wait, again, 30)


async def test_a_connection_closed_in_idleness_is_opened_again(server: Server) -> None:
    def use() -> None:
        client = server.build_client()
        assert client.read(5) is None
        connection = client._connection
        assert connection is not None
        assert connection.sock is not None
        connection.sock.shutdown(2)
        assert client.read(5) is None
        client.close()

    await asyncio.to_thread(use)


async def test_a_server_that_is_ill_is_told_in_our_words() -> None:
    api = FakeApi()

    async def hang(request: web.Request) -> web.StreamResponse | None:
        await asyncio.Event().wait()
        return None

    async with serve(api) as address:
        client = LeaseClient(ClusterAccess(address, token="t"), SystemClock(), "ns", "l")
        api.obstacles.append(
            answer_once(lambda: refuse(503, headers={"Retry-After": "7"}), lambda: web.Response(text="<"))
        )
        with pytest.raises(Unavailable) as caught:
            await asyncio.to_thread(client.read, 5)
        assert caught.value.retry_after == 7.0
        with pytest.raises(Unavailable):
            await asyncio.to_thread(client.read, 5)
        api.obstacles.append(hang)
        with pytest.raises(Unavailable, match="did not answer in time"):
            await asyncio.to_thread(client.read, 0.05)
    with pytest.raises(Unavailable, match="could not be reached"):
        await asyncio.to_thread(client.read, 5)
