"""`python3 -m hack.bench.recovery [--short]`: how long until a lost pod's agent answers, and an operator is back.

Pods are lost on the development cluster, with the real images and chart and a bucket on this machine; the operator is
restarted as a process of this machine, over sandboxes that speak the bridge's API. DEVCLUSTER names another
cluster than the checkout's.
"""

import argparse
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from hack.bench.recovery_losses import run
from hack.bench.recovery_report import build_losses, build_restarts
from hack.bench.recovery_restarts import measure_restarts
from hack.bench.table import describe_machine
from hack.demo.run import DemoError
from hack.demo.show import Show
from hack.demo.target import explain, have_cluster


@dataclass(frozen=True)
class Plan:
    """Bytes of the homes, how often each pod is lost; agents over which the operator is restarted, and how often."""

    sizes: Sequence[int] = (10**6, 10**8, 10**9)
    losses: int = 3
    agents: int = 500
    restarts: int = 3


SHORT = Plan(sizes=(10**6, 10**8), losses=1, agents=100, restarts=1)


def describe_load() -> str:
    return f"load average {os.getloadavg()[0]:.1f}"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m hack.bench.recovery", description=__doc__)
    parser.add_argument("--short", action="store_true", help="homes of 1 and 100 MB, 100 agents, one round of each")
    plan, show = SHORT if parser.parse_args(arguments).short else Plan(), Show(sys.stderr)
    print(f"{describe_machine()}, Python {platform.python_version()}; {describe_load()} at the beginning.\n")
    try:
        restarts = measure_restarts(plan.agents, plan.restarts)
        print("\n".join([*build_restarts(restarts, plan.agents), ""]), flush=True)
        losses = run(have_cluster(os.environ), plan.sizes, plan.losses, show)
    except DemoError as error:
        return explain(error, "The bench")
    print("\n".join([*build_losses(losses), "", f"{describe_load()} at the end."]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
