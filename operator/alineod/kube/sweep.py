"""Reads everything once at the start, then finds what the watches did not tell: objects that vanished in a gap, and
objects they never brought.

A list of metadata is held against the store. It must not know what objects mean; whoever listens to the store looks
at what a sweep has found.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from alineod.clock import Clock
from alineod.errors import AlineoError, Conflict, NotFound
from alineod.kube.gateway import Gateway, is_expired, list_all
from alineod.kube.objects import Json, Ref, Resource, Watched, add_kind, read_ref, read_uid, read_version
from alineod.kube.store import Store
from alineod.metrics import Metrics

PUTS_AT_ONCE = 100  # objects that are put into the store before others have their turn on the loop


@dataclass(frozen=True, slots=True)
class SweepOptions:
    """Seconds: between sweeps, the time given to watches to bring what was listed, how often that is looked at."""

    period: float = 300.0
    settle: float = 15.0
    look: float = 0.25


@dataclass(frozen=True, slots=True)
class SweepReport:
    """How many objects were found gone, and how many had to be fetched."""

    ghosts: int
    missed: int


def find_ghosts(before: Mapping[Ref, Json], listed: Mapping[Ref, Json]) -> Iterator[tuple[Ref, str]]:
    """Incarnations that were in the store before the list was made, and are not in it."""
    for ref, obj in before.items():
        found = listed.get(ref)
        if found is None or read_uid(found) != read_uid(obj):
            yield ref, read_uid(obj)


def is_behind(known: Json | None, listed: Json) -> bool:
    """Whether the store's object is not there, or older than the list it is held against."""
    if known is None:
        return True
    # Another incarnation in the store was made after the list, or the list's is still to come and is fetched.
    return read_version(known) < read_version(listed)


class Sweep:
    """Sweeps over everything that is watched, in `namespaces`, or everywhere when there are none."""

    def __init__(
        self,
        gateway: Gateway,
        store: Store,
        watched: Iterable[Watched],
        namespaces: Iterable[str],
        clock: Clock,
        metrics: Metrics,
        *,
        options: SweepOptions | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._gateway, self._store, self._clock, self._metrics = gateway, store, clock, metrics
        self._watched, self._namespaces = tuple(watched), tuple(namespaces) or (None,)
        self._options, self._chance = options or SweepOptions(), chance
        self._log = logging.getLogger(__name__)

    async def look(self) -> None:
        """Put everything into the store, without waiting for any watch; tried until it comes through."""
        await self._repeat(self._fetch_all)

    async def run(self) -> None:
        """Sweep for ever. To be called when the watches begin, which are given some time before the first one.

        What went between our list and theirs is told by neither.
        """
        pause = self._options.settle
        while True:
            await asyncio.sleep(pause)
            await self._repeat(self._sweep_and_tell)
            pause = self._options.period * (0.9 + self._chance() / 5)

    async def _repeat(self, act: Callable[[], Awaitable[None]]) -> None:
        """Until it comes through."""
        pause = self._options.look
        while True:
            try:
                await act()
            except AlineoError as error:
                self._metrics.count_sweep("failed")
                self._log.warning("the cluster could not be listed and is not compared: %s", error)
                pause = min(max(1.0, pause * 2), self._options.period)
            else:
                self._metrics.count_sweep("done")
                return
            await asyncio.sleep(pause)

    async def _sweep_and_tell(self) -> None:
        report = await self.sweep()
        if report.ghosts or report.missed:
            self._log.warning("the watches missed %d deletions and %d objects", report.ghosts, report.missed)

    async def _fetch_all(self) -> None:
        for watched in self._watched:
            for number, obj in enumerate((await self._list(watched, metadata_only=False)).values()):
                if number % PUTS_AT_ONCE == 0:
                    await asyncio.sleep(0)
                self._store.put(watched.resource, add_kind(watched.resource, obj))

    async def sweep(self) -> SweepReport:
        """Compare once. Nothing is concluded from a list that did not come to its end.

        Raises:
            AlineoError: a list failed; what was found before it stands.
        """
        ghosts, listed = 0, dict[Ref, Json]()
        for watched in self._watched:
            before = self._store.read_refs(watched.resource)
            found = await self._list(watched, metadata_only=True)
            gone = [(ref, uid) for ref, uid in find_ghosts(before, found) if self._store.discard_uid(ref, uid)]
            self._metrics.count_ghosts(watched.resource.plural, len(gone))
            ghosts += len(gone)
            listed |= found
        return SweepReport(ghosts, await self._fetch_missed(listed))

    async def _list(self, watched: Watched, *, metadata_only: bool) -> dict[Ref, Json]:
        found: dict[Ref, Json] = {}
        for namespace in self._namespaces:
            try:
                found |= await self._list_namespace(watched, namespace, metadata_only)
            except Conflict as error:
                if not is_expired(error):
                    raise
                found |= await self._list_namespace(watched, namespace, metadata_only)
        return found

    async def _list_namespace(self, watched: Watched, namespace: str | None, metadata_only: bool) -> dict[Ref, Json]:
        resource = watched.resource
        pages = list_all(self._gateway, resource, namespace, labels=watched.labels, metadata_only=metadata_only)
        return {read_ref(resource, obj): obj async for obj in pages}

    async def _fetch_missed(self, listed: Mapping[Ref, Json]) -> int:
        """Wait for the watches to bring everything that was listed, then fetch what they did not."""
        behind = dict(listed)
        deadline = self._clock.monotonic() + self._options.settle
        while behind := {ref: obj for ref, obj in behind.items() if is_behind(self._store.get(ref), obj)}:
            if self._clock.monotonic() >= deadline:
                break
            await asyncio.sleep(self._options.look)
        missed = 0
        for ref in behind:
            if await self._fetch(ref):
                self._metrics.count_missed(ref.resource.plural, 1)
                missed += 1
        return missed

    async def _fetch(self, ref: Ref) -> bool:
        try:
            obj = await self._gateway.get(ref.resource, ref.namespace, ref.name)
        except NotFound:
            return False  # gone since
        return self._store.put(ref.resource, obj)


async def run_resync(
    store: Store,
    resources: Iterable[Resource],
    add_after: Callable[[Ref, float], None],
    *,
    period: float = 600.0,
    chance: Callable[[], float] = random.random,
) -> None:
    """Have every key looked at once in `period` seconds, spread over it, whatever has or has not happened."""
    kinds = tuple(resources)
    while True:
        await asyncio.sleep(period)
        for resource in kinds:
            for ref in store.read_refs(resource):
                add_after(ref, period * chance())
