"""The highest epoch of a leader that this pod was given a turn by; who speaks in a lower one leads no more.

Kept in a file, so that a bridge that was started again does not listen to a leader of before.
"""

import contextlib
from pathlib import Path

from alineod.errors import Conflict, Unavailable
from alineod.files import write_file


class Epochs:
    """Opens the file at `path`; without one, every leader is the first."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._highest = 0
        with contextlib.suppress(OSError, ValueError):
            self._highest = int(path.read_text())

    def admit(self, epoch: int) -> None:
        """Take note of the epoch that a request was made in.

        Raises:
            Conflict: reason `StaleEpoch`; a later leader has spoken, and nothing of this one's is done any more.
            Unavailable: the epoch cannot be remembered.
        """
        if epoch < self._highest:
            message = f"this was asked in epoch {epoch}, and the leader of epoch {self._highest} has spoken since"
            raise Conflict("StaleEpoch", message)
        if epoch == self._highest:
            return
        try:
            write_file(self._path, f"{epoch}\n".encode())
        except OSError as error:
            raise Unavailable("EpochUnwritable", f"the epoch {epoch} cannot be kept in this pod: {error}") from error
        self._highest = epoch
