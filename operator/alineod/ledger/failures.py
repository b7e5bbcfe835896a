"""What SQLite says, in sentences that tell a person what to do, and which failures are those of one pod alone."""

import contextlib
import errno
import os
import sqlite3
from pathlib import Path

from alineod.errors import AlineoError, Damaged, Unavailable

_STEP = 32 << 10
"""Bytes: SQLite takes its shared memory in steps of that."""
REPLICATOR_DOWN = "ReplicatorDown"
LOCAL_REASONS = frozenset({
    "LedgerDiskFull", "LedgerReadOnly", "LedgerVolumeFailed", "LedgerWriteFailed", REPLICATOR_DOWN,
})  # fmt: skip
"""What is the matter with one pod's volume or sidecar alone: a process with others may do better."""
CLOSED = "LedgerClosed"
"""The reason of everything that fails because the ledger was closed."""
LOCAL_PATIENCE = 30.0
"""Seconds for which such a thing is waited for, where there is another process to leave the term to."""


def explain_sqlite(error: sqlite3.Error, path: Path) -> AlineoError:
    """Our error for one of SQLite's on the file at `path`."""
    text = str(error)
    match getattr(error, "sqlite_errorname", "").split("_")[1:2]:
        case ["FULL"]:
            return _explain_full(path, text)
        case ["READONLY"]:
            return _explain_read_only(path, text)
        case ["BUSY" | "LOCKED"]:
            return Unavailable("LedgerBusy", f"The ledger {path} was locked for too long ({text}).")
        case ["CORRUPT" | "NOTADB" | "ERROR"]:  # the last: a table is missing
            return Damaged("DatabaseDamaged", f"SQLite finds the ledger {path} damaged ({text}).")
        case ["CONSTRAINT"]:
            return Damaged("SequenceBroken", f"The ledger {path} refused a row ({text}): something else wrote to it.")
        case _:
            return _explain_volume(path, text)


def build_closed() -> Unavailable:
    """The answer to whoever asks a ledger that was closed."""
    return Unavailable(CLOSED, "The ledger is closed; ask again once the operator is back.")


def _explain_volume(path: Path, text: str) -> Unavailable:
    """SQLite says only that reading or writing failed; a file of our own beside it says more."""
    error = _try_to_write(path.with_name("probe"))
    number = error.errno if error else None
    if number in (errno.EROFS, errno.EACCES, errno.EPERM):
        return _explain_read_only(path, f"{text}: {error}")
    if number in (errno.ENOSPC, errno.EDQUOT):
        return _explain_full(path, f"{text}: {error}")
    more = f": {error}" if error else ""
    return Unavailable(
        "LedgerWriteFailed",
        f"The ledger {path} could not be read or written ({text}{more}). Look at its volume and its node.",
    )


def _try_to_write(path: Path) -> OSError | None:
    """Why a file cannot be written there, if it cannot."""
    try:
        with path.open("wb", buffering=0) as probe:
            probe.write(bytes(_STEP))
            os.fsync(probe.fileno())
    except OSError as error:
        return error
    finally:
        with contextlib.suppress(OSError):
            path.unlink()
    return None


def _explain_full(path: Path, text: str) -> Unavailable:
    return Unavailable(
        "LedgerDiskFull", f"The volume of the ledger {path} is full ({text}). Enlarge it or free space on it."
    )


def _explain_read_only(path: Path, text: str) -> Unavailable:
    return Unavailable("LedgerReadOnly", f"The ledger {path} cannot be written ({text}). Make its volume writable.")
