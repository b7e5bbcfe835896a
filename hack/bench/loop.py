"""`python3 -m hack.bench.loop [--short]`: how late the operator's event loop is while 1,000 agents report.

One process: the operator's term with its queue, passes, drivers and jobs, and the real ledger on a volume; the cluster
and the sandboxes are in memory. How late each look at the loop came is told beside the CPU that the loop's own thread
used meanwhile: a busy machine adds to the first alone.
"""

import argparse
import asyncio
import os
import platform
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from alineod.app.garbage import Garbage
from alineod.kube.health import watch_loop
from alineod.kube.objects import Json
from alineod.ledger.saved import build_saved
from alineod.metrics import Metrics
from hack.bench.loop_cluster import Cluster, Kubelets
from hack.bench.loop_leader import Leader, build_parts, take_over
from hack.bench.loop_report import LIMIT, build_causes, build_table
from hack.bench.loop_sandboxes import DELTAS, Reporting
from hack.bench.loop_watch import Looks, LoopWatch
from hack.bench.table import describe_machine
from hack.demo.show import Show
from tests.unit.reconcile.simulation import NAMESPACE

SWARM_COUNT, MEMBERS = 10, 100
AGENT_COUNT = SWARM_COUNT * MEMBERS
WAITING = "last"
"""The one agent of the first swarm that waits for all others of it."""
CALM = 3.0  # s without a pass until something counts as over
PATIENCE = 300.0  # s


@dataclass(frozen=True)
class Plan:
    agents: int
    seconds: float


@dataclass
class Found:
    """By phase, and what else was seen."""

    looks: dict[str, Looks] = field(default_factory=dict)
    passes: dict[str, float] = field(default_factory=dict)
    rate: float = 0.0
    fold: str = ""
    histogram: str = ""


class Bench:
    """The leader of the moment, and what it leads over."""

    def __init__(self, volume: Path, watch: LoopWatch, show: Show) -> None:
        self.volume, self.watch, self.show, self.found = volume, watch, show, Found()
        self.metrics = Metrics()
        self.parts, self.sandboxes = build_parts(self.metrics), Reporting()
        self.cluster = Cluster()
        self.leader: Leader | None = None
        self.kubelets = Kubelets(self.cluster, self.sandboxes, lambda: self.lead.world)

    @property
    def lead(self) -> Leader:
        assert self.leader is not None
        return self.leader

    @asynccontextmanager
    async def phase(self, name: str) -> AsyncIterator[None]:
        with self.show.step(name):
            self.watch.begin()
            before = self._count_passes()
            yield
            self.found.looks[name] = self.watch.read()
            self.found.passes[name] = self._count_passes() - before

    def _count_passes(self) -> float:
        return self.metrics.registry.get_sample_value("alineod_pass_seconds_count") or 0

    async def begin_term(self, epoch: int) -> None:
        self.leader = await take_over(self.parts, self.cluster, self.sandboxes, self.volume, epoch)

    async def wait_until(self, what: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE
        while not what():
            self.lead.check()
            if time.monotonic() > end:
                raise TimeoutError(f"not within {PATIENCE:g} s")
            await asyncio.sleep(0.1)

    async def wait_for_calm(self) -> None:
        """Until no pass has run for some seconds."""
        busy = time.monotonic()
        while time.monotonic() - busy < CALM:
            if not self.lead.queue.idle:
                busy = time.monotonic()
            await asyncio.sleep(0.1)


def build_swarm(number: int, members: int) -> Json:
    names = [f"a{index}" for index in range(members)]
    agents: list[Json] = [{"name": name, "prompt": "HANG on"} for name in names]
    if number == 0:
        agents.append({"name": WAITING, "prompt": "HANG on", "waitFor": names})
    return {
        "metadata": {"name": f"s{number}", "namespace": NAMESPACE},
        "spec": {"defaults": {"harness": {"model": {"provider": "openai", "id": "m"}}}, "agents": agents},
    }


async def run(plan: Plan, volume: Path, show: Show) -> Found:
    """Every phase in turn."""
    async with LoopWatch() as watch:
        bench = Bench(volume, watch, show)
        lag = asyncio.create_task(watch_loop(bench.parts.health, bench.parts.clock, bench.metrics.observe_lag))
        await bench.begin_term(1)
        await _start(bench, plan)
        await _report(bench, plan)
        await _wake(bench)
        await _take_over(bench, plan)
        await _end_one(bench, plan)
        bench.found.histogram = _describe_histogram(bench.metrics)
        lag.cancel()
        await bench.lead.stop()
    return bench.found


async def _start(bench: Bench, plan: Plan) -> None:
    members = plan.agents // SWARM_COUNT
    async with bench.phase("swarms applied"):
        for number in range(SWARM_COUNT):
            await bench.cluster.write_swarm(build_swarm(number, members))
        await bench.wait_until(lambda: bench.sandboxes.followers == plan.agents)
        await bench.wait_for_calm()


async def _report(bench: Bench, plan: Plan) -> None:
    async with bench.phase("reporting"):
        before = bench.lead.ledger.acknowledged_seq
        await asyncio.sleep(plan.seconds)
        bench.found.rate = (bench.lead.ledger.acknowledged_seq - before) / plan.seconds
    began = time.perf_counter()
    saved = build_saved(bench.lead.ledger.state, "")
    assert saved is not None
    size, took = len(saved.body) / 1e6, (time.perf_counter() - began) * 1000
    bench.found.fold = f"The fold that is kept every 5,000 events: {size:.1f} MB, encoded in {took:.1f} ms."


async def _wake(bench: Bench) -> None:
    async with bench.phase("all looked at"):
        bench.lead.wake_known()
        await bench.wait_for_calm()


async def _take_over(bench: Bench, plan: Plan) -> None:
    await bench.lead.stop()
    async with bench.phase("take-over"):
        await bench.begin_term(2)
        await bench.wait_until(lambda: bench.sandboxes.followers == plan.agents)
        await bench.wait_for_calm()


async def _end_one(bench: Bench, plan: Plan) -> None:
    """All members of the first swarm end their turn, and who waits for them goes on."""
    members = plan.agents // SWARM_COUNT
    state = bench.lead.ledger.state
    pods = [agent.pod.uid for agent in state.agents.values() if agent.run == f"{NAMESPACE}/s0" and agent.pod]
    async with bench.phase("a gather ends"):
        for pod in pods:
            bench.sandboxes.end(pod)
        await bench.wait_until(lambda: bench.lead.ledger.state.agents[f"{NAMESPACE}/s0-{WAITING}"].turn_running)
        await bench.wait_until(lambda: bench.sandboxes.followers == plan.agents - members + 1)
        await bench.wait_for_calm()


def _describe_histogram(metrics: Metrics) -> str:
    """The operator's own account of the same loop."""
    read = metrics.registry.get_sample_value
    total = read("alineod_loop_lag_seconds_count") or 0
    below = read("alineod_loop_lag_seconds_bucket", {"le": str(LIMIT)}) or 0
    return f"alineod_loop_lag_seconds, over all of it: {total - below:.0f} of {total:,.0f} above {LIMIT:g} s."


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m hack.bench.loop", description=__doc__)
    parser.add_argument("--short", action="store_true", help="15 seconds instead of 60")
    parser.add_argument("--agents", type=int, default=AGENT_COUNT, help="how many report, in ten swarms")
    options = parser.parse_args(arguments)
    plan = Plan(options.agents, 15.0 if options.short else 60.0)
    Garbage().start()
    with tempfile.TemporaryDirectory(prefix="alineod-bench-") as volume:
        found = asyncio.run(run(plan, Path(volume) / "ledger", Show(sys.stderr)))
    print("\n".join(_build_lines(found, plan)))
    return 0


def _build_lines(found: Found, plan: Plan) -> list[str]:
    return [
        f"{describe_machine()}, Python {platform.python_version()}; load average at the end {os.getloadavg()[0]:.1f}.",
        f"{plan.agents:,} agents in {SWARM_COUNT} swarms, each with {DELTAS} deltas and an event a second:"
        f" {found.rate:,.0f} events/s acknowledged.",
        "",
        *build_table(found.looks, found.passes),
        "",
        found.fold,
        found.histogram,
        "",
        *build_causes(found.looks),
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
