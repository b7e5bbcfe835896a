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
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hack.chaos.control_image import build_control_image
from hack.chaos.judge import describe
from hack.chaos.log import Log
from hack.chaos.plan import Fault, plan_control, plan_faults, plan_short
from hack.chaos.run import Outcome, run_faults
from hack.chaos.sites import having_site, having_store, pausing_others
from hack.chaos.tally import describe_tally
from hack.demo.install import Images, build_images, load_images
from hack.demo.run import DemoError
from hack.demo.target import Target, Unable, devcluster, find_cache, have_cluster

FAILED, CANNOT_HOLD = 1, 3
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


def run_both(target: Target, images: Images, faults: Sequence[Fault], control: Sequence[Fault], log: Log) -> bool:
    """The run that must lose nothing, and the control run that must lose something."""
    with tempfile.TemporaryDirectory() as folder, pausing_others(target), having_store(target, Path(folder)) as store:
        operator = images.refs["operator"]
        with log.timed("the run"), having_site(target, images, store, "chaos", operator) as site:
            outcome = run_faults(site, faults, log.say)
        report(log, "chaos", outcome)
        unconfirmed = load_control_image(target, images, Path(folder))
        with log.timed("the control run"), having_site(target, images, store, "control", unconfirmed) as site:
            controlled = run_faults(site, control, log.say)
        report(log, "control", controlled)
    for sentence in (complaints := [*find_faults(outcome), *find_blindness(controlled)]):
        log.say(sentence)
    return not complaints


def load_control_image(target: Target, images: Images, folder: Path) -> str:
    """Build the control run's image and give it to the nodes; returns its name."""
    operator = images.refs["operator"]
    source = next(path for path in images.archives if Path(path).name.startswith("operator-"))
    archive = folder / "unconfirmed.tar"
    ref = build_control_image(operator, Path(source), archive)
    devcluster(target.tools, "load", str(archive))
    return ref


def report(log: Log, name: str, outcome: Outcome) -> None:
    """Say what came of a run, and keep the records of its clients."""
    log.write_records(name, outcome.records)
    log.say()
    for line in (*describe(outcome.verdict), *describe_tally(outcome.tally), f"ledger        {outcome.chain}"):
        log.say(line)
    log.say()


def find_faults(outcome: Outcome) -> list[str]:
    """Sentences about what must not be."""
    living = outcome.tally.zombies - outcome.tally.fenced
    checks = (
        (bool(outcome.stopped), f"FAILED: the run ended early: {outcome.stopped}."),
        (not outcome.verdict.good, "FAILED: the ledger and the clients' records differ, or nobody was answered."),
        (not outcome.sound, "FAILED: the restored ledger is damaged."),
        (living > 0, f"FAILED: {living} replaced leaders did not end with code 75."),
    )
    return [sentence for failed, sentence in checks if failed]


def find_blindness(control: Outcome) -> list[str]:
    """Sentences where the control run did not find what it is there to find."""
    if control.stopped:
        return [f"FAILED: the control run ended early: {control.stopped}."]
    if control.verdict.lost:
        return []
    return ["FAILED: without confirmation nothing was lost either, so this run could not have found a loss."]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
