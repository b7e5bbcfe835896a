"""Beginning a term on a volume: every step may be the last one of its process."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from alineod.clock import SystemClock
from alineod.domain.state import State
from alineod.errors import Damaged, Fenced, Refused, Unavailable
from alineod.ledger import sql
from alineod.ledger.chain import compute_hash
from alineod.ledger.open import open_ledger
from alineod.ledger.places import Volume
from alineod.ledger.replicate import build_remote
from alineod.ledger.sqlite import SqliteLedger
from alineod.ledger.start import Opening
from alineod.settings import BucketSettings
from tests.support.memory_bucket import MemoryBucket
from tests.unit.ledger.entries import build_entry

STEPS = ("look", "claim", "build", "place", "replicate", "publish", "open", "clean", "serve")
CLOCK = SystemClock()


class Stop(Exception):
    """The process dies here."""


def die_before(step: str) -> Callable[[str], None]:
    def check(name: str) -> None:
        if name == step:
            raise Stop

    return check


async def open_volume(root: Path, epoch: int = 1, **options: object) -> SqliteLedger:
    return await open_ledger(Opening(root, "default", epoch), CLOCK, **options)  # type: ignore[arg-type]


async def read_all(root: Path, epoch: int = 1) -> tuple[list[int], State]:
    ledger = await open_volume(root, epoch)
    seqs, state = [row.seq for row in await ledger.read()], ledger.state
    await ledger.close()
    return seqs, state


async def fill(root: Path, *numbers: int) -> None:
    ledger = await open_volume(root)
    await ledger.append([build_entry(number) for number in numbers])
    await ledger.close()


def corrupt(path: Path, statement: str) -> None:
    """Someone with a SQLite of their own changes the file."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for (trigger,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {trigger}")
        connection.execute(statement)


async def test_steps_are_told_in_order(tmp_path: Path) -> None:
    steps: list[str] = []
    await (await open_volume(tmp_path, step=steps.append)).close()
    assert tuple(steps) == STEPS


async def test_a_term_has_a_directory_and_the_last_one_is_kept(tmp_path: Path) -> None:
    await fill(tmp_path / "volume", 1, 2)
    await fill(tmp_path / "volume", 3)
    assert await read_all(tmp_path / "volume", epoch=7) == ([1, 2, 3], State(seq=3))
    assert sorted(path.name for path in (tmp_path / "volume").iterdir()) == ["e000000007"]


async def test_closing_runs_no_checkpoint(tmp_path: Path) -> None:
    """Only Litestream may: rows it has not seen must stay in the log."""
    await fill(tmp_path, 1, 2)
    path = Volume(tmp_path).file(1)
    log = path.with_name("ledger.db-wal")
    assert log.stat().st_size > 0
    log.unlink()
    with closing(sql.open_reader(path)) as connection:
        assert sql.read_head(connection).seq == 0


async def test_the_secret_is_made_once(tmp_path: Path) -> None:
    first = await open_volume(tmp_path, make_secret=lambda: b"1" * 32)
    await first.close()
    second = await open_volume(tmp_path, make_secret=lambda: b"2" * 32)
    assert (second.secret, second.epoch) == (b"1" * 32, 2)
    await second.close()


@given(st.lists(st.sampled_from(STEPS), max_size=5))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_starts_that_are_cut_off_anywhere_lose_nothing(tmp_path: Path, deaths: list[str]) -> None:
    root = tmp_path / "volume"
    shutil.rmtree(root, ignore_errors=True)
    epochs = []
    for number, step in enumerate([*deaths, "never"], start=1):
        ledger = await open_volume(root)
        await ledger.append([build_entry(number)])
        epochs.append(ledger.epoch)
        await ledger.close()
        if step != "never":
            with pytest.raises(Stop):
                await open_volume(root, step=die_before(step))
    assert (await read_all(root))[0] == list(range(1, len(deaths) + 2))
    assert epochs == sorted(set(epochs))


@pytest.mark.parametrize("step", STEPS)
async def test_the_very_first_start_is_cut_off(tmp_path: Path, step: str) -> None:
    for _ in range(2):
        with pytest.raises(Stop):
            await open_volume(tmp_path, step=die_before(step))
    assert (await read_all(tmp_path))[0] == []
    await fill(tmp_path, 1)
    assert (await read_all(tmp_path))[0] == [1]
    assert [term.opened for term in Volume(tmp_path).read_terms()] == [True]


@pytest.mark.behaviour("9.1")
async def test_a_process_of_the_former_term_writes_nothing_more(tmp_path: Path) -> None:
    former = await open_volume(tmp_path)
    await former.append([build_entry(1)])
    path = Volume(tmp_path).file(1)
    with pytest.raises(Stop):
        await open_volume(tmp_path, step=die_before("place"))
    with pytest.raises(Fenced):
        await former.append([build_entry(2)])
    await former.close()
    assert path.exists()
    assert (await read_all(tmp_path))[0] == [1]


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("UPDATE events SET payload = replace(payload, 'message', 'massage') WHERE seq = 2",
         "Row 2 (harness.message, id default/survey-lead/1/2) was changed after it was written."),
        ("UPDATE events SET time = 0 WHERE seq = 1",
         "Row 1 (harness.message, id default/survey-lead/1/1) was changed after it was written."),
        ("DELETE FROM events WHERE seq = 2", "Row 2 is missing: after row 1 comes row 3."),
        ("DELETE FROM meta", "it was cut short"),
        ("DROP TABLE events", "no such table: events"),
    ],
)  # fmt: skip
@pytest.mark.behaviour("8.4")
async def test_a_tampered_ledger_is_not_opened_and_is_left_as_it_is(
    tmp_path: Path, statement: str, sentence: str
) -> None:
    await fill(tmp_path, 1, 2, 3)
    path = Volume(tmp_path).file(1)
    corrupt(path, statement)
    for _ in range(2):
        with pytest.raises(Damaged) as caught:
            await open_volume(tmp_path)
        assert sentence in caught.value.message
    assert path.exists()


@pytest.mark.parametrize("content", [b"", b"no database at all" * 400], ids=["empty", "garbage"])
async def test_a_file_that_is_no_ledger_is_not_taken_for_an_empty_one(tmp_path: Path, content: bytes) -> None:
    await fill(tmp_path, 1)
    path = Volume(tmp_path).file(1)
    path.write_bytes(content)
    with pytest.raises(Damaged):
        await open_volume(tmp_path)


async def test_a_ledger_of_another_instance_is_refused(tmp_path: Path) -> None:
    await fill(tmp_path, 1)
    with pytest.raises(Refused) as caught:
        await open_ledger(Opening(tmp_path, "other", 1), CLOCK)
    assert caught.value.reason == "OtherInstance"
    assert "belongs to the instance default, this release is other. Give this release a volume" in caught.value.message


async def test_an_event_of_a_later_version_is_refused_and_nothing_set_aside(tmp_path: Path) -> None:
    await fill(tmp_path, 1)
    path = Volume(tmp_path).file(1)
    with closing(sql.open_writer(path)) as connection:
        [row] = sql.read_rows(connection)
        odd = replace(row, seq=2, id="odd", event="agent.dreamt", payload='{"event":"agent.dreamt"}', prev=row.hash)
        odd = replace(odd, hash=compute_hash(odd))
        hashes = bytes.fromhex(odd.prev), bytes.fromhex(odd.hash)
        values = (odd.seq, odd.time, odd.id, odd.run, odd.agent, odd.event, odd.payload, *hashes)
        connection.execute(sql.INSERT_EVENTS + sql.ONE_EVENT, values)
    with pytest.raises(Refused) as caught:
        await open_volume(tmp_path)
    assert caught.value.message.startswith("Row 2 (agent.dreamt): A payload is no event this version knows")


@pytest.mark.behaviour("9.8", "9.9")
async def test_without_an_answer_of_the_bucket_nothing_begins(tmp_path: Path) -> None:
    bucket = MemoryBucket()
    bucket.failure = Unavailable("BucketUnreachable", "No answer.")
    remote = build_remote(bucket, BucketSettings("b", "", "", "r"), "default", {})
    with pytest.raises(Unavailable) as caught:
        await open_ledger(Opening(tmp_path / "volume", "default", 1), CLOCK, remote)
    assert caught.value.reason == "BucketUnreachable"
    assert not (tmp_path / "volume").exists()


async def test_a_volume_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "volume").write_text("a file where a directory should be")
    with pytest.raises(Unavailable) as caught:
        await open_volume(tmp_path / "volume")
    assert caught.value.reason == "LedgerVolumeFailed"
    assert f"The ledger's volume {tmp_path}/volume failed: " in caught.value.message
