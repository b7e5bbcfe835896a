"""The file: schema, pragmas, what it refuses, and what a process that is stopped in the middle leaves."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from alineod.errors import Conflict, Damaged, Fenced, Refused
from alineod.ledger import schema, sql
from alineod.ledger.chain import Head, Plan, verify_rows
from alineod.ledger.failures import explain_sqlite
from alineod.ledger.records import prepare_entries
from tests.unit.ledger.entries import build_entry, build_text

TIME = 1_700_000_000_000_000
IDENTITY = sql.Identity("default", b"s" * 32, 3)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def connection(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sql.open_writer(path)) as made:
        schema.migrate(made, TIME)
        sql.write_identity(made, IDENTITY)
        yield made


def append(connection: sqlite3.Connection, *numbers: int, epoch: int = 3) -> list[Plan | Conflict]:
    appends = [prepare_entries([build_entry(number)]) for number in numbers]
    return sql.write_batch(connection, epoch, appends, TIME)


def test_pragmas_stand(path: Path, connection: sqlite3.Connection) -> None:
    assert connection.execute("PRAGMA wal_autocheckpoint").fetchone() == (0,)
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    with closing(sql.open_reader(path)) as reader:
        assert reader.execute("PRAGMA wal_autocheckpoint").fetchone() == (0,)
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            reader.execute("INSERT INTO meta VALUES ('x', 1)")


def test_a_pragma_that_is_ignored_is_refused() -> None:
    with pytest.raises(Damaged) as caught:
        sql.open_writer(Path(":memory:"))  # has no write-ahead log
    assert caught.value.message == "SQLite keeps journal_mode at memory; a ledger needs it at wal."


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("UPDATE events SET payload = '{}' WHERE seq = 1", "events are never changed"),
        ("DELETE FROM events WHERE seq = 2", "events are never deleted"),
        ("DELETE FROM events", "events are never deleted"),
        ("REPLACE INTO events SELECT * FROM events WHERE seq = 2", "a row follows the last one without a gap"),
        ("REPLACE INTO events SELECT 3, id, time, run, agent, event, payload, prev, hash FROM events WHERE seq = 2",
         "events are never deleted"),
        ("INSERT INTO events SELECT 4, 'x', time, run, agent, event, payload, prev, hash FROM events WHERE seq = 2",
         "a row follows the last one without a gap"),
        ("INSERT INTO events SELECT 3, id, time, run, agent, event, payload, prev, hash FROM events WHERE seq = 2",
         "UNIQUE constraint failed: events.id"),
        ("UPDATE meta SET value = 2 WHERE key = 'epoch'", "only the epoch changes, and only upwards"),
        ("UPDATE meta SET value = x'00' WHERE key = 'secret'", "only the epoch changes, and only upwards"),
        ("UPDATE meta SET key = 'x' WHERE key = 'epoch'", "only the epoch changes, and only upwards"),
        ("DELETE FROM meta", "the identity of a ledger is never deleted"),
    ],
)  # fmt: skip
@pytest.mark.behaviour("8.3")
def test_the_file_refuses_what_would_change_history(
    connection: sqlite3.Connection, statement: str, sentence: str
) -> None:
    append(connection, 1, 2)
    with pytest.raises(sqlite3.IntegrityError, match=sentence):
        connection.execute(statement)
    assert [row.seq for row in verify_rows(sql.read_rows(connection))] == [1, 2]


@pytest.mark.behaviour("9.1")
def test_a_writer_of_an_earlier_term_is_refused(path: Path, connection: sqlite3.Connection) -> None:
    append(connection, 1)
    with closing(sql.open_writer(path)) as later:
        sql.write_epoch(later, 5)
    with pytest.raises(Fenced) as caught:
        append(connection, 2)
    assert caught.value.message == "The ledger was opened under term 5; this process has term 3."
    with pytest.raises(Fenced):
        sql.write_epoch(connection, 4)
    assert sql.read_head(connection).seq == 1


def test_one_append_of_a_batch_that_conflicts_leaves_the_others(connection: sqlite3.Connection) -> None:
    appends = [
        prepare_entries(entries)
        for entries in (
            [build_text("a", id="x")],
            [build_entry(1), build_text("b", id="x", agent="n/o")],
            [build_entry(2)],
        )
    ]
    one, two, three = sql.write_batch(connection, 3, appends, TIME)
    assert isinstance(two, Conflict)
    assert isinstance(one, Plan)
    assert isinstance(three, Plan)
    assert [row.id for row in sql.read_rows(connection)] == ["x", "default/survey-lead/1/2"]
    assert sql.read_head(connection) == three.head


def test_the_same_id_twice_in_a_batch_stands_once(connection: sqlite3.Connection) -> None:
    plans = append(connection, 1, 1, 2, 1)
    assert [plan.rows[0].seq for plan in plans if isinstance(plan, Plan)] == [1, 1, 2, 1]
    assert len(list(sql.read_rows(connection))) == 2


def test_thousands_of_ids_in_a_batch(connection: sqlite3.Connection) -> None:
    append(connection, *range(1, 1600))
    plans = append(connection, *range(1, 1601))
    assert [plan.rows[0].seq for plan in plans if isinstance(plan, Plan)] == list(range(1, 1601))
    list(verify_rows(sql.read_rows(connection)))


def test_an_empty_file_has_no_head_and_no_identity(path: Path) -> None:
    with closing(sql.open_writer(path)) as made:
        schema.migrate(made, TIME)
        assert sql.read_identity(made) is None
        assert sql.read_head(made) == Head()


def test_identity_is_kept(connection: sqlite3.Connection) -> None:
    sql.write_epoch(connection, 9)
    assert sql.read_identity(connection) == sql.Identity("default", b"s" * 32, 9)
    with pytest.raises(sqlite3.IntegrityError):
        sql.write_identity(connection, IDENTITY)


class Stop(Exception):
    """The process dies here."""


class Mortal(sqlite3.Connection):
    """Dies before its statement number `left`; what it had begun is gone with it."""

    left = 0

    def execute(self, *args: Any) -> sqlite3.Cursor:
        self.left -= 1
        if self.left == 0:
            self.close()
            raise Stop
        return super().execute(*args)


def migrate_until(path: Path, statement: int) -> bool:
    """Whether the process lived long enough."""
    with closing(sqlite3.connect(path, isolation_level=None, factory=Mortal)) as connection:
        connection.left = statement
        try:
            schema.migrate(connection, TIME)
        except (Stop, sqlite3.ProgrammingError):
            return False
    return True


def test_a_migration_that_is_cut_off_is_done_again(tmp_path: Path) -> None:
    """Stopped before each statement in turn: the next start finds all of a migration or nothing of it."""
    cuts = 0
    while not migrate_until(path := tmp_path / f"{cuts}.db", cuts + 1):
        cuts += 1
        with closing(sql.open_writer(path)) as again:
            found = {name for (name,) in again.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
            assert found in (set(), {"migrations"}, {"migrations", "meta", "events"})
            schema.migrate(again, TIME)
            sql.write_identity(again, IDENTITY)
            append(again, 1)
            assert again.execute("SELECT count(*) FROM migrations").fetchone() == (len(schema.MIGRATIONS),)
    assert cuts > sum(len(statements) for _, statements in schema.MIGRATIONS)


def test_a_ledger_of_a_later_version_is_refused(connection: sqlite3.Connection) -> None:
    connection.execute(schema.INSERT_MIGRATION, (99, "from the future", TIME))
    with pytest.raises(Refused) as caught:
        schema.migrate(connection, TIME)
    assert caught.value.reason == "LedgerTooNew"
    assert "schema version 99, this program knows 2. Use the version of alineod that wrote it" in caught.value.message


def test_a_damaged_file_is_found(path: Path, connection: sqlite3.Connection) -> None:
    append(connection, *range(1, 200))
    connection.close()
    data = bytearray(path.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 3000] = b"\x5a" * 3000
    path.write_bytes(data)
    with closing(sql.open_writer(path)) as damaged, pytest.raises((Damaged, sqlite3.DatabaseError)) as caught:
        sql.check_integrity(damaged)
    found = caught.value
    failure = explain_sqlite(found, path) if isinstance(found, sqlite3.Error) else found
    assert isinstance(failure, Damaged)
    assert failure.reason == "DatabaseDamaged"


def test_a_failed_transaction_leaves_nothing(connection: sqlite3.Connection) -> None:
    def fail() -> None:
        with sql.transaction(connection):
            connection.execute("UPDATE meta SET value = 7 WHERE key = 'epoch'")
            raise Stop

    with pytest.raises(Stop):
        fail()
    assert not connection.in_transaction
    assert sql.read_identity(connection) == IDENTITY
