"""When a committed row cannot be lost any more: at once, or when Litestream says that it is in the bucket.

Used by the writer's thread. A fence belongs here: asked after the sync, before the return.
"""

import threading
from collections.abc import Callable
from pathlib import Path

from alineod.errors import AlineoError, Fenced, Unavailable
from alineod.ledger.control import ControlSocket

SYNC_TIMEOUT = 2.0
"""Seconds for one try; short, so that the first one after an outage is soon."""
FIRST_PAUSE, LAST_PAUSE = 0.05, 1.0
"""Seconds between tries, doubling."""


class LocalAcknowledger:
    """No bucket: what is committed is safe as long as the volume is."""

    configured = False

    def confirm(self, report: Callable[[AlineoError], None]) -> None:
        """Nothing to wait for."""

    def stop(self) -> None:
        """Nothing to stop."""


class LitestreamAcknowledger:
    """Asks Litestream to put everything into the bucket and waits until it has."""

    configured = True

    def __init__(self, control: ControlSocket, database: Path) -> None:
        self._control = control
        self._database = database
        self._stopped = threading.Event()

    def confirm(self, report: Callable[[AlineoError], None]) -> None:
        pause = FIRST_PAUSE
        while not self._stopped.is_set():
            try:
                return self._sync()
            except Fenced:
                raise
            except Unavailable as failure:
                report(failure)
            self._stopped.wait(pause)
            pause = min(pause * 2, LAST_PAUSE)
        raise Unavailable("LedgerClosed", "The ledger was closed before the bucket confirmed the event.")

    def stop(self) -> None:
        self._stopped.set()

    def _sync(self) -> None:
        reply = self._control.sync(self._database, SYNC_TIMEOUT)
        if reply.replicated_txid > reply.txid:
            raise Fenced(
                "ReplicaOvertaken",
                f"The replica of {self._database} holds transaction {reply.replicated_txid} while this process has"
                f" written {reply.txid}: another process writes to the same place.",
            )
