"""The run that must lose nothing, then the control run that must lose something, and what is said of both."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from hack.chaos.control_image import build_control_image
from hack.chaos.judge import describe
from hack.chaos.log import Log
from hack.chaos.plan import Fault
from hack.chaos.run import Outcome, run_faults
from hack.chaos.sites import having_site, having_store, pausing_others
from hack.chaos.tally import describe_tally
from hack.demo.install import Images
from hack.demo.target import Target, devcluster


def run_both(target: Target, images: Images, faults: Sequence[Fault], control: Sequence[Fault], log: Log) -> bool:
    """Whether both came out as they must."""
    with tempfile.TemporaryDirectory() as folder, pausing_others(target), having_store(target, Path(folder)) as store:
        operator = images.refs["operator"]
        with log.timed("the run"), having_site(target, images, store, "chaos", operator) as site:
            outcome = run_faults(site, faults, log.say)
        report(log, "chaos", outcome)
        unconfirmed = load_control_image(target, images, Path(folder))
        with log.timed("the control run"), having_site(target, images, store, "control", unconfirmed) as site:
            controlled = run_faults(site, control, log.say)
        report(log, "control", controlled)
    complaints = [*find_faults(outcome), *find_blindness(controlled)]
    for sentence in complaints:
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
