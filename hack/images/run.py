"""Runs outside programs for the build: output goes to a log, a person sees one line per step and how long it took."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

TAIL = 25  # lines of a failed program's output that are shown


class BuildError(Exception):
    """A step failed; the message says what to do."""


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


@contextmanager
def step(title: str, clock: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """Say what is being waited for, then how long it took (seconds)."""
    say(f"images: {title} ...")
    begun = clock()
    yield
    say(f"images: {title}: {clock() - begun:.1f} s")


def run(command: Sequence[str], log: Path, cwd: Path | None = None) -> None:
    """Run `command` with its output appended to `log`.

    Raises:
        BuildError: it is not installed, or it failed; the end of its output is in the message.
    """
    with log.open("ab") as out:
        start = out.tell()
        try:
            code = subprocess.run(command, cwd=cwd, stdout=out, stderr=out, stdin=subprocess.DEVNULL, check=False)
        except FileNotFoundError as error:
            raise BuildError(f"{command[0]} is not installed: run `make bootstrap`, or see `make doctor`") from error
    if code.returncode:
        tail = log.read_bytes()[start:].decode(errors="replace").splitlines()[-TAIL:]
        raise BuildError("\n".join([f"{command[0]} failed ({code.returncode}), whole output in {log}:", *tail]))


def read_output(command: Sequence[str]) -> str:
    """What `command` prints; empty when it is not there or fails."""
    try:
        return subprocess.run(command, check=False, capture_output=True, text=True).stdout
    except OSError:
        return ""
