"""Groups the records of a journal: what is said at almost the same time becomes one append.

With 1,000 agents that speak, this is where most of the loop's time goes: one timer for a group, none for a record.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator

from alineod.wire.turns import JournalEvent, JournalRecord

LINGER = 0.1  # s that records are gathered for one append
MOST = 200  # records in one append
LAST = JournalEvent.TURN_ENDED  # nothing is waited for after it


async def group_records(records: AsyncIterator[JournalRecord]) -> AsyncGenerator[list[JournalRecord], None]:
    """Records in groups: what arrives within LINGER of the first, MOST at the most.

    What breaks the journal off is raised after the last group.
    """
    gathering = _Gathering()
    reader = asyncio.create_task(gathering.read(records))
    try:
        while group := await gathering.take():
            yield group
        await reader
    finally:
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)


class _Gathering:
    """What was read and is not taken yet: one group at the most, for which its reader waits."""

    def __init__(self) -> None:
        self._records: list[JournalRecord] = []
        self._begun, self._whole, self._room = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._over = False
        self._room.set()

    async def read(self, records: AsyncIterator[JournalRecord]) -> None:
        """Gather until the journal ends or breaks off."""
        try:
            async for record in records:
                await self._room.wait()
                self._add(record)
        finally:
            self._over = True
            self._begun.set()
            self._whole.set()

    def _add(self, record: JournalRecord) -> None:
        self._records.append(record)
        self._begun.set()
        if len(self._records) >= MOST or record.event == LAST:
            self._whole.set()
            self._room.clear()

    async def take(self) -> list[JournalRecord]:
        """The next group; an empty one after the last."""
        await self._begun.wait()
        if not self._whole.is_set():
            timer = asyncio.get_running_loop().call_later(LINGER, self._whole.set)
            await self._whole.wait()
            timer.cancel()
        group, self._records = self._records, []
        if not self._over:
            self._begun.clear()
            self._whole.clear()
        self._room.set()
        return group
