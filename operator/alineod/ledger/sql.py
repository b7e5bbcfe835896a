"""All SQL of the ledger but its schema: statements, and the few functions that run them.

Every connection keeps `wal_autocheckpoint` at 0 and nobody here runs a checkpoint where there is a replica: only
Litestream may, because a checkpoint it did not see loses rows without a trace. Must not know about threads or the loop.
"""

import sqlite3
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from alineod.domain.events import Row
from alineod.errors import Conflict, Damaged, Fenced
from alineod.ledger.chain import Head, Plan, Stored, decide_append, parse_row
from alineod.ledger.records import Prepared
from alineod.ledger.saved import Saved

LOG_PAGES = 1000
"""How long the log of a file that nobody replicates becomes."""
BUSY_TIMEOUT = 10_000
"""Milliseconds; Litestream takes the write lock for its checkpoints."""

WRITER_PRAGMAS: Mapping[str, int | str] = {
    "journal_mode": "wal",
    "synchronous": 2,  # FULL
    "wal_autocheckpoint": 0,
    "busy_timeout": BUSY_TIMEOUT,
    "recursive_triggers": 1,  # else REPLACE deletes without asking the trigger
}
READER_PRAGMAS: Mapping[str, int | str] = {"wal_autocheckpoint": 0, "busy_timeout": BUSY_TIMEOUT, "query_only": 1}

SELECT_META = "SELECT key, value FROM meta"
SELECT_EPOCH = "SELECT value FROM meta WHERE key = 'epoch'"
INSERT_META = "INSERT INTO meta (key, value) VALUES (?, ?)"
UPDATE_EPOCH = "UPDATE meta SET value = ? WHERE key = 'epoch'"

SELECT_HEAD = "SELECT seq, hash FROM events ORDER BY seq DESC LIMIT 1"
INSERT_EVENTS = "INSERT INTO events (seq, time, id, run, agent, event, payload, prev, hash) VALUES "
ONE_EVENT = "(?, ?, ?, ?, ?, ?, ?, ?, ?)"
SELECT_EVENTS = "SELECT seq, time, id, run, agent, event, payload, prev, hash FROM events"
BY_IDS = " WHERE id IN "
BY_PLACE = " WHERE seq > :after AND seq <= :until"
BY_RUN = " AND run = :run"
BY_AGENT = " AND agent = :agent"
IN_ORDER = " ORDER BY seq LIMIT :limit"

SELECT_HASH = "SELECT hash FROM events WHERE seq = ?"
HAS_SAVED = "SELECT 1 FROM sqlite_schema WHERE name = 'saved'"
SELECT_SAVED = "SELECT seq, hash, version, body FROM saved ORDER BY seq DESC LIMIT 1"
INSERT_SAVED = "INSERT INTO saved (seq, hash, version, body) VALUES (?, ?, ?, ?)"
DELETE_SAVED = "DELETE FROM saved"

COUNT_EVENTS = "SELECT event, count(*), sum(length(payload)) FROM events GROUP BY event ORDER BY event"
SELECT_SPAN = "SELECT min(time), max(time) FROM events"

_IDS_AT_ONCE = 500
_ROWS_AT_A_TIME = 100
_ROWS_AT_ONCE = 2000
_NO_LIMIT = -1
LAST_SEQ = 2**63 - 1


@dataclass(frozen=True)
class Identity:
    """Whose ledger a file is. `epoch` is the latest term that was to write it."""

    instance: str
    secret: bytes
    epoch: int


def open_writer(path: Path, *, replicated: bool = True) -> sqlite3.Connection:
    """Open or create the file for writing. Transactions are explicit.

    Only a file that nobody replicates, nor will in this term, may do without Litestream's checkpoints: SQLite runs its
    own then, or the log would grow with every event.
    """
    connection = sqlite3.connect(path, isolation_level=None)
    own = {} if replicated else {"wal_autocheckpoint": LOG_PAGES}
    return _set_pragmas(connection, {**WRITER_PRAGMAS, **own})


def open_reader(path: Path) -> sqlite3.Connection:
    """Open an existing file, which this connection cannot change."""
    connection = sqlite3.connect(build_reader_uri(path), uri=True, isolation_level=None)
    return _set_pragmas(connection, READER_PRAGMAS)


def build_reader_uri(path: Path) -> str:
    return f"{path.absolute().as_uri()}?mode=ro"


def _set_pragmas(connection: sqlite3.Connection, pragmas: Mapping[str, int | str]) -> sqlite3.Connection:
    try:
        for name, value in pragmas.items():
            connection.execute(f"PRAGMA {name} = {value}")
            [stands] = connection.execute(f"PRAGMA {name}").fetchone()
            if stands != value:
                raise Damaged("PragmaIgnored", f"SQLite keeps {name} at {stands}; a ledger needs it at {value}.")
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Take the write lock, and commit at the end or undo everything."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def snapshot(connection: sqlite3.Connection) -> Iterator[None]:
    """Every read within sees the same state, whoever writes meanwhile."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")


def copy(connection: sqlite3.Connection, target: Path) -> None:
    """Write all that is committed to a new file. A copy that is cut off is worth nothing: no journal is kept for it."""
    with closing(sqlite3.connect(target, isolation_level=None)) as new:
        for pragma in ("journal_mode = off", "synchronous = off", "wal_autocheckpoint = 0"):
            new.execute(f"PRAGMA {pragma}")
        connection.backup(new)


def read_identity(connection: sqlite3.Connection) -> Identity | None:
    """None for a file that was created and not yet given one."""
    meta = dict(connection.execute(SELECT_META).fetchall())
    return Identity(meta["instance"], meta["secret"], meta["epoch"]) if meta else None


def write_identity(connection: sqlite3.Connection, identity: Identity) -> None:
    """Give a new ledger its identity, once."""
    with transaction(connection):
        pairs = [("instance", identity.instance), ("secret", identity.secret), ("epoch", identity.epoch)]
        connection.executemany(INSERT_META, pairs)


def write_epoch(connection: sqlite3.Connection, epoch: int) -> None:
    """Begin a term. From now on no writer of an earlier one gets anything into this file.

    Raises:
        Fenced: the file has seen a later term.
    """
    with transaction(connection):
        _check_epoch(connection, epoch)
        connection.execute(UPDATE_EPOCH, (epoch,))


Outcome = Plan | Conflict


def write_batch(
    connection: sqlite3.Connection, epoch: int, appends: Sequence[Sequence[Prepared]], time: int
) -> list[Outcome]:
    """Write all appends in one transaction; one that contradicts what stands is left out, as its Conflict says.

    Raises:
        Fenced: the file has seen a later term; nothing was written.
    """
    outcomes: list[Outcome] = []
    with transaction(connection):
        _check_epoch(connection, epoch)
        head = read_head(connection)
        standing = _read_standing(connection, [entry.id for entries in appends for entry in entries])
        written: dict[str, Row] = {}
        for entries in appends:
            try:
                plan = decide_append(entries, ChainMap(written, standing), head, time)
            except Conflict as conflict:
                outcomes.append(conflict)
                continue
            head = plan.head
            written.update((row.id, row) for row in plan.added)
            outcomes.append(plan)
        new = [row for plan in outcomes if isinstance(plan, Plan) for row in plan.new]
        _insert(connection, new)
    return outcomes


def _insert(connection: sqlite3.Connection, rows: Sequence[Stored]) -> None:
    """Many rows by each statement: after each one this thread has to wait until the loop lets it go on."""
    for start in range(0, len(rows), _ROWS_AT_A_TIME):
        some = rows[start : start + _ROWS_AT_A_TIME]
        values = [value for row in some for value in _build_record(row)]
        connection.execute(INSERT_EVENTS + ", ".join([ONE_EVENT] * len(some)), values)


def write_saved(connection: sqlite3.Connection, epoch: int, saved: Saved) -> None:
    """Keep a fold instead of the one that was kept.

    Raises:
        Fenced: the file has seen a later term.
    """
    with transaction(connection):
        _check_epoch(connection, epoch)
        connection.execute(DELETE_SAVED)
        record = (saved.head.seq, bytes.fromhex(saved.head.hash), saved.version, saved.body)
        connection.execute(INSERT_SAVED, record)


def read_saved(connection: sqlite3.Connection) -> Saved | None:
    """The fold that is kept, if the event it ends with stands as it was."""
    if connection.execute(HAS_SAVED).fetchone() is None:
        return None  # a file of an earlier version
    found = connection.execute(SELECT_SAVED).fetchone()
    if found is None:
        return None
    seq, hash_, version, body = found
    stands = connection.execute(SELECT_HASH, (seq,)).fetchone() == (hash_,)
    return Saved(Head(seq, hash_.hex()), version, body) if stands else None


def read_head(connection: sqlite3.Connection) -> Head:
    found = connection.execute(SELECT_HEAD).fetchone()
    return Head(found[0], found[1].hex()) if found else Head()


def read_rows(connection: sqlite3.Connection, after: int = 0, until: int = LAST_SEQ) -> Iterator[Stored]:
    """Every row above `after` up to `until`, in order, a few thousand in memory at a time."""
    sql, parameters = build_select(None, None, after, until, _NO_LIMIT)
    cursor = connection.execute(sql, parameters)
    while records := cursor.fetchmany(_ROWS_AT_ONCE):
        yield from map(parse_record, records)


def build_select(
    run: str | None, agent: str | None, after: int, until: int, limit: int
) -> tuple[str, dict[str, str | int | None]]:
    """The statement and parameters for rows in order, above `after` up to `until`."""
    sql = SELECT_EVENTS + BY_PLACE + (BY_RUN if run is not None else "") + (BY_AGENT if agent is not None else "")
    return sql + IN_ORDER, {"run": run, "agent": agent, "after": after, "until": until, "limit": limit}


def parse_record(record: Sequence[object]) -> Stored:
    """A row of `SELECT_EVENTS`."""
    seq, time, id_, run, agent, event, payload, prev, hash_ = record
    # The columns are STRICT, so SQLite vouches for the types.
    return Stored(seq, time, id_, run, agent, event, payload, prev.hex(), hash_.hex())  # type: ignore[arg-type,attr-defined]


def check_integrity(connection: sqlite3.Connection, *, quick: bool = False) -> None:
    """Have SQLite check its own structures; `quick` leaves out whether tables and indexes agree.

    Raises:
        Damaged: with SQLite's first finding.
    """
    [finding] = connection.execute(f"PRAGMA {'quick' if quick else 'integrity'}_check(1)").fetchone()
    if finding != "ok":
        raise Damaged("DatabaseDamaged", f"SQLite finds the ledger's file damaged: {finding}.")


def _check_epoch(connection: sqlite3.Connection, epoch: int) -> None:
    found = connection.execute(SELECT_EPOCH).fetchone()
    if found is None:
        raise Damaged("DatabaseDamaged", "The ledger says nothing about whose it is: it was cut short.")
    if found[0] > epoch:
        raise Fenced("LaterTerm", f"The ledger was opened under term {found[0]}; this process has term {epoch}.")


def _read_standing(connection: sqlite3.Connection, ids: Sequence[str]) -> dict[str, Row]:
    standing: dict[str, Row] = {}
    for start in range(0, len(ids), _IDS_AT_ONCE):
        some = ids[start : start + _IDS_AT_ONCE]
        marks = "(" + ",".join("?" * len(some)) + ")"
        found = connection.execute(SELECT_EVENTS + BY_IDS + marks, some)
        standing.update((record[2], parse_row(parse_record(record))) for record in found)
    return standing


def _build_record(row: Stored) -> tuple[object, ...]:
    hashes = bytes.fromhex(row.prev), bytes.fromhex(row.hash)
    return (row.seq, row.time, row.id, row.run, row.agent, row.event, row.payload, *hashes)
