"""The schema of the ledger's file, and how a file is brought up to date. Must not know what is in it."""

import sqlite3
from collections.abc import Sequence

from alineod.errors import Refused
from alineod.ledger.sql import transaction

# Applied in order, each in a transaction of its own that records it. Never changed once released.
MIGRATIONS: Sequence[tuple[str, Sequence[str]]] = [
    (
        "events",
        [
            """CREATE TABLE meta (key TEXT PRIMARY KEY, value ANY NOT NULL) STRICT, WITHOUT ROWID""",
            """CREATE TRIGGER meta_is_kept BEFORE UPDATE ON meta
               WHEN NEW.key IS NOT OLD.key OR NEW.key <> 'epoch' OR NEW.value < OLD.value
               BEGIN SELECT RAISE(ABORT, 'only the epoch changes, and only upwards'); END""",
            """CREATE TRIGGER meta_stays BEFORE DELETE ON meta
               BEGIN SELECT RAISE(ABORT, 'the identity of a ledger is never deleted'); END""",
            """CREATE TABLE events (
                 seq INTEGER PRIMARY KEY,
                 id TEXT NOT NULL UNIQUE,
                 time INTEGER NOT NULL,
                 run TEXT NOT NULL,
                 agent TEXT,
                 event TEXT NOT NULL,
                 payload TEXT NOT NULL,
                 prev BLOB NOT NULL,
                 hash BLOB NOT NULL
               ) STRICT""",
            """CREATE INDEX events_of_run ON events (run, seq)""",
            """CREATE INDEX events_of_agent ON events (agent, seq) WHERE agent IS NOT NULL""",
            """CREATE TRIGGER events_follow BEFORE INSERT ON events
               WHEN NEW.seq IS NOT (SELECT coalesce(max(seq), 0) + 1 FROM events)
               BEGIN SELECT RAISE(ABORT, 'a row follows the last one without a gap'); END""",
            """CREATE TRIGGER events_stand BEFORE UPDATE ON events
               BEGIN SELECT RAISE(ABORT, 'events are never changed'); END""",
            """CREATE TRIGGER events_stay BEFORE DELETE ON events
               BEGIN SELECT RAISE(ABORT, 'events are never deleted'); END""",
        ],
    ),
    (
        "saved",
        [
            """CREATE TABLE saved (
                 seq INTEGER PRIMARY KEY, hash BLOB NOT NULL, version TEXT NOT NULL, body BLOB NOT NULL) STRICT""",
        ],
    ),
]

CREATE_MIGRATIONS = """CREATE TABLE IF NOT EXISTS migrations (
  version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT"""
SELECT_VERSION = "SELECT coalesce(max(version), 0) FROM migrations"
INSERT_MIGRATION = "INSERT INTO migrations (version, name, applied_at) VALUES (?, ?, ?)"


def migrate(connection: sqlite3.Connection, time: int) -> None:
    """Bring the schema up to date. Safe to run again, and to be killed in the middle of.

    Raises:
        Refused: `LedgerTooNew`.
    """
    connection.execute(CREATE_MIGRATIONS)
    [version] = connection.execute(SELECT_VERSION).fetchone()
    if version > len(MIGRATIONS):
        raise Refused(
            "LedgerTooNew",
            f"The ledger has schema version {version}, this program knows {len(MIGRATIONS)}. Use the version of"
            " alineod that wrote it or a later one.",
        )
    for number, (name, statements) in enumerate(MIGRATIONS[version:], start=version + 1):
        with transaction(connection):
            for statement in statements:
                connection.execute(statement)
            connection.execute(INSERT_MIGRATION, (number, name, time))
