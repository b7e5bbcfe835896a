"""Runs outside programs. What fails says so in the program's own words. Knows no cluster."""

import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
WORDS = 2000  # characters of a failed program's words that are shown


class DemoError(Exception):
    """Something is not as it should be; the message says what, and what to do."""


@dataclass(frozen=True)
class Ran:
    """What a program left behind."""

    command: Sequence[str]
    code: int
    out: str
    err: str

    @property
    def words(self) -> str:
        """What it said, for people."""
        return (self.err.strip() or self.out.strip())[-WORDS:]


def run(
    command: Sequence[str],
    *,
    stdin: str | None = None,
    cwd: Path | None = None,
    check: bool = True,
    show: bool = False,
    timeout: float = 600.0,
) -> Ran:
    """Run `command` to its end, at most `timeout` seconds; with `show` what it prints goes to our own stdout.

    Raises:
        DemoError: it is not installed, took too long, or, with `check`, failed.
    """
    try:
        done = subprocess.run(
            command, input=stdin, cwd=cwd, text=True, timeout=timeout, check=False,
            stdout=None if show else subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
    except FileNotFoundError as error:
        raise DemoError(f"{command[0]} is not installed: `make doctor` says what to do") from error
    except subprocess.TimeoutExpired as error:
        raise DemoError(f"{_shown(command)} did not end within {timeout:.0f} s") from error
    ran = Ran(command, done.returncode, done.stdout or "", done.stderr)
    if check and ran.code:
        raise DemoError(f"{_shown(command)} failed ({ran.code}): {ran.words}")
    return ran


def wait_for(what: str, look: Callable[[], T | None], limit: float, pause: float) -> T:
    """What `look` finds, looked for every `pause` seconds.

    Raises:
        DemoError: nothing, for `limit` seconds.
    """
    end = time.monotonic() + limit
    while (found := look()) is None:
        if time.monotonic() > end:
            raise DemoError(f"it did not come about within {limit:.0f} s that {what}")
        time.sleep(pause)
    return found


def _shown(command: Sequence[str]) -> str:
    """The command without what is the same in all of them."""
    words = [word for word in command if not word.startswith(("--kubeconfig", "--context", "--kube-context"))]
    return " ".join([words[0].rpartition("/")[2], *words[1:]])
