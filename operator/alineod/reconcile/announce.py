"""Tells people about ledger events as Kubernetes Events. Best effort: the ledger is the record, this is the notice."""

import asyncio
import logging
from collections.abc import Sequence
from datetime import UTC, datetime

from alineod.crd.objects import Swarm
from alineod.domain.announce import compute_announcement
from alineod.domain.events import Row
from alineod.errors import AlineoError
from alineod.kube.gateway import EventRecord, EventType
from alineod.kube.objects import AGENTS, SWARMS, Ref, build_ref
from alineod.reconcile.world import World

WAITING = 1000  # notices; more are dropped
log = logging.getLogger(__name__)


async def tell_left_alone(world: World, swarm: Swarm) -> None:
    """Say, once in a term, that a swarm of another release is none of ours."""
    raw = world.store.get(Ref(SWARMS, swarm.metadata.namespace, swarm.metadata.name))
    if raw is None or swarm.metadata.uid in world.term.left_alone:
        return
    world.term.left_alone.add(swarm.metadata.uid)
    note = f"belongs to the release {swarm.status.instance}: the release {world.release.instance} leaves it alone"
    log.info("%s %s", swarm.key, note)
    record = EventRecord(
        resource=SWARMS,
        regarding=raw,
        type=EventType.NORMAL,
        reason="LeftAlone",
        action="LeaveAlone",
        note=note,
        occurrence=world.release.instance,
        time=world.clock.now(),
    )
    try:
        await world.gateway.create_event(record)
    except AlineoError as error:
        log.debug("an Event could not be written: %s", error)


class Announcer:
    """Queues what there is to say and says it, one at a time."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._queue: asyncio.Queue[EventRecord] = asyncio.Queue(WAITING)

    def listen(self, rows: Sequence[Row]) -> None:
        """A listener of the ledger."""
        for row in rows:
            if (record := self._build(row)) is not None:
                self.tell(record)

    def tell(self, record: EventRecord) -> None:
        """Say it soon; nothing when too much waits already."""
        if not self._queue.full():
            self._queue.put_nowait(record)

    async def run(self) -> None:
        """Say what is queued, until cancelled."""
        while True:
            record = await self._queue.get()
            try:
                await self._world.gateway.create_event(record)
            except Exception as error:  # a notice that is not given must not end who gives it
                log.debug("an Event could not be written: %s", error)

    def _build(self, row: Row) -> EventRecord | None:
        said = compute_announcement(row)
        if said is None or row.agent is None:
            return None
        regarding = self._world.store.get(build_ref(AGENTS, row.agent))
        if regarding is None:
            return None
        return EventRecord(
            resource=AGENTS,
            regarding=regarding,
            type=EventType.WARNING if said.warning else EventType.NORMAL,
            reason=said.reason,
            action=said.action,
            note=said.note,
            occurrence=str(row.seq),
            time=datetime.fromtimestamp(row.time, UTC),
        )
