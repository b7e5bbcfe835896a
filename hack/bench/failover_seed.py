"""Gives a release its thousand agents and a long ledger.

The operator itself takes the agents in. The events are then appended by the product's own ledger in a term of its own,
on this machine, while no operator runs: taken over from the bucket, replicated by the sidecar's Litestream, published.
"""

import asyncio
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from alineod.bucket.s3 import S3Bucket, build_options
from alineod.clock import SystemClock
from alineod.domain.events import Entry, HarnessEvent
from alineod.ledger.open import open_ledger
from alineod.ledger.port import Ledger
from alineod.ledger.replicate import build_remote
from alineod.ledger.start import Opening
from alineod.settings import BucketSettings
from hack.bench.ledger_load import build_text
from hack.bench.ledger_world import SIDECAR, running
from hack.chaos.operators import read_health
from hack.chaos.sites import BUCKET, Site, build_held
from hack.chaos.sites import NAMES as HELD
from hack.demo.run import DemoError, wait_for
from tests.support.seaweed import REGION

CROWD = "crowd"
APPEND = 500  # events in one append
TEXT = 220  # characters of text in an event, so that its payload has about 300 bytes
LIMIT = 300.0  # s that anything here may take
LOOK = 0.5


def seed(site: Site, directory: Path, agents: int, events: int) -> None:
    """Have this many agents, and this many events in the ledger."""
    names = [f"b{number:04d}" for number in range(agents - len(HELD) - 2)]  # beside those of the site and two gates
    site.target.kubectl(f"--namespace={site.space}", "apply", "-f", "-", stdin=json.dumps(build_held(CROWD, names)))
    wait(f"the ledger knows {agents} agents", lambda: read_figure(site, "agents") >= agents)
    change_scale(site, 0)
    wait("no operator runs any more", lambda: not site.scout.look())
    keys = [f"{site.space}/{CROWD}-{name}" for name in names]
    asyncio.run(_append(site, directory, keys, events))
    change_scale(site, 3)
    wait("a leader serves", lambda: site.scout.find_leader() is not None)
    found = read_figure(site, "seq")
    if found < events:
        raise DemoError(f"the new leader knows {found} events and not {events}")


def read_figure(site: Site, name: str) -> int:
    """What the leader's health says; nothing while nobody leads."""
    healths = (read_health(one.address) for one in site.scout.look())
    return max((int(health[name]) for health in healths if health is not None), default=0)


def change_scale(site: Site, replicas: int) -> None:
    """How many operators there are to be."""
    site.target.kubectl(f"--namespace={site.hands.namespace}", "scale", "deployment", "--all", f"--replicas={replicas}")


def wait(what: str, holds: Callable[[], bool]) -> None:
    """Until it holds."""
    wait_for(what, lambda: holds() or None, LIMIT, LOOK)


async def _append(site: Site, directory: Path, agents: Sequence[str], events: int) -> None:
    os.environ.update(site.store.env)  # the S3 client reads its keys there
    run = directory / "run"
    run.mkdir()
    settings = BucketSettings(BUCKET, "", site.store.endpoint, REGION)
    bucket = S3Bucket(build_options(settings), SystemClock())
    remote = build_remote(bucket, settings, site.instance, os.environ, run)
    opening = Opening(directory / "volume", site.instance, 1, owner="bench")
    with running([sys.executable, "-c", SIDECAR], {**os.environ, "ALINEOD_RUN_DIR": str(run)}):
        ledger = await open_ledger(opening, SystemClock(), remote)
        try:
            await _fill(ledger, site.space, agents, events)
        finally:
            await ledger.close()


async def _fill(ledger: Ledger, space: str, agents: Sequence[str], events: int) -> None:
    number = 0
    while (missing := events - ledger.acknowledged_seq) > 0:
        entries = []
        for _ in range(min(APPEND, missing)):
            number += 1
            entries.append(_build_event(space, agents[number % len(agents)], number))
        await ledger.append(entries)


def _build_event(space: str, agent: str, number: int) -> Entry:
    data = {"role": "assistant", "text": build_text(number * TEXT, TEXT)}
    body = HarnessEvent(type="message", turn=1, incarnation=1, seq=number, data=data)
    return Entry(id=f"bench/{agent}/{number}", run=f"{space}/{CROWD}", agent=agent, body=body)
