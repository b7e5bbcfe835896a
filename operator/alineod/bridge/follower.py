"""One reader of the journal, live: a bounded queue, and no work while nothing comes."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator

KEEP_ALIVE = 10.0  # s between empty lines when nothing comes
_LIMIT = 1024 * 1024  # bytes that wait; a reader that is further behind reads from disk again


class Follower:
    """What waits for one reader: bounded, and dropped as a whole when the reader is too slow for it."""

    def __init__(self, seq: int) -> None:
        self.seq = seq  # the newest record it was given
        self._queue: deque[tuple[int, bytes]] = deque()
        self._size = 0
        self._live = False
        self._ended = False
        self._wake = asyncio.Event()

    def push(self, seq: int, line: bytes) -> None:
        """Queue a line; `seq` is the newest record with it."""
        if not self._live:
            return
        self._queue.append((seq, line))
        self._size += len(line)
        if self._size > _LIMIT:
            self._live = False
            self._clear()
        self._wake.set()

    def end(self) -> None:
        self._ended = True
        self._wake.set()

    async def live(self, before: bytes) -> AsyncIterator[bytes]:
        """`before`, then what comes from now on; ends when the reader fell behind, or when there will be no more."""
        self._live = True
        if before:
            yield before
        while self._live:
            if self._queue:
                yield self._take()
            elif self._ended:
                return
            else:
                self._wake.clear()
                try:
                    async with asyncio.timeout(KEEP_ALIVE):
                        await self._wake.wait()
                except TimeoutError:
                    yield b"\n"

    def _take(self) -> bytes:
        self.seq = self._queue[-1][0]
        chunk = b"".join(line for _, line in self._queue)
        self._clear()
        return chunk

    def _clear(self) -> None:
        self._queue.clear()
        self._size = 0
