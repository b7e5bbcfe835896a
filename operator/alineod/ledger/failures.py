"""What SQLite says, in sentences that tell a person what to do. Translates; decides nothing."""

import os
import sqlite3
from pathlib import Path

from alineod.errors import AlineoError, Damaged, Unavailable

_FULL = 64 << 10
"""Bytes left on a volume that is as good as full: SQLite takes its shared memory in steps of half of that."""

VOLUME_REASONS = frozenset({"LedgerDiskFull", "LedgerReadOnly", "LedgerVolumeFailed", "LedgerWriteFailed"})
"""What is the matter with one volume alone: a process with another one may do better."""


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


def _explain_volume(path: Path, text: str) -> Unavailable:
    """SQLite says only that reading or writing failed; what the volume looks like says more."""
    try:
        volume = os.statvfs(path.parent)
    except OSError as error:
        return Unavailable("LedgerVolumeFailed", f"The ledger's volume {path.parent} does not answer ({error}).")
    if volume.f_flag & os.ST_RDONLY:
        return _explain_read_only(path, text)
    if volume.f_bavail * volume.f_frsize < _FULL:
        return _explain_full(path, text)
    return Unavailable(
        "LedgerWriteFailed", f"The ledger {path} could not be read or written ({text}). Look at its volume and node."
    )


def _explain_full(path: Path, text: str) -> Unavailable:
    return Unavailable(
        "LedgerDiskFull", f"The volume of the ledger {path} is full ({text}). Enlarge it or free space on it."
    )


def _explain_read_only(path: Path, text: str) -> Unavailable:
    return Unavailable("LedgerReadOnly", f"The ledger {path} cannot be written ({text}). Make its volume writable.")
