"""Whether the files a connection writes are still those that their names lead to.

A file that was deleted or replaced takes every write as before, and all of it is gone with the process: what was
written is safe only if somebody who opens the name finds it.
"""

from pathlib import Path

from alineod.errors import Damaged

_PARTS = ("", "-wal")


class Standing:
    """The database's files as they are when this is made; the connection has read from them already."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._found = self._look()

    def check(self) -> None:
        """To be asked after each write.

        Raises:
            Damaged: `LedgerGone`; the writes go nowhere.
        """
        if self._look() != self._found:
            raise Damaged(
                "LedgerGone",
                f"The ledger {self._path} was deleted or replaced while this process wrote it. Leave its volume to it.",
            )

    def _look(self) -> tuple[tuple[int, int] | None, ...]:
        return tuple(_identify(self._path.with_name(self._path.name + part)) for part in _PARTS)


def _identify(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
