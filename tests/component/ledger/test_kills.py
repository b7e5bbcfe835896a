"""Processes that are killed at random while they write: what was acknowledged is there afterwards, once, in order."""

import dataclasses
import json
import random
import shutil
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from alineod.clock import SystemClock
from alineod.ledger import sql
from alineod.ledger.chain import verify_rows
from alineod.ledger.open import open_ledger
from alineod.ledger.places import Volume
from alineod.ledger.start import Opening
from tests.component.ledger.appender import CODE
from tests.component.ledger.conftest import Program, World

ROUNDS = 3
CHANCE = random.Random(0)


def start_appender(world: World, opening: Opening, round_: int, run: str | None = None) -> Program:
    """With a bucket, and the sidecar that looks into `run`, if one is named."""
    order = {
        "volume": str(opening.volume), "instance": opening.instance, "epoch": opening.epoch,
        "run": str(world.directory / run) if run else "", "bucket": dataclasses.asdict(world.bucket) if run else None,
        "clients": 8, "round": round_,
    }  # fmt: skip
    return Program(CODE, json.dumps(order), env=world.build_env(), stdout=subprocess.PIPE)


def read_until_killed(program: Program, *victims: Program) -> list[dict[str, Any]]:
    """Kill after a random number of acknowledgements; returns all that reached the pipe."""
    assert program.process.stdout is not None
    opened = json.loads(program.process.stdout.readline())
    assert "opened" in opened
    lines = [program.process.stdout.readline() for _ in range(CHANCE.randint(1, 60))]
    time.sleep(CHANCE.random() * 0.2)
    for victim in (program, *victims):
        victim.kill()
    with program.process.stdout as rest:
        lines += rest.read().splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith(b"\n")]


def check(path: Path, acknowledged: list[dict[str, Any]]) -> int:
    """The file holds every acknowledged row as it was acknowledged; returns how many rows it has."""
    with closing(sql.open_reader(path)) as connection:
        sql.check_integrity(connection)
        rows = {row.seq: row for row in verify_rows(sql.read_rows(connection))}
    assert len({row.id for row in rows.values()}) == len(rows)
    lost = [line for line in acknowledged if line["seq"] not in rows]
    assert lost == []
    assert all((rows[line["seq"]].id, rows[line["seq"]].hash) == (line["id"], line["hash"]) for line in acknowledged)
    return len(rows)


@pytest.mark.behaviour("8.3", "8.4", "9.5")
def test_killed_without_a_bucket(world: World) -> None:
    acknowledged: list[dict[str, Any]] = []
    opening = world.build_opening()
    for round_ in range(ROUNDS):
        acknowledged += read_until_killed(start_appender(world, opening, round_))
        volume = Volume(opening.volume)
        check(volume.file(max(term.epoch for term in volume.read_terms() if term.opened)), acknowledged)
    assert len(acknowledged) > ROUNDS


@pytest.mark.behaviour("9.3", "9.4", "9.6")
async def test_killed_with_everything_on_its_node(world: World, start_sidecar: Callable[..., Program]) -> None:
    """Writer, Litestream and volume go at once; what is left is the bucket."""
    acknowledged: list[dict[str, Any]] = []
    epochs = []
    for round_ in range(ROUNDS):
        sidecar = start_sidecar(f"run{round_}")
        opening = world.build_opening(f"volume{round_}")
        program = start_appender(world, opening, round_, f"run{round_}")
        acknowledged += read_until_killed(program, sidecar)
        shutil.rmtree(opening.volume)

        start_sidecar(f"check{round_}")
        again = world.build_opening(f"check{round_}")
        ledger = await open_ledger(again, SystemClock(), world.build_remote(f"check{round_}"))
        epochs.append(ledger.epoch)
        rows = check(Volume(again.volume).file(ledger.epoch), acknowledged)
        assert ledger.acknowledged_seq == rows
        await ledger.close()
    assert epochs == [2 * (round_ + 1) for round_ in range(ROUNDS)]


def test_killed_on_a_node_that_stays(world: World, start_sidecar: Callable[..., Program]) -> None:
    """The same pod starts again and again, over the same volume and the same sidecar, which is killed too at times."""
    acknowledged: list[dict[str, Any]] = []
    sidecar = start_sidecar()
    opening = world.build_opening()
    for round_ in range(ROUNDS):
        program = start_appender(world, opening, round_, "run")
        if round_ % 2:
            acknowledged += read_until_killed(program, sidecar)
            sidecar = start_sidecar()
        else:
            acknowledged += read_until_killed(program)
    volume = Volume(opening.volume)
    check(volume.file(max(term.epoch for term in volume.read_terms() if term.opened)), acknowledged)
