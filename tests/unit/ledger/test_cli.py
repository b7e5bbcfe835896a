"""`alineod ledger`: what it prints, and how it ends."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from alineod.clock import SystemClock
from alineod.domain.events import Row
from alineod.errors import NotFound
from alineod.ledger import sql
from alineod.ledger.chain import Stored, compute_hash
from alineod.ledger.cli import main
from alineod.ledger.open import Opening, open_ledger
from alineod.ledger.places import Volume
from tests.unit.ledger.entries import build_entry, build_text
from tests.unit.ledger.test_open import corrupt


@pytest.fixture
async def rows(tmp_path: Path) -> Sequence[Row]:
    ledger = await open_ledger(Opening(tmp_path, "default", 1), SystemClock())
    rows = await ledger.append([build_entry(1), build_entry(2, run="default/b", agent="default/b-x"), build_text("ü")])
    await ledger.close()
    return rows


def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main(list(arguments), {"ALINEOD_LEDGER_DIR": str(tmp_path)})
    return code, *capsys.readouterr()


def test_verify(tmp_path: Path, capsys: pytest.CaptureFixture[str], rows: Sequence[Row]) -> None:
    sentence = f"3 rows without a gap, chain intact; the last one is {rows[-1].hash}.\n"
    assert run(tmp_path, capsys, "verify") == (0, sentence, "")
    assert run(tmp_path, capsys, "verify", "--epoch", "1") == (0, sentence, "")
    assert run(tmp_path, capsys, "verify", "--file", str(Volume(tmp_path).file(1))) == (0, sentence, "")


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("UPDATE events SET payload = '{}' WHERE seq = 2",
         "Row 2 (harness.message, id default/b-x/1/2) was changed after it was written.\n"),
        ("DELETE FROM events WHERE seq = 1", "Row 1 is missing: after row 0 comes row 2.\n"),
        ("UPDATE events SET hash = zeroblob(32) WHERE seq = 3",
         "Row 3 (agent.steered, id text) was changed after it was written.\n"),
    ],
)  # fmt: skip
@pytest.mark.behaviour("8.4")
def test_verify_names_the_first_bad_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rows: Sequence[Row], statement: str, sentence: str
) -> None:
    corrupt(Volume(tmp_path).file(1), statement)
    assert run(tmp_path, capsys, "verify") == (1, "", sentence)


def test_dump_is_json_lines_that_can_be_verified(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rows: Sequence[Row]
) -> None:
    _, out, _ = run(tmp_path, capsys, "dump")
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["seq"] for line in lines] == [1, 2, 3]
    assert lines[2] == {
        "seq": 3, "time": rows[2].time, "id": "text", "run": "default/survey", "agent": "default/survey-lead",
        "event": "agent.steered", "payload": {"event": "agent.steered", "turn": 1, "text": "ü"},
        "prev": rows[1].hash, "hash": rows[2].hash,
    }  # fmt: skip
    line = lines[2]
    payload = json.dumps(line["payload"], ensure_ascii=False, separators=(",", ":"))
    time = round(line["time"] * 1_000_000)
    again = Stored(3, time, line["id"], line["run"], line["agent"], line["event"], payload, line["prev"], "")
    assert compute_hash(again) == line["hash"]


@pytest.mark.parametrize(
    ("arguments", "seqs"),
    [
        (["--run", "default/survey"], [1, 3]),
        (["--agent", "default/b-x"], [2]),
        (["--after", "1"], [2, 3]),
        (["--after", "1", "--limit", "1"], [2]),
        (["--run", "nobody/none"], []),
    ],
)
def test_dump_of_a_part(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rows: Sequence[Row], arguments: list[str], seqs: list[int]
) -> None:
    code, out, _ = run(tmp_path, capsys, "dump", *arguments)
    assert (code, [json.loads(line)["seq"] for line in out.splitlines()]) == (0, seqs)


def test_stats(tmp_path: Path, capsys: pytest.CaptureFixture[str], rows: Sequence[Row]) -> None:
    _, out, _ = run(tmp_path, capsys, "stats")
    found = json.loads(out)
    assert (found["instance"], found["epoch"], found["seq"]) == ("default", 1, 3)
    assert (found["hash"], found["firstTime"], found["lastTime"]) == (rows[-1].hash, rows[0].time, rows[-1].time)
    assert {event: counts["rows"] for event, counts in found["events"].items()} == {
        "agent.steered": 1, "harness.message": 2,
    }  # fmt: skip


def test_looking_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str], rows: Sequence[Row]) -> None:
    path = Volume(tmp_path).file(1)
    before = path.read_bytes(), path.with_name("ledger.db-wal").read_bytes()
    for verb in ("verify", "dump", "stats"):
        run(tmp_path, capsys, verb)
    assert (path.read_bytes(), path.with_name("ledger.db-wal").read_bytes()) == before
    with closing(sql.open_reader(path)) as connection:
        assert sql.read_head(connection).seq == 3


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--file", "none.db"], "There is no file none.db."),
        (["--dir", "none"], "There is no ledger in none. Name another --dir or --file."),
        (["--epoch", "7"], "There is no ledger of term 7 in "),
    ],
)
def test_no_ledger_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rows: Sequence[Row], arguments: list[str], sentence: str
) -> None:
    with pytest.raises(NotFound) as caught:
        run(tmp_path, capsys, "verify", *arguments)
    assert caught.value.message.startswith(sentence)


def test_a_wrong_verb_is_a_wrong_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        run(tmp_path, capsys, "repair")
    assert caught.value.code == 2


async def test_a_reader_who_has_seen_enough(tmp_path: Path) -> None:
    ledger = await open_ledger(Opening(tmp_path, "default", 1), SystemClock())
    await ledger.append([build_entry(number, text="x" * 1000) for number in range(500)])
    await ledger.close()
    code = "import sys; from alineod.ledger.cli import main; sys.exit(main(['dump', '--dir', sys.argv[1]], {}))"
    source = str(Path(sql.__file__).parents[2])
    with subprocess.Popen(  # noqa: ASYNC220  (nothing else runs on this loop)
        [sys.executable, "-c", code, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": source},
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0
