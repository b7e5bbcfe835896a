"""Building the file of a new term: from nothing, from an earlier term's file, or from what was restored.

Blocking; run in a thread. Every way ends in the same checks. Must not know which of them is right to take.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from alineod.domain.fold import fold
from alineod.domain.state import State
from alineod.errors import Damaged, Refused
from alineod.ledger import sql
from alineod.ledger.chain import parse_row, verify_rows
from alineod.ledger.failures import explain_sqlite


@dataclass(frozen=True)
class Making:
    """What a new term's file is to be: whose, in which term, made when (microseconds), with a secret from where."""

    instance: str
    epoch: int
    time: int
    make_secret: Callable[[], bytes]


@dataclass(frozen=True)
class Built:
    """A file that may go into service, and the fold of all its rows."""

    identity: sql.Identity
    state: State


def build_new(target: Path, making: Making) -> Built:
    """An empty ledger."""
    with _open(target) as connection:
        sql.migrate(connection, making.time)
        sql.write_identity(connection, sql.Identity(making.instance, making.make_secret(), making.epoch))
    return check_restored(target, making)


def build_copy(source: Path, target: Path, making: Making) -> Built:
    """A copy of an earlier term's file, which takes no writer of an earlier term from now on.

    Raises:
        Damaged: see `check_restored`.
        Fenced: the source has seen a later term.
    """
    with _open(source) as old, _open(target) as new:
        sql.write_epoch(old, making.epoch)
        old.backup(new)
    return check_restored(target, making)


def check_restored(target: Path, making: Making) -> Built:
    """Check the file as a whole and begin the new term in it.

    Raises:
        Damaged: SQLite's structures, the sequence or the chain are broken; names the first bad row.
        Refused: `OtherInstance` or `LedgerTooNew`.
    """
    with _open(target) as connection:
        sql.check_integrity(connection)
        sql.migrate(connection, making.time)
        identity = sql.read_identity(connection)
        if identity is None:
            raise Damaged("DatabaseDamaged", f"The ledger {target} says nothing about whose it is: it was cut short.")
        if identity.instance != making.instance:
            raise Refused(
                "OtherInstance",
                f"The ledger belongs to the instance {identity.instance}, this release is {making.instance}. Give this"
                " release a volume and a bucket prefix of its own, or the other's instance id to go on with it.",
            )
        state = fold(State(), map(parse_row, verify_rows(sql.read_rows(connection))))
        sql.write_epoch(connection, making.epoch)
    return Built(replace(identity, epoch=making.epoch), state)


@contextmanager
def _open(path: Path) -> Iterator[sqlite3.Connection]:
    try:
        with closing(sql.open_writer(path)) as connection:
            yield connection
    except sqlite3.Error as error:
        raise explain_sqlite(error, path) from error
