"""`python3 -m hack.bench [--rounds N] [--idle SECONDS]`: the figures of the skeleton, as a table."""

import argparse
import os
import sys
from collections.abc import Sequence

from hack.bench.idle import measure_idle
from hack.bench.skeleton import NAMESPACE, Bench, measure_starts
from hack.bench.table import build_table, describe_machine
from hack.demo.install import build_images, install_chart, install_parts, load_images
from hack.demo.run import DemoError
from hack.demo.show import Show
from hack.demo.target import have_cluster


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m hack.bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="how often each start is measured")
    parser.add_argument("--idle", type=float, default=60.0, help="seconds over which idle CPU is measured")
    options, show = parser.parse_args(arguments), Show(sys.stderr)
    try:
        with show.step("cluster, images and release"):
            target = have_cluster(os.environ)
            images = build_images()
            load_images(target, images)
            install_parts(target, images)
            install_chart(target, images)
        try:
            with show.step(f"{options.rounds} rounds of starts, turns and restores"):
                figures = measure_starts(Bench(target, images), options.rounds)
            with show.step(f"{options.idle:.0f} idle seconds"):
                costs = measure_idle(target, NAMESPACE, options.idle)
        finally:
            target.kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", "--wait=false")
    except DemoError as error:
        print(f"The bench stops here: {error}", file=sys.stderr)
        return 1
    print(describe_machine())
    print("\n".join(build_table(figures, costs)))
    print(f"\nAgain: make bench-skeleton, or python3 -m hack.bench --rounds {options.rounds} --idle {options.idle:.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
