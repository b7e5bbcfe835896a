"""Opening the ledger for a new term: find the newest copy, check it, replicate it, and only then write.

The steps may be cut off anywhere: what a start leaves behind is never taken for a copy that has acknowledged events
(see `places`), and the next one begins with a number of its own.
"""

import asyncio
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import assert_never

from alineod.clock import Clock
from alineod.errors import AlineoError, Damaged, Unavailable
from alineod.ledger.acknowledge import LitestreamAcknowledger, LocalAcknowledger
from alineod.ledger.build import Built, Making, build_copy, build_new, check_restored
from alineod.ledger.control import ControlSocket
from alineod.ledger.places import Volume
from alineod.ledger.port import Acknowledger, ReplicaIndex
from alineod.ledger.replica import Replica
from alineod.ledger.restore import restore_replica
from alineod.ledger.sources import Found, FromBucket, FromVolume, New, Source, compute_epoch, decide_sources
from alineod.ledger.sqlite import Fatal, SqliteLedger
from alineod.ledger.term import SOCKET, Term, write_order
from alineod.settings import BucketSettings


@dataclass(frozen=True)
class Opening:
    """What to open.

    `epoch` is the least the new term may be numbered; `run` the directory shared with the sidecar; `env` holds the
    bucket's keys for Litestream; `patience` is how many seconds the first confirmation may take.
    """

    volume: Path
    instance: str
    epoch: int
    bucket: BucketSettings | None = None
    run: Path = Path("/run/alineod")
    env: Mapping[str, str] = field(default_factory=dict)
    patience: float = 60.0


async def open_ledger(
    opening: Opening,
    clock: Clock,
    index: ReplicaIndex | None = None,
    *,
    fatal: Fatal = lambda error: None,
    make_secret: Callable[[], bytes] = lambda: secrets.token_bytes(32),
    step: Callable[[str], None] = lambda name: None,
) -> SqliteLedger:
    """Begin a term.

    Args:
        index: which terms the bucket holds; given if and only if there is a bucket.
        fatal: see `SqliteLedger`.
        step: told the name of each step before it is taken.

    Raises:
        Unavailable: the bucket or the volume does not answer, or the replica was not confirmed in time. Try again.
        Damaged: no undamaged copy holds everything that was acknowledged.
        Refused: the copy belongs to another instance or to a later version.
    """
    volume = Volume(opening.volume)
    try:
        step("look")
        found = Found(volume.read_terms(), await index.epochs() if index else None)
        epoch = compute_epoch(opening.epoch, found)
        volume.delete_leftovers()
        step("build")
        making = Making(opening.instance, epoch, int(clock.now().timestamp() * 1_000_000), make_secret)
        built = await _build(opening, volume, making, decide_sources(found))
        step("place")
        path = volume.write_term(epoch)
        step("replicate")
        acknowledger = await _replicate(opening, epoch, path)
        step("open")
        volume.write_mark(epoch)
        step("clean")
        volume.delete_others(epoch)
    except OSError as error:
        raise Unavailable("LedgerVolumeFailed", f"The ledger's volume {opening.volume} failed: {error}.") from error
    step("serve")
    return SqliteLedger(path, built.identity, built.state, acknowledger, clock, fatal)


async def _build(opening: Opening, volume: Volume, making: Making, sources: list[Source]) -> Built:
    """Build the new term's file from the first source that is undamaged."""
    source, *others = sources
    try:
        return await _build_from(source, opening, volume, making)
    except Damaged:
        if not others:
            raise
        if isinstance(source, FromVolume):
            volume.set_aside(source.epoch)
    return await _build(opening, volume, making, others)


async def _build_from(source: Source, opening: Opening, volume: Volume, making: Making) -> Built:
    target = volume.create_building()
    match source:
        case New():
            return await asyncio.to_thread(build_new, target, making)
        case FromVolume(epoch):
            return await asyncio.to_thread(build_copy, volume.file(epoch), target, making)
        case FromBucket(epoch):
            assert opening.bucket is not None  # noqa: S101  (terms in a bucket are found only with one)
            await restore_replica(Replica(opening.bucket, opening.instance, epoch), target, opening.env)
            return await asyncio.to_thread(check_restored, target, making)
        case _:
            assert_never(source)


async def _replicate(opening: Opening, epoch: int, path: Path) -> Acknowledger:
    """Have the sidecar replicate the new term, and wait until all of it is in the bucket."""
    if opening.bucket is None:
        return LocalAcknowledger()
    write_order(opening.run, Term(str(path), opening.instance, epoch, opening.bucket))
    acknowledger = LitestreamAcknowledger(ControlSocket(opening.run / SOCKET, opening.bucket), path)
    await _confirm_first(acknowledger, opening.patience)
    return acknowledger


async def _confirm_first(acknowledger: Acknowledger, patience: float) -> None:
    problems: list[AlineoError] = []
    timer = asyncio.get_running_loop().call_later(patience, acknowledger.stop)
    confirmed = False
    try:
        await asyncio.to_thread(acknowledger.confirm, problems.append)
        confirmed = True
    except Unavailable as error:
        if not problems:
            raise
        message = f"The bucket did not confirm the ledger within {patience:g} s: {problems[-1].message}"
        raise Unavailable("NotReplicated", message) from error
    finally:
        timer.cancel()
        if not confirmed:
            acknowledger.stop()
