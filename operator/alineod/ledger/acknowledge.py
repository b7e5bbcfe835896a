"""When a committed row cannot be lost any more: at once, or when the bucket has it and nobody else leads.

Used by the writer's thread.
"""

import threading
import time
from collections.abc import Callable

from alineod.errors import AlineoError, Damaged, Fenced
from alineod.ledger.failures import LOCAL_PATIENCE, LOCAL_REASONS, build_closed

Step = Callable[[Callable[[], bool]], None]
FIRST_PAUSE, LAST_PAUSE = 0.05, 1.0
"""Seconds between tries, doubling."""


class LocalAcknowledger:
    """No bucket: what is committed is safe as long as the volume is."""

    configured = False

    def confirm(self, report: Callable[[AlineoError], None]) -> None:
        """Nothing to wait for."""

    def stop(self) -> None:
        """Nothing to stop."""


class ReplicaAcknowledger:
    """Takes the steps that make committed rows safe, in order, each until it succeeds.

    Args:
        steps: the upload, and what must be asked after it and before anything is acknowledged; each may ask what it is
            given whether it was stopped. What they raise is reported and tried again, but for Fenced and Damaged, and
            for what another pod may do better (see `failures`) after `patience` seconds.
    """

    configured = True

    def __init__(self, *steps: Step, patience: float = LOCAL_PATIENCE) -> None:
        self._steps, self._patience = steps, patience
        self._stopped = threading.Event()

    def confirm(self, report: Callable[[AlineoError], None]) -> None:
        for step in self._steps:
            self._repeat(step, report)

    def stop(self) -> None:
        self._stopped.set()

    def _repeat(self, step: Step, report: Callable[[AlineoError], None]) -> None:
        pause, since = FIRST_PAUSE, None  # since when it fails for what is this pod's own
        while not self._stopped.is_set():
            try:
                return step(self._stopped.is_set)
            except (Fenced, Damaged):
                raise
            except AlineoError as failure:
                if self._stopped.is_set():
                    break
                now = time.monotonic()
                since = now if since is None or failure.reason not in LOCAL_REASONS else since
                if now - since >= self._patience:
                    raise
                report(failure)
            self._stopped.wait(pause)
            pause = min(pause * 2, LAST_PAUSE)
        raise build_closed()
