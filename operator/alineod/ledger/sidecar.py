"""`alineod litestream`: the operator's sidecar. Runs Litestream on what the operator orders (see `order`).

It waits for an order, starts Litestream with a configuration of its own making, starts it again when it ends, and
starts it anew for every new order and for new keys of the bucket: Litestream cannot change its databases' settings or
its keys while it runs. Must not know the ledger's content, nor whether this pod leads: an order comes only from who
does.
"""

import contextlib
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from alineod.bucket.keys import NAMES, find_directory, read_keys
from alineod.clock import Clock, SystemClock
from alineod.errors import AlineoError, Refused
from alineod.ledger.litestream import VERSION, build_config, build_environment, find_program, render_config
from alineod.ledger.order import SOCKET, Order, read_order, write_sign

DIRECTORY_VARIABLE = "ALINEOD_RUN_DIR"
DEFAULT_DIRECTORY = "/run/alineod"
LOOK = 0.1
"""Seconds between looks at the order and at Litestream."""
SIGN = 1.0
"""Seconds between signs of life."""
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
    _order: Order | None = None
    _process: subprocess.Popen[bytes] | None = None
    _keys: Mapping[str, str] = field(default_factory=dict)
    _signed: float = -SIGN
    _started: float = 0.0
    _due: float = 0.0
    _pause: float = FIRST_PAUSE
    _said: str = ""

    def look(self) -> None:
        """One look at the order, the keys and Litestream, and what follows from it."""
        if self.clock.monotonic() - self._signed >= SIGN:
            self._give_sign()
            self._look_at_keys()
        try:
            order = read_order(self.directory)
        except AlineoError as error:
            return self._say_once(f"The order in {self.directory} cannot be read: {error.message}")
        if order != self._order:
            self._end(signal.SIGKILL)  # its term is over, or it is stuck: there is nothing to wait for
            self._order, self._pause, self._due = order, FIRST_PAUSE, 0.0
        if self._process is not None and self._process.poll() is not None:
            self._note_end(self._process.returncode)
        if order is not None and self._process is None and self.clock.monotonic() >= self._due:
            self._start(order)
        return None

    def stop(self) -> None:
        """End Litestream, if it runs."""
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(how)
        try:
            process.wait(STOP)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _start(self, order: Order) -> None:
        config = self.directory / "litestream.json"
        config.write_text(render_config(build_config(Path(order.database), order.replica, self.directory / SOCKET)))
        say(f"Replicating {order.database} to {order.bucket.name}/{order.replica.path}.")
        self._started = self.clock.monotonic()
        env = build_environment(self.env)
        self._keys = {name: env[name] for name in NAMES if name in env}
        self._process = subprocess.Popen(
            [self.program, "replicate", "-no-expand-env", "-config", config],
            env=env,
            stdin=subprocess.DEVNULL,
        )

    def _note_end(self, code: int) -> None:
        now = self.clock.monotonic()
        if now - self._started > STEADY:
            self._pause = FIRST_PAUSE
        say(f"Litestream ended with {code}; it is started again in {self._pause:g} s.")
        self._process, self._due = None, now + self._pause
        self._pause = min(self._pause * 2, LAST_PAUSE)

    def _give_sign(self) -> None:
        self._signed = self.clock.monotonic()
        with contextlib.suppress(OSError):  # who misses the sign says so
            write_sign(self.directory)

    def _look_at_keys(self) -> None:
        keys = read_keys(find_directory(self.env))
        if self._process is not None and keys and keys != self._keys:
            say("The keys of the bucket are other ones: Litestream is started again with them.")
            self._end(signal.SIGKILL)  # what was acknowledged is in the bucket; the rest follows with the new keys
            self._pause, self._due = FIRST_PAUSE, 0.0

    def _say_once(self, sentence: str) -> None:
        if sentence != self._said:
            self._said = sentence
            say(sentence)
