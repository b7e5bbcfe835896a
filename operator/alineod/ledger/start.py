"""The steps of one start of the ledger, and what each needs of the ones before it. `open` says their order."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import assert_never

from alineod.clock import Clock
from alineod.errors import AlineoError, Damaged, Unavailable
from alineod.ledger.acknowledge import LocalAcknowledger, ReplicaAcknowledger
from alineod.ledger.build import Built, Making, build_copy, build_new, check_restored
from alineod.ledger.fence import Current, Fence, Seen
from alineod.ledger.places import Volume
from alineod.ledger.port import Acknowledger
from alineod.ledger.replicate import Remote
from alineod.ledger.sources import Found, FromBucket, FromVolume, New, Source, compute_epoch, decide_sources


@dataclass(frozen=True)
class Opening:
    """What to open.

    `epoch` is the least the new term may be numbered; `owner` a name that no other process has.
    """

    volume: Path
    instance: str
    epoch: int
    owner: str = ""


class Start:
    """The steps of one start, in the order in which `open_ledger` takes them."""

    def __init__(self, opening: Opening, clock: Clock, remote: Remote | None, make_secret: Callable[[], bytes]) -> None:
        self._opening, self._clock, self._remote, self._make_secret = opening, clock, remote, make_secret
        self._volume = Volume(opening.volume)
        self._fence = Fence(remote.bucket, remote.prefix) if remote is not None else None
        self._seen: Seen | None = None
        self._found, self._epoch = Found([]), opening.epoch

    async def look(self) -> None:
        """Which terms there are, here and in the bucket."""
        local = await asyncio.to_thread(self._volume.read_terms)
        if self._fence is None:
            self._found = Found(local)
        else:
            known = await asyncio.to_thread(self._fence.look)
            self._found, self._seen = Found(local, known.published, known.begun), known.seen
        self._epoch = compute_epoch(self._opening.epoch, self._found)

    async def claim(self, may_lead: Callable[[], bool]) -> None:
        """From here on no leader before us acknowledges anything."""
        if not may_lead():
            raise Unavailable("LeaseLost", "The lease was lost before the ledger could be taken over.")
        if self._fence is not None:
            await self._swap(self._fence, self._found.published)

    async def build(self) -> Built:
        """The new term's file, aside."""
        await asyncio.to_thread(self._volume.delete_leftovers)
        now = int(self._clock.now().timestamp() * 1_000_000)
        whole = self._volume.in_doubt
        making = Making(self._opening.instance, self._epoch, now, self._make_secret, whole)
        built = await self._build_first(making, decide_sources(self._found))
        if built.whole:
            self._volume.delete_doubt()
        return built

    async def place(self) -> Path:
        """Into its own place on the volume."""
        return await asyncio.to_thread(self._volume.write_term, self._epoch)

    async def replicate(self, path: Path, report: Callable[[AlineoError], None]) -> None:
        """Have the new term replicated, and wait until all of it is in the bucket, however long that takes."""
        if self._remote is None:
            return
        acknowledger = ReplicaAcknowledger(partial(self._remote.replicator.sync, path))
        try:
            await asyncio.to_thread(self._remote.replicator.begin, self._epoch, path)
            await asyncio.to_thread(acknowledger.confirm, report)
        finally:
            acknowledger.stop()

    async def publish(self, path: Path) -> Acknowledger:
        """Whoever comes next begins from this term."""
        if self._remote is None or self._fence is None:
            return LocalAcknowledger()
        published = await self._swap(self._fence, self._epoch)
        sync, check = self._remote.replicator.sync, self._fence.check
        return ReplicaAcknowledger(partial(sync, path), lambda stopped: check(published))

    async def open(self) -> None:
        """Say on the volume, too, that events may be acknowledged in this term."""
        await asyncio.to_thread(self._volume.write_mark, self._epoch)

    async def clean(self) -> None:
        await asyncio.to_thread(self._volume.delete_others, self._epoch)

    async def _swap(self, fence: Fence, data: int) -> Seen:
        current = Current(epoch=self._epoch, data=data, owner=self._opening.owner)
        self._seen = await asyncio.to_thread(fence.swap, self._seen, current)
        return self._seen

    async def _build_first(self, making: Making, sources: list[Source]) -> Built:
        """From the first source that is undamaged."""
        source, *others = sources
        try:
            return await self._build_from(source, making)
        except Damaged:
            if not others:
                raise
            if isinstance(source, FromVolume):
                await asyncio.to_thread(self._volume.set_aside, source.epoch)
        return await self._build_first(making, others)

    async def _build_from(self, source: Source, making: Making) -> Built:
        target = await asyncio.to_thread(self._volume.create_building)
        match source:
            case New():
                return await asyncio.to_thread(build_new, target, making)
            case FromVolume(epoch):
                return await asyncio.to_thread(build_copy, self._volume.file(epoch), target, making)
            case FromBucket(epoch):
                assert self._remote is not None  # noqa: S101  (terms in a bucket are found only with one)
                await self._remote.replicator.restore(epoch, target)
                return await asyncio.to_thread(check_restored, target, making)
            case _:
                assert_never(source)
