"""`alineod litestream`: the operator's sidecar. Runs Litestream on what the operator orders (see `term`).

It waits for an order, starts Litestream with a configuration of its own making, starts it again when it ends, and
starts it anew for every new order: Litestream cannot change its databases' settings while it runs. Must not know the
ledger's content, nor whether this pod leads: an order comes only from who does.
"""

import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from alineod.clock import Clock, SystemClock
from alineod.errors import AlineoError, Refused
from alineod.ledger.litestream import VERSION, build_config, build_environment, find_program, render_config
from alineod.ledger.term import SOCKET, Term, read_order

DIRECTORY_VARIABLE = "ALINEOD_RUN_DIR"
DEFAULT_DIRECTORY = "/run/alineod"
LOOK = 0.1
"""Seconds between looks at the order and at Litestream."""
STOP = 3.0
"""Seconds Litestream gets to end. It need not: what was acknowledged is in the bucket already."""
FIRST_PAUSE, LAST_PAUSE = 0.2, 10.0
"""Seconds before Litestream is started again, doubling."""
STEADY = 60.0
"""Seconds it must have run for the pause to be the first one again."""


def main(env: Mapping[str, str]) -> int:
    """Run until SIGTERM.

    Raises:
        Refused: there is no Litestream, or not the version that will do.
    """
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    program = find_program(env)
    check_version(program)
    keeper = Keeper(program, Path(env.get(DIRECTORY_VARIABLE) or DEFAULT_DIRECTORY), env, SystemClock())
    while not stopping.wait(LOOK):
        keeper.look()
    keeper.stop()
    return 0


def check_version(program: Path) -> None:
    """Refuse any version but the one whose keys and behaviour are proven.

    Raises:
        Refused: `LitestreamVersion`.
    """
    found = subprocess.run([program, "version"], capture_output=True, text=True, timeout=30, check=False)
    if found.stdout.strip().removeprefix("v") != VERSION:
        raise Refused(
            "LitestreamVersion", f"{program} says {found.stdout.strip()!r}; only Litestream {VERSION} will do."
        )


def say(sentence: str) -> None:
    """A line for the container's log."""
    sys.stderr.write(f"{sentence}\n")
    sys.stderr.flush()


@dataclass
class Keeper:
    """Keeps one Litestream running for the latest order."""

    program: Path
    directory: Path
    env: Mapping[str, str]
    clock: Clock
    _term: Term | None = None
    _process: subprocess.Popen[bytes] | None = None
    _started: float = 0.0
    _due: float = 0.0
    _pause: float = FIRST_PAUSE
    _said: str = ""

    def look(self) -> None:
        """One look at the order and at Litestream, and what follows from it."""
        try:
            term = read_order(self.directory)
        except AlineoError as error:
            return self._say_once(f"The order in {self.directory} cannot be read: {error.message}")
        if term != self._term:
            self.stop()
            self._term, self._pause, self._due = term, FIRST_PAUSE, 0.0
        if self._process is not None and self._process.poll() is not None:
            self._note_end(self._process.returncode)
        if term is not None and self._process is None and self.clock.monotonic() >= self._due:
            self._start(term)
        return None

    def stop(self) -> None:
        """End Litestream, if it runs."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(STOP)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _start(self, term: Term) -> None:
        config = self.directory / "litestream.json"
        config.write_text(render_config(build_config(Path(term.database), term.replica, self.directory / SOCKET)))
        say(f"Replicating {term.database} to {term.bucket.name}/{term.replica.path}.")
        self._started = self.clock.monotonic()
        self._process = subprocess.Popen(
            [self.program, "replicate", "-no-expand-env", "-config", config],
            env=build_environment(self.env),
            stdin=subprocess.DEVNULL,
        )

    def _note_end(self, code: int) -> None:
        now = self.clock.monotonic()
        if now - self._started > STEADY:
            self._pause = FIRST_PAUSE
        say(f"Litestream ended with {code}; it is started again in {self._pause:g} s.")
        self._process, self._due = None, now + self._pause
        self._pause = min(self._pause * 2, LAST_PAUSE)

    def _say_once(self, sentence: str) -> None:
        if sentence != self._said:
            self._said = sentence
            say(sentence)
