"""What SQLite says, in sentences that tell a person what to do. Translates; decides nothing."""

import sqlite3
from pathlib import Path

from alineod.errors import AlineoError, Damaged, Unavailable


def explain_sqlite(error: sqlite3.Error, path: Path) -> AlineoError:
    """Our error for one of SQLite's on the file at `path`."""
    text = str(error)
    match getattr(error, "sqlite_errorname", "").split("_")[1:2]:
        case ["FULL"]:
            return Unavailable(
                "LedgerDiskFull", f"The volume of the ledger {path} is full ({text}). Enlarge it or free space on it."
            )
        case ["READONLY"]:
            return Unavailable(
                "LedgerReadOnly", f"The ledger {path} cannot be written ({text}). Make its volume writable."
            )
        case ["BUSY" | "LOCKED"]:
            return Unavailable("LedgerBusy", f"The ledger {path} was locked for too long ({text}).")
        case ["CORRUPT" | "NOTADB" | "ERROR"]:  # the last: a table is missing
            return Damaged("DatabaseDamaged", f"SQLite finds the ledger {path} damaged ({text}).")
        case ["CONSTRAINT"]:
            return Damaged("SequenceBroken", f"The ledger {path} refused a row ({text}): something else wrote to it.")
        case _:
            return Unavailable("LedgerWriteFailed", f"The ledger {path} could not be read or written ({text}).")
