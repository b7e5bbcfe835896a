"""Appends that wait for the writer's thread: filled from the loop, emptied by the writer, bounded in number and bytes.

Knows nothing of transactions. Who gives up takes its request out again, so that what waits is what somebody waits for.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from alineod.errors import AlineoError, Unavailable
from alineod.ledger.records import Prepared

BATCH_LIMIT = 1000
"""Entries in one transaction."""
BATCH_BYTES = 16 << 20
"""Bytes of payload in one transaction; a single larger append has one of its own."""
RETRY_AFTER = 5.0
"""Seconds after which whoever is turned away may ask again."""


@dataclass(frozen=True)
class Bounds:
    """How much may wait before more is turned away: entries, and bytes of their payloads."""

    entries: int = 20_000
    bytes: int = 64 << 20


@dataclass(frozen=True, eq=False)
class Request:
    """One append. `token` is the caller's own and comes back with the answer."""

    entries: Sequence[Prepared]
    token: Any

    @property
    def bytes(self) -> int:
        return sum(len(entry.payload) for entry in self.entries)


class AppendQueue:
    """First come, first written."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._requests: dict[Request, int] = {}  # the request and its bytes, in order
        self._entries = self._bytes = 0
        self._changed = threading.Condition()
        self._expected = 1
        self._closed: AlineoError | None = None

    def admit(self, entries: int, in_bytes: int = 0) -> None:
        """Whether so much more may wait. Asked before entries are prepared: turning somebody away must cost nothing.

        Raises:
            Unavailable: `QueueFull`, too much waits already.
            AlineoError: why the queue was closed.
        """
        with self._changed:
            if self._closed is not None:
                raise self._closed
            more, larger = self._entries + entries, self._bytes + in_bytes
            if self._requests and (more > self._bounds.entries or larger > self._bounds.bytes):
                message = f"{self._entries:,} events ({self._bytes:,} bytes) wait to be written. Ask again later."
                raise Unavailable("QueueFull", message, RETRY_AFTER)

    def put(self, request: Request) -> None:
        """Let it wait; raises what `admit` does."""
        size = request.bytes
        with self._changed:
            self.admit(len(request.entries), size)
            self._requests[request] = size
            self._entries, self._bytes = self._entries + len(request.entries), self._bytes + size
            self._changed.notify()

    def withdraw(self, request: Request) -> None:
        """Nobody waits for it any more. No harm if it was taken already."""
        with self._changed:
            if request in self._requests:
                self._remove(request)

    def take(self, linger: float) -> list[Request]:
        """Wait for work, and `linger` seconds for more to go with it; empty once closed with nothing left."""
        with self._changed:
            batch: list[Request] = []
            while not batch and (self._requests or self._closed is None):
                self._changed.wait_for(lambda: self._requests or self._closed)
                if linger > 0:
                    self._changed.wait_for(lambda: self._closed or self._is_enough(), linger)
                batch = self._take_batch()
            return batch

    def expect(self, answered: int) -> None:
        """So many requests are about to be answered: whoever made them may ask again at once, beside those that wait.

        Without it clients that wait for their answers fall into two halves, each of which waits for the other's batch.
        """
        with self._changed:
            self._expected = answered + len(self._requests)

    def close(self, why: AlineoError) -> None:
        """Take no more; what waits may still be taken. Closing again changes what is answered."""
        with self._changed:
            self._closed = why
            self._changed.notify_all()

    def take_rest(self) -> list[Request]:
        """Everything that waits."""
        with self._changed:
            rest, self._requests = list(self._requests), {}
            self._entries = self._bytes = 0
            return rest

    def _is_enough(self) -> bool:
        return len(self._requests) >= self._expected or self._entries >= BATCH_LIMIT

    def _take_batch(self) -> list[Request]:
        batch: list[Request] = []
        entries = in_bytes = 0
        for request, size in self._requests.items():
            entries, in_bytes = entries + len(request.entries), in_bytes + size
            if batch and (entries > BATCH_LIMIT or in_bytes > BATCH_BYTES):
                break
            batch.append(request)
        for request in batch:
            self._remove(request)
        return batch

    def _remove(self, request: Request) -> None:
        self._bytes -= self._requests.pop(request)
        self._entries -= len(request.entries)
