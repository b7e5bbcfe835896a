"""A program that opens a ledger, appends as fast as it can and writes a line for each acknowledged event.

python -c "from tests.component.ledger.appender import main; main()" '{"volume": ...}'
"""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from alineod.bucket.s3 import S3Bucket, build_options
from alineod.clock import SystemClock
from alineod.ledger.open import open_ledger
from alineod.ledger.port import Ledger
from alineod.ledger.replicate import Remote, build_remote
from alineod.ledger.start import Opening
from alineod.settings import BucketSettings
from tests.unit.ledger.entries import build_entry

CODE = "from tests.component.ledger.appender import main; main()"


def main() -> None:
    asyncio.run(_run(json.loads(sys.argv[1])))


async def _run(order: dict[str, Any]) -> None:
    bucket = BucketSettings(**order["bucket"]) if order["bucket"] else None
    opening = Opening(Path(order["volume"]), order["instance"], order["epoch"], owner=f"appender {os.getpid()}")
    ledger = await open_ledger(opening, SystemClock(), _build_remote(bucket, order) if bucket else None)
    _say({"opened": ledger.epoch, "seq": ledger.acknowledged_seq})
    await asyncio.gather(*(_append(ledger, client, order["round"]) for client in range(order["clients"])))


async def _append(ledger: Ledger, client: int, round_: int) -> None:
    number = 0
    while True:
        number += 1
        agent = f"default/c{round_}-{client}"
        rows = await ledger.append([build_entry(number, agent=agent), build_entry(number, agent=f"{agent}-b")])
        for row in rows:
            _say({"seq": row.seq, "id": row.id, "hash": row.hash})


def _say(line: dict[str, Any]) -> None:
    os.write(1, json.dumps(line).encode() + b"\n")


def _build_remote(settings: BucketSettings, order: dict[str, Any]) -> Remote:
    bucket = S3Bucket(build_options(settings), SystemClock())
    return build_remote(bucket, settings, order["instance"], os.environ, Path(order["run"]))
