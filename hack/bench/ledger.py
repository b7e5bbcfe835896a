"""`python3 -m hack.bench.ledger [--short]`: what a confirmed acknowledgement takes, against its goals.

The real ledger, its sidecar and the real Litestream, with a bucket whose answers are 20 ms late. In turn with it, on
the same machine and the same bucket: plain SQLite with Litestream uploading once a second.
"""

import argparse
import asyncio
import os
import platform
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from alineod.bucket.s3 import S3Bucket, build_options
from alineod.clock import SystemClock
from alineod.ledger.open import open_ledger
from alineod.ledger.replicate import build_remote
from alineod.ledger.sqlite import SqliteLedger
from alineod.ledger.start import Opening
from hack.bench.ledger_load import Append, Cell, Client, build_beginning, build_clients, run_closed, run_paced
from hack.bench.ledger_raw import RawLog, open_raw
from hack.bench.ledger_report import (
    GOAL_CELL,
    Rounds,
    build_table,
    compute_figures,
    compute_median,
    compute_minutes,
    decide_goals,
)
from hack.bench.ledger_world import INSTANCE, World, measure_disk, running_world
from hack.bench.table import describe_machine
from hack.demo.show import Show

LATE = 0.02
CELLS = [Cell(clients, batch) for clients in (1, 32, 256) for batch in (1, 10, 100)]
EVERY = 0.5
"""Seconds between two appends of a client under the steady load: far below what the ledger can take, so that a change
of p50 is of its age and not of a queue."""


@dataclass(frozen=True)
class Plan:
    """Seconds before a cell is measured and of its measure, how often, and the parts of the steady load."""

    warm: float = 1.0
    measure: float = 4.0
    rounds: int = 3
    minute: float = 60.0
    minutes: int = 6


SHORT = Plan(warm=0.5, measure=1.5, rounds=1, minute=5.0, minutes=3)


@dataclass
class Found:
    """What was measured, and the machine's load average (one minute) whenever a part was over."""

    ours: Rounds = field(default_factory=lambda: {cell: [] for cell in CELLS})
    raw: Rounds = field(default_factory=lambda: {cell: [] for cell in CELLS})
    minutes: Sequence[float] = ()
    loads: list[float] = field(default_factory=list)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m hack.bench.ledger", description=__doc__)
    parser.add_argument("--short", action="store_true", help="a minute or so, for development: its figures say little")
    plan = SHORT if parser.parse_args(arguments).short else Plan()
    with tempfile.TemporaryDirectory(prefix="alineod-bench-") as name, running_world(Path(name), LATE) as world:
        os.environ.update(world.store.env)  # where the operator's S3 client looks for its keys
        disk = measure_disk(world.directory)
        found = asyncio.run(_measure(world, plan, Show(sys.stderr)))
    print("\n".join(_build_report(found, plan, disk)))
    return 0


async def _measure(world: World, plan: Plan, show: Show) -> Found:
    found, clients = Found(), build_clients()
    ledger = await _open_ledger(world)
    await ledger.append(list(build_beginning(clients)))
    async with open_raw(world) as raw:
        for number in range(plan.rounds):
            with show.step(f"round {number + 1} of {plan.rounds}"):
                await _measure_round(ledger, raw, clients, plan, found)
    with show.step(f"steady load for {plan.minutes} × {plan.minute:.0f} s"):
        cell, begin = GOAL_CELL, time.monotonic()
        length = plan.minutes * plan.minute
        samples = await run_paced(ledger.append, clients[: cell.clients], cell.batch, EVERY, length)
        found.minutes = compute_minutes(samples, begin, plan.minute, plan.minutes)
        found.loads.append(os.getloadavg()[0])
    await ledger.close()
    return found


async def _measure_round(ours: SqliteLedger, raw: RawLog, clients: Sequence[Client], plan: Plan, found: Found) -> None:
    """Every cell, the ledger and the other in turn."""
    for cell in CELLS:
        await _measure_cell(ours.append, clients, cell, plan, found.ours)
        await _measure_cell(raw.append, clients, cell, plan, found.raw)
        await raw.settle()
    found.loads.append(os.getloadavg()[0])


async def _measure_cell(append: Append, clients: Sequence[Client], cell: Cell, plan: Plan, into: Rounds) -> None:
    begin = time.monotonic() + plan.warm
    samples = await run_closed(append, clients[: cell.clients], cell.batch, plan.warm + plan.measure)
    into[cell].append(compute_figures(samples, cell.batch, begin, begin + plan.measure))


async def _open_ledger(world: World) -> SqliteLedger:
    clock, settings = SystemClock(), world.bucket
    bucket = S3Bucket(build_options(settings), clock)
    remote = build_remote(bucket, settings, INSTANCE, world.env, world.run)
    return await open_ledger(Opening(world.directory / "volume", INSTANCE, epoch=1, owner="bench"), clock, remote)


def _build_report(found: Found, plan: Plan, disk: float) -> list[str]:
    loads = ", ".join(f"{load:.1f}" for load in found.loads)
    pace = f"{GOAL_CELL.clients} clients that append {GOAL_CELL.batch} events every {EVERY * 1000:.0f} ms"
    return [
        f"{describe_machine()}, Python {platform.python_version()}; a 4 KiB write is on the disk after {disk:.2f} ms.",
        f"Load average after each round and after the steady load: {loads}.",
        f"Every answer of the bucket is {LATE * 1000:.0f} ms late. Events have 300 bytes."
        f" Medians of {plan.rounds} × {plan.measure:.1f} s; the two variants in turn.",
        "",
        *build_table(found.ours, found.raw),
        "",
        f"Steady load, {pace}; p50 (ms) of each {plan.minute:.0f} s: "
        + ", ".join(f"{value:.1f}" for value in found.minutes),
        "",
        *decide_goals(compute_median(found.ours[GOAL_CELL]), found.minutes),
        "",
        f"Again: make bench-ledger, or python3 -m hack.bench.ledger{' --short' if plan == SHORT else ''}",
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
