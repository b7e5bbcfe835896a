"""The init container: fills home, workspace and inputs, once in the life of a pod.

Asks the operator how to start, takes the newest archive that can be read, and says in the termination message what it
did. What is out of reach it waits for; only what was read and found bad, or is not there, makes it go on to the next.
"""

import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from alineod.checkpointer.environment import Environment, parse_environment
from alineod.checkpointer.inputs import write_inputs
from alineod.checkpointer.main import configure_process
from alineod.checkpointer.ownership import give, settle_in
from alineod.checkpointer.patience import Patience
from alineod.checkpointer.remote import Operator
from alineod.checkpointer.sources import Sources
from alineod.checkpoints.archive.format import HOME, WORKSPACE
from alineod.checkpoints.archive.place import clear_leftovers
from alineod.checkpoints.store import Store
from alineod.errors import AlineoError, Unavailable
from alineod.files import write_file
from alineod.wire.archives import ADMISSION, RestoreReport, StartOrder, StartRequest
from alineod.wire.base import encode

MAX_MESSAGE = 4096  # bytes a termination message may have
_MAX_ERROR = 200
_log = logging.getLogger("alineod.restore")


def main(env: Mapping[str, str]) -> int:
    """Restore. Returns 0 when the pod may start, 1 when it may not, 2 when the environment is unusable."""
    configure_process()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as PID 1 it would be ignored otherwise
    try:
        environment = parse_environment(env)
    except AlineoError as error:
        _log.error("%s", error.message)
        return 2
    try:
        report = restore(environment, Operator(environment.operator_url, environment.token_file), time.sleep)
    except (AlineoError, OSError) as error:
        words = error.message if isinstance(error, AlineoError) else f"the sandbox's files cannot be written: {error}"
        _log.error("%s", words)
        _write_message(environment.termination_log, words.encode()[:MAX_MESSAGE])
        return 1
    _log.info("start: %s, turn %s %s", report.start, report.turn, report.where)
    _write_message(environment.termination_log, encode(fit_report(report)))
    return 0


def restore(environment: Environment, operator: Operator, sleep: Callable[[float], None]) -> RestoreReport:
    """Bring the sandbox to where its bridge can start.

    Raises:
        Refused: an archive is of a newer format, or cannot be given to its owners.
        OSError: a volume does not take the files.
    """
    done = environment.control / "restored.json"
    kept = _read_report(done)
    if kept is not None:
        return msgspec.structs.replace(kept, start="kept")
    targets = {HOME: environment.home, WORKSPACE: environment.workspace}
    clear_leftovers(targets)
    sources = Sources(environment.checkpoints, targets)
    order, report = _fill(environment, operator, sources, Patience(sleep))
    if report.start in ("fresh", "blank"):
        for directory in targets.values():
            settle_in(directory, environment.owner)
    for name in sources.read_rotten():  # it must not count among the newest, which push the older ones out
        Store(environment.checkpoints, environment.keep).discard(name)
    write_inputs(environment.inputs, order.inputs, environment.owner)
    give(environment.control, environment.owner)
    _write_control(environment, ADMISSION, order.bridge_token.encode(), 0o600)
    os.sync()  # the files must be on the disk before the word that they are
    _write_control(environment, "restored.json", encode(report), 0o644)
    return report


def _fill(
    environment: Environment, operator: Operator, sources: Sources, patience: Patience
) -> tuple[StartOrder, RestoreReport]:
    """Ask and try until the sandbox is filled. Each round asks anew: grants end, and a parent may have moved."""
    waiting_for = ""
    while True:
        try:
            order = operator.start(StartRequest(incarnation=environment.incarnation, waiting_for=waiting_for))
        except AlineoError as error:
            patience.wait(error.message)
            continue
        try:
            return order, sources.fill(order)
        except Unavailable as error:
            waiting_for = error.message[:_MAX_ERROR]
            _tell_rest(operator, environment.incarnation, waiting_for)
            patience.wait(error.message)


def _tell_rest(operator: Operator, incarnation: int, waiting_for: str) -> None:
    """Who rests lets the next one have its place among those that are brought back."""
    with suppress(AlineoError):
        operator.start(StartRequest(incarnation=incarnation, waiting_for=waiting_for, resting=True))


def fit_report(report: RestoreReport) -> RestoreReport:
    """The report within the size of a termination message: long errors are cut, then the oldest tries left out."""
    tried = [msgspec.structs.replace(one, error=one.error[:_MAX_ERROR]) for one in report.tried]
    fitting = msgspec.structs.replace(report, tried=tried)
    while len(encode(fitting)) > MAX_MESSAGE and tried:
        tried = tried[:-1]
        fitting = msgspec.structs.replace(report, tried=tried)
    return fitting


def _write_control(environment: Environment, name: str, body: bytes, mode: int) -> None:
    path = environment.control / name
    write_file(path, body, mode)
    path.chmod(mode)
    give(path, environment.owner)


def _read_report(path: Path) -> RestoreReport | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=RestoreReport)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError:
        # It is there, so this pod has started before. The file is the agent's own, who may have written to it.
        return RestoreReport(start="kept")


def _write_message(path: Path, body: bytes) -> None:
    with suppress(OSError):  # outside a pod there is no such file
        path.write_bytes(body)


if __name__ == "__main__":
    sys.exit(main(os.environ))
