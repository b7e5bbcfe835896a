"""The sidecar's keeper: what it starts, stops and starts again. The program is a shell script that takes notes."""

import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from alineod.bucket.keys import VARIABLE
from alineod.errors import Refused
from alineod.ledger.order import Order, read_sign_age, write_order
from alineod.ledger.sidecar import FIRST_PAUSE, SIGN, STEADY, Keeper, check_version
from alineod.settings import BucketSettings
from tests.support.secrets import mount

BUCKET = BucketSettings("b", "p", "", "r")
ORDER = Order("/data/e1/ledger.db", "default", 1, BUCKET)
LATER = Order("/data/e2/ledger.db", "default", 2, BUCKET)


class Hand:
    """A clock that is moved by hand."""

    time = 100.0

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.time, UTC)

    def monotonic(self) -> float:
        return self.time


def build_program(directory: Path, script: str) -> Path:
    program = directory / "program"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return program


def until(condition: Callable[[], bool]) -> None:
    for _ in range(1000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it did not come to be")


class Stage:
    def __init__(self, directory: Path, script: str) -> None:
        self.directory = directory
        self.clock = Hand()
        program = build_program(directory, f"cp $4 {directory}/config; echo >> {directory}/notes; {script}")
        self.keeper = Keeper(program, directory, {"PATH": "/usr/bin:/bin"}, self.clock)

    @property
    def starts(self) -> int:
        notes = self.directory / "notes"
        return notes.stat().st_size if notes.exists() else 0

    def look(self, starts: int) -> None:
        """Look until the program has been started so often."""
        until(lambda: self.keeper.look() is None and self.starts == starts)


@pytest.fixture
def stay(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path, "exec sleep 1000")
    yield stage
    stage.keeper.stop()


@pytest.fixture
def fall(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path, "exit 7")
    yield stage
    stage.keeper.stop()


def test_without_an_order_nothing_is_started(stay: Stage) -> None:
    for _ in range(3):
        stay.keeper.look()
    assert stay.keeper._process is None


def test_an_order_is_kept(stay: Stage) -> None:
    write_order(stay.directory, ORDER)
    stay.look(1)
    first = stay.keeper._process
    for _ in range(5):
        stay.keeper.look()
    assert stay.keeper._process is first
    config = json.loads((stay.directory / "config").read_text())
    assert config["dbs"][0]["path"] == "/data/e1/ledger.db"
    assert config["dbs"][0]["replica"]["path"] == "p/default/ledger/e000000001"
    assert config["socket"]["path"] == str(stay.directory / "litestream.sock")


def test_a_new_order_ends_the_old_one_at_once(stay: Stage) -> None:
    write_order(stay.directory, ORDER)
    stay.look(1)
    first = stay.keeper._process
    write_order(stay.directory, LATER)
    stay.look(2)
    assert first is not None
    assert first.returncode == -9
    assert json.loads((stay.directory / "config").read_text())["dbs"][0]["path"] == "/data/e2/ledger.db"


@pytest.mark.behaviour("11.12")
def test_new_keys_of_the_bucket_start_it_again_and_nothing_else_does(tmp_path: Path) -> None:
    stage = Stage(tmp_path, f"echo $AWS_ACCESS_KEY_ID > {tmp_path}/key; exec sleep 1000")
    keys = tmp_path / "keys"
    stage.keeper.env = {**stage.keeper.env, VARIABLE: str(keys)}

    def mount_keys(name: str) -> None:
        mount(keys, {"AWS_ACCESS_KEY_ID": name, "AWS_SECRET_ACCESS_KEY": "s"})
        stage.clock.time += SIGN

    try:
        mount_keys("old")
        write_order(stage.directory, ORDER)
        stage.look(1)
        first = stage.keeper._process
        mount_keys("old")
        stage.keeper.look()
        assert stage.keeper._process is first
        mount_keys("new")
        stage.look(2)
        until(lambda: (tmp_path / "key").read_text() == "new\n")
        (keys / "..data").unlink()
        stage.clock.time += SIGN
        stage.keeper.look()
        assert stage.starts == 2, "keys that are not there for a moment are no news"
    finally:
        stage.keeper.stop()


def test_what_falls_is_started_again_less_and_less_often(fall: Stage) -> None:
    write_order(fall.directory, ORDER)
    fall.look(1)
    for number, pause in enumerate([FIRST_PAUSE, FIRST_PAUSE * 2, FIRST_PAUSE * 4], start=1):
        until(lambda: fall.keeper.look() is None and fall.keeper._process is None)
        fall.clock.time += pause * 0.9
        fall.keeper.look()
        assert fall.keeper._process is None
        fall.clock.time += pause * 0.2
        fall.look(number + 1)


def test_what_ran_for_long_is_started_again_soon(fall: Stage) -> None:
    write_order(fall.directory, ORDER)
    fall.look(1)
    fall.keeper._pause = 10.0
    fall.clock.time += STEADY + 1
    until(lambda: fall.keeper.look() is None and fall.keeper._process is None)
    fall.clock.time += FIRST_PAUSE * 1.1
    fall.look(2)


def test_an_order_that_cannot_be_read_is_told_once_and_changes_nothing(
    stay: Stage, capfd: pytest.CaptureFixture[str]
) -> None:
    write_order(stay.directory, ORDER)
    stay.look(1)
    (stay.directory / "replicate.json").write_text("{")
    capfd.readouterr()
    for _ in range(3):
        stay.keeper.look()
    assert capfd.readouterr().err.count("cannot be read") == 1
    assert stay.keeper._process is not None


@pytest.fixture
def deaf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """One that runs, and that does not end when it is asked to."""
    stage = Stage(tmp_path, f"trap '' TERM; touch {tmp_path}/deaf; while :; do sleep 0.1; done")
    write_order(tmp_path, ORDER)
    stage.look(1)
    until((tmp_path / "deaf").exists)
    yield stage
    monkeypatch.setattr("alineod.ledger.sidecar.STOP", 0.2)
    stage.keeper.stop()


def test_one_that_does_not_end_is_killed(deaf: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("alineod.ledger.sidecar.STOP", 0.2)
    process = deaf.keeper._process
    deaf.keeper.stop()
    assert process is not None
    assert process.returncode == -9


def test_another_order_does_not_wait_for_the_one_before_to_end(deaf: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("alineod.ledger.sidecar.STOP", 600.0)
    before = deaf.keeper._process
    write_order(deaf.directory, LATER)
    deaf.look(2)
    assert before is not None
    assert before.returncode == -9


def test_the_sidecar_gives_a_sign_of_life_with_and_without_an_order(stay: Stage) -> None:
    assert read_sign_age(stay.directory) == float("inf")
    stay.keeper.look()
    sign = stay.directory / "alive"
    assert 0 <= read_sign_age(stay.directory) < 60
    sign.write_text(repr(time.monotonic() + 1e6))  # of the machine's life before this one
    assert read_sign_age(stay.directory) == float("inf")
    stay.keeper.look()
    assert read_sign_age(stay.directory) == float("inf")
    stay.clock.time += SIGN
    write_order(stay.directory, ORDER)
    stay.look(1)
    assert 0 <= read_sign_age(stay.directory) < 60


def test_only_the_proven_version_will_do(tmp_path: Path) -> None:
    check_version(build_program(tmp_path, "echo v0.5.17"))
    with pytest.raises(Refused) as caught:
        check_version(build_program(tmp_path, "echo 0.6.0"))
    assert caught.value.message == f"{tmp_path}/program says '0.6.0'; only Litestream 0.5.17 will do."
