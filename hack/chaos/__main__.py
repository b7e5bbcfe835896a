"""`python3 -m hack.chaos [--kills N] [--zombies M] [--seed S] [--short]`: does an acknowledged event ever get lost?

Kills leaders of a real release on the development cluster while clients write, restores the ledger from the bucket
alone and compares it with the clients' own records. Then the same with a build that does not wait for the bucket, which
has to lose something: else this could not find a loss at all. DEVCLUSTER names another cluster than the checkout's.

Exit codes: 0 nothing was lost or doubled, every zombie ended, and the control run lost something; 1 otherwise; 3 this
machine cannot hold the cluster.
"""

import argparse
import os
import random
import sys
from collections.abc import Sequence

from hack.chaos.both import run_both
from hack.chaos.log import Log
from hack.chaos.plan import plan_control, plan_faults, plan_short
from hack.demo.install import build_images, load_images
from hack.demo.run import DemoError
from hack.demo.target import CANNOT_HOLD, FAILED, Unable, find_cache, have_cluster

KILLS, ZOMBIES = 50, 30
CONTROLS = {False: 6, True: 1}  # faults of the control run, by whether it is the short form


def main(arguments: Sequence[str]) -> int:
    options = build_parser().parse_args(arguments)
    log = Log(find_cache(os.environ) / "logs")
    log.say(f"seed {options.seed}; all of it is in {log.path}")
    faults = plan_short(options.seed) if options.short else plan_faults(options.kills, options.zombies, options.seed)
    try:
        target = have_cluster(os.environ)
        images = build_images()
        load_images(target, images)
        good = run_both(target, images, faults, plan_control(CONTROLS[options.short], options.seed), log)
    except Unable as error:
        print(error, file=sys.stderr)
        return CANNOT_HOLD
    except DemoError as error:
        log.say(f"The run stops here: {error}")
        return FAILED
    return 0 if good else FAILED


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 -m hack.chaos", description=__doc__)
    parser.add_argument("--kills", type=int, default=KILLS, help="leaders that die")
    parser.add_argument("--zombies", type=int, default=ZOMBIES, help="leaders that live on beside their successor")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 16), help="order and pauses follow from it")
    parser.add_argument("--short", action="store_true", help="three kills, one zombie and one fault of control")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
