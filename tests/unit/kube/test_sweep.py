"""What a sweep finds, against a cluster in memory whose watches are the test's own."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from alineod.clock import SystemClock
from alineod.errors import Conflict, Denied, Unavailable
from alineod.kube.gateway import Page
from alineod.kube.memory import Call, MemoryGateway, Moment
from alineod.kube.objects import AGENTS, MANAGED_BY, MANAGER, PODS, WATCHED, Json, Ref, read_ref, read_uid
from alineod.kube.store import Change, Store
from alineod.kube.sweep import PUTS_AT_ONCE, Sweep, SweepOptions, SweepReport, run_resync
from alineod.metrics import Metrics

AT_ONCE = SweepOptions(period=0.01, settle=0.0, look=0.001)


class Bench:
    """A cluster, a store that nobody feeds, and a sweep between them."""

    def __init__(self, *, namespaces: tuple[str, ...] = (), options: SweepOptions = AT_ONCE) -> None:
        self.cluster = MemoryGateway(SystemClock(), namespaces=("ns", "other"))
        self.store, self.metrics, self.changes = Store(), Metrics(), list[Change]()
        self.store.listen(self.changes.append)
        self.sweep = Sweep(self.cluster, self.store, WATCHED, namespaces, SystemClock(), self.metrics, options=options)

    def make(self, name: str, namespace: str = "ns") -> Json:
        return self.cluster.write(AGENTS, {"metadata": {"name": name, "namespace": namespace}})

    def make_pod(self, name: str, **labels: str) -> Json:
        return self.cluster.write(PODS, {"metadata": {"name": name, "namespace": "ns", "labels": labels}})

    def count(self, name: str, kind: str = "agents") -> float:
        return self.metrics.registry.get_sample_value(f"alineod_sweep_{name}_total", {"kind": kind}) or 0.0


async def test_an_object_that_vanished_in_a_gap_leaves_the_store_and_is_looked_at() -> None:
    bench = Bench()
    ghost, alive = bench.make("ghost"), bench.make("alive")
    bench.store.put(AGENTS, ghost)
    bench.store.put(AGENTS, alive)
    bench.cluster.remove(read_ref(AGENTS, ghost))
    bench.changes.clear()
    assert await bench.sweep.sweep() == SweepReport(ghosts=1, missed=0)
    assert [(change.ref.name, change.after) for change in bench.changes] == [("ghost", None)]
    assert (bench.count("ghosts"), bench.count("missed")) == (1.0, 0.0)
    assert not bench.store.put(AGENTS, ghost)


async def test_another_incarnation_under_the_name_is_a_ghost_and_a_find() -> None:
    bench = Bench()
    old = bench.make("a")
    bench.store.put(AGENTS, old)
    bench.cluster.remove(read_ref(AGENTS, old))
    new = bench.make("a")
    assert await bench.sweep.sweep() == SweepReport(ghosts=1, missed=1)
    kept = bench.store.get(read_ref(AGENTS, new))
    assert kept is not None
    assert read_uid(kept) == read_uid(new)


async def test_an_object_no_watch_brought_is_fetched() -> None:
    bench = Bench()
    known = bench.make("known")
    bench.store.put(AGENTS, known)
    changed = bench.cluster.write(AGENTS, {"metadata": {"name": "known", "namespace": "ns"}, "spec": {"a": 1}})
    bench.make("unknown")
    assert await bench.sweep.sweep() == SweepReport(ghosts=0, missed=2)
    assert bench.store.get(read_ref(AGENTS, known)) == changed
    assert bench.store.count(AGENTS) == 2
    assert await bench.sweep.sweep() == SweepReport(ghosts=0, missed=0)


async def test_watches_are_given_time_to_bring_what_was_listed() -> None:
    bench = Bench(options=SweepOptions(settle=30.0, look=0.001))
    made = bench.make("slow")
    sweeping = asyncio.create_task(bench.sweep.sweep())
    await asyncio.sleep(0.01)
    assert not sweeping.done()
    bench.store.put(AGENTS, made)
    assert await sweeping == SweepReport(ghosts=0, missed=0)


async def test_pods_of_others_are_not_ours_to_see() -> None:
    bench = Bench()
    bench.make_pod("theirs")
    ours = bench.make_pod("ours", **{MANAGED_BY: MANAGER})
    await bench.sweep.sweep()
    assert bench.store.read_refs(PODS) == {read_ref(PODS, ours): ours}


async def test_only_the_namespaces_that_are_watched_are_compared() -> None:
    bench = Bench(namespaces=("ns",))
    bench.make("a", "other")
    bench.make("b", "ns")
    assert await bench.sweep.sweep() == SweepReport(ghosts=0, missed=1)


async def test_an_object_made_while_the_list_was_under_way_is_no_ghost() -> None:
    bench = Bench()

    def hook(call: Call, moment: Moment) -> None:
        if moment is Moment.AFTER and call.target == str(AGENTS):
            bench.cluster.hook = lambda call, moment: None
            bench.store.put(AGENTS, bench.make("young"))

    bench.cluster.hook = hook
    assert await bench.sweep.sweep() == SweepReport(ghosts=0, missed=0)
    assert bench.store.get(Ref(AGENTS, "ns", "young")) is not None


async def test_an_object_that_went_after_the_list_is_not_brought_back() -> None:
    bench = Bench()
    made = bench.make("brief")

    def hook(call: Call, moment: Moment) -> None:
        if moment is Moment.BEFORE and call.verb == "get":
            bench.cluster.remove(read_ref(AGENTS, made))

    bench.cluster.hook = hook
    assert await bench.sweep.sweep() == SweepReport(ghosts=0, missed=0)


@pytest.mark.parametrize(
    "error", [Unavailable("Timeout", "slow"), Denied("Forbidden", "no"), Conflict("Conflict", "x")]
)
async def test_nothing_is_concluded_from_a_list_that_failed(error: Exception) -> None:
    bench = Bench()
    bench.store.put(AGENTS, bench.make("a"))

    def hook(call: Call, moment: Moment) -> None:
        if call.verb == "list" and call.target == str(AGENTS):
            raise error

    bench.cluster.hook = hook
    with pytest.raises(type(error)):
        await bench.sweep.sweep()
    assert bench.store.count(AGENTS) == 1


async def test_a_list_that_expired_midway_is_begun_again(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    bench.store.put(AGENTS, bench.make("a"))
    whole: Callable[..., Awaitable[Page]] = bench.cluster.list_page
    asked = []

    async def list_page(*args: Any, **options: Any) -> Page:
        asked.append(options.get("continuation"))
        if len(asked) == 1:
            return Page((), "1", "more")
        if options.get("continuation"):
            raise Conflict("Expired", "too old")
        return await whole(*args, **options)

    monkeypatch.setattr(bench.cluster, "list_page", list_page)
    assert await bench.sweep.sweep() == SweepReport(ghosts=0, missed=0)
    assert asked[:3] == ["", "more", ""]


async def test_everything_is_read_before_any_watch_has_begun() -> None:
    bench = Bench(options=SweepOptions(settle=9000.0))
    made, pod = bench.make("a"), bench.make_pod("ours", **{MANAGED_BY: MANAGER})
    bench.make_pod("theirs")
    async with asyncio.timeout(20):
        await bench.sweep.look()
    assert bench.store.get(read_ref(AGENTS, made)) == made
    assert bench.store.read_refs(PODS) == {read_ref(PODS, pod): pod}
    assert not bench.store.put(AGENTS, made)


async def test_others_have_their_turn_on_the_loop_while_everything_is_read() -> None:
    bench, turns, puts = Bench(), 0, list[int]()
    for number in range(2 * PUTS_AT_ONCE + 1):
        bench.make(f"a{number}")

    async def take_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    bench.store.listen(lambda change: puts.append(turns))
    other = asyncio.create_task(take_turns())
    await bench.sweep.look()
    other.cancel()
    assert len(puts) == 2 * PUTS_AT_ONCE + 1
    assert max(puts.count(turn) for turn in puts) == PUTS_AT_ONCE


async def test_what_went_between_the_first_list_and_the_watches_is_found_by_the_first_sweep() -> None:
    bench, gone = Bench(), asyncio.Event()
    made = bench.make("brief")
    bench.store.listen(lambda change: gone.set() if change.after is None else None)
    await bench.sweep.look()
    bench.cluster.remove(read_ref(AGENTS, made))
    running = asyncio.create_task(bench.sweep.run())
    async with asyncio.timeout(20):
        await gone.wait()
    running.cancel()
    assert bench.count("ghosts") == 1.0


async def test_a_list_or_a_sweep_that_failed_is_made_again_and_counted() -> None:
    bench = Bench()
    failures = iter([Unavailable("Timeout", "slow")])

    def hook(call: Call, moment: Moment) -> None:
        for error in failures:
            raise error

    bench.cluster.hook = hook
    async with asyncio.timeout(20):
        await bench.sweep.look()
    read = bench.metrics.registry.get_sample_value
    assert read("alineod_sweeps_total", {"result": "failed"}) == 1.0
    failures = iter([Unavailable("Timeout", "slow")])
    running = asyncio.create_task(bench.sweep.run())
    async with asyncio.timeout(20):
        while (read("alineod_sweeps_total", {"result": "done"}) or 0) < 3:  # noqa: ASYNC110  (no event)
            await asyncio.sleep(0.001)
    running.cancel()
    assert read("alineod_sweeps_total", {"result": "failed"}) == 2.0


async def test_a_resync_looks_at_every_key_spread_over_its_period() -> None:
    store, asked = Store(), dict[Ref, float]()
    for name in "abc":
        store.put(AGENTS, {"metadata": {"name": name, "namespace": "ns", "uid": name, "resourceVersion": "1"}})
    chances = iter([0.0, 0.5, 0.9])
    all_asked = asyncio.Event()

    def add_after(ref: Ref, seconds: float) -> None:
        asked[ref] = seconds
        if len(asked) == 3:
            all_asked.set()

    running = asyncio.create_task(run_resync(store, [AGENTS], add_after, period=0.01, chance=lambda: next(chances)))
    async with asyncio.timeout(20):
        await all_asked.wait()
    running.cancel()
    assert [asked[Ref(AGENTS, "ns", name)] for name in "abc"] == pytest.approx([0.0, 0.005, 0.009])
