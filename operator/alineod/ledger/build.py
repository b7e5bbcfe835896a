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
from alineod.errors import Damaged, NotFound, Refused
from alineod.ledger import schema, sql
from alineod.ledger.chain import Head, parse_row, verify_rows
from alineod.ledger.failures import explain_sqlite
from alineod.ledger.saved import build_saved, parse_saved


@dataclass(frozen=True)
class Making:
    """What a new term's file is to be: whose, in which term, made when (microseconds), with a secret from where.

    `whole`: every row is checked and folded, whether a fold is kept in the file or not.
    """

    instance: str
    epoch: int
    time: int
    make_secret: Callable[[], bytes]
    whole: bool = True


@dataclass(frozen=True)
class Built:
    """A file that may go into service, and the fold of all its rows; `whole`: each of them was checked."""

    identity: sql.Identity
    state: State
    whole: bool


def build_new(target: Path, making: Making) -> Built:
    """An empty ledger."""
    with _open(target) as connection:
        schema.migrate(connection, making.time)
        sql.write_identity(connection, sql.Identity(making.instance, making.make_secret(), making.epoch))
    return check_restored(target, making)


def build_copy(source: Path, target: Path, making: Making) -> Built:
    """A copy of an earlier term's file, which takes no writer of an earlier term from now on.

    Raises:
        Damaged: see `check_restored`.
        Fenced: the source has seen a later term.
    """
    with _open(source) as old:
        sql.write_epoch(old, making.epoch)
        sql.copy(old, target)
    return check_restored(target, making)


def check_restored(target: Path, making: Making) -> Built:
    """Check the file, but for rows that a fold in it stands for, and begin the new term in it.

    Raises:
        Damaged: SQLite's structures, the sequence or the chain are broken; names the first bad row.
        Refused: `OtherInstance` or `LedgerTooNew`.
    """
    with _open(target) as connection:
        kept = None if making.whole else read_kept(connection)
        sql.check_integrity(connection, quick=kept is not None)
        schema.migrate(connection, making.time)
        identity = sql.read_identity(connection)
        if identity is None:
            raise Damaged("DatabaseDamaged", f"The ledger {target} says nothing about whose it is: it was cut short.")
        if identity.instance != making.instance:
            raise Refused(
                "OtherInstance",
                f"The ledger belongs to the instance {identity.instance}, this release is {making.instance}. Give this"
                " release a volume and a bucket prefix of its own, or the other's instance id to go on with it.",
            )
        state = fold_rows(connection, kept or NOTHING)
        sql.write_epoch(connection, making.epoch)
        if state.seq > (kept or NOTHING).state.seq:
            saved = build_saved(state, sql.read_head(connection).hash)
            if saved is not None:
                sql.write_saved(connection, making.epoch, saved)
    return Built(replace(identity, epoch=making.epoch), state, whole=kept is None)


@dataclass(frozen=True)
class Kept:
    """A fold, and the row it ends with."""

    state: State
    head: Head


NOTHING = Kept(State(), Head())


def read_kept(connection: sqlite3.Connection) -> Kept | None:
    """The fold that is kept in the file, if there is one and this version may go on from it."""
    saved = sql.read_saved(connection)
    state = parse_saved(saved) if saved is not None else None
    return Kept(state, saved.head) if state is not None and saved is not None else None


def fold_rows(connection: sqlite3.Connection, kept: Kept, until: int = sql.LAST_SEQ) -> State:
    """Go on from `kept` with every row after it, checked, up to `until`.

    Raises:
        Damaged: the sequence or the chain is broken; names the first bad row.
        Refused: `UnknownEvent`.
    """
    rows = verify_rows(sql.read_rows(connection, kept.head.seq, until), kept.head)
    return fold(kept.state, map(parse_row, rows))


def verify_file(path: Path) -> Head:
    """Check every row of a file, and the fold that is kept in it; nothing is changed. Returns the last row.

    Raises:
        NotFound: there is no such file.
        Damaged: names the first bad row, or says that the fold is not that of the rows.
        Refused: `UnknownEvent`.
    """
    with open_reading(path) as connection:
        return verify_connection(connection)


def verify_connection(connection: sqlite3.Connection) -> Head:
    """The same over an open one."""
    with sql.snapshot(connection):
        sql.check_integrity(connection)
        kept = read_kept(connection)
        if kept is not None and fold_rows(connection, NOTHING, kept.head.seq) != kept.state:
            raise Damaged("FoldBroken", f"The fold kept in the ledger is not that of its rows 1 to {kept.head.seq}.")
        head = (kept or NOTHING).head
        for row in verify_rows(sql.read_rows(connection, head.seq), head):
            head = Head(row.seq, row.hash)
    return head


@contextmanager
def open_reading(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that cannot change the file; what SQLite says is raised as ours.

    Raises:
        NotFound: there is no such file.
    """
    try:
        with closing(sql.open_reader(path)) as connection:
            yield connection
    except sqlite3.Error as error:
        if not path.exists():
            raise NotFound("NoLedger", f"There is no file {path}.") from error
        raise explain_sqlite(error, path) from error


@contextmanager
def _open(path: Path) -> Iterator[sqlite3.Connection]:
    try:
        with closing(sql.open_writer(path)) as connection:
            yield connection
    except sqlite3.Error as error:
        raise explain_sqlite(error, path) from error
