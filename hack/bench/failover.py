"""`python3 -m hack.bench.failover [--rounds N]`: how long nobody leads after the leader stopped, crashed or is gone.

On the development cluster, with the real image and chart: three operators, 1,000 agents that are held, 200,000 events
in the ledger, a bucket on this machine. DEVCLUSTER names another cluster than the checkout's.
"""

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from hack.bench.failover_rounds import LEASE, PODS, THE_SERVICE, Fault, measure, open_way
from hack.bench.failover_seed import seed
from hack.bench.table import describe_machine
from hack.chaos.sites import having_site, having_store, pausing_others
from hack.demo.install import build_images, load_images
from hack.demo.run import DemoError
from hack.demo.show import Show
from hack.demo.target import Target, explain, have_cluster

AGENTS, EVENTS = 1_000, 200_000
GOALS = {Fault.STOP: 3.0, Fault.CRASH: 5.0, Fault.GONE: 20.0}  # s, p50, until a pod serves
Rounds = Mapping[Fault, Sequence[Mapping[str, float]]]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m hack.bench.failover", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="how often each fault is made")
    parser.add_argument("--faults", nargs="*", default=list(Fault.__members__), choices=list(Fault.__members__))
    options, show = parser.parse_args(arguments), Show(sys.stderr)
    try:
        target = have_cluster(os.environ)
        found = run(target, [Fault[name] for name in options.faults], options.rounds, show)
    except DemoError as error:
        return explain(error, "The bench")
    print(f"{describe_machine()}\n{AGENTS:,} agents, {EVENTS:,} events, three operators on two nodes")
    print("\n".join(build_tables(found)))
    print(f"\nAgain: make bench-failover, or python3 -m hack.bench.failover --rounds {options.rounds}")
    return 0


def run(target: Target, faults: Sequence[Fault], rounds: int, show: Show) -> Rounds:
    """Every fault in turn."""
    with show.step("images"):
        images = build_images()
        load_images(target, images)
    with (
        tempfile.TemporaryDirectory() as folder,
        pausing_others(target),
        having_store(target, Path(folder) / "store") as store,
        having_site(target, images, store, "failover", images.refs["operator"]) as site,
    ):
        with show.step(f"{AGENTS:,} agents and {EVENTS:,} events"):
            seed(site, Path(folder), AGENTS, EVENTS)
        way = open_way(site)
        found: dict[Fault, list[Mapping[str, float]]] = {fault: [] for fault in faults}
        for number in range(rounds):
            for fault in faults:
                with show.step(f"round {number + 1}: {fault}"):
                    found[fault].append(measure(site, way, fault))
    return found


def build_tables(found: Rounds) -> list[str]:
    """Of each fault the median and the worst, by step; steps of one take-over may go on beside each other."""
    lines = []
    for fault, rounds in found.items():
        names = list(dict.fromkeys([LEASE, *(name for one in rounds for name in one)]))
        width = max(map(len, (*names, THE_SERVICE)))
        lines += ["", str(fault), f"{'seconds':<{width}}  {'p50':>7}  {'max':>7}  {'n':>3}"]
        for name in names:
            values = [one[name] for one in rounds if name in one]
            goal = f"  goal {GOALS[fault]:g}" if name == PODS else ""
            lines.append(
                f"{name:<{width}}  {statistics.median(values):7.2f}  {max(values):7.2f}  {len(values):3}{goal}"
            )
    return lines


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
