"""Which requests go into a batch together, and how long it is waited for more."""

import threading
import time
from collections.abc import Callable, Sequence

import pytest

from alineod.errors import Unavailable
from alineod.ledger.queue import BATCH_LIMIT, AppendQueue, Bounds, Request
from alineod.ledger.records import prepare_entries
from tests.unit.ledger.entries import build_entry

EVER = 3600.0


def build_request(token: str, count: int = 1) -> Request:
    return Request(prepare_entries([build_entry(number) for number in range(count)]), token)


class Taker:
    """A thread that takes one batch and lingers for ever if it is let to."""

    def __init__(self, queue: AppendQueue) -> None:
        self._queue = queue
        self._batch: Sequence[Request] = ()
        self._thread = threading.Thread(target=self._take, daemon=True)
        self._thread.start()

    def _take(self) -> None:
        self._batch = self._queue.take(EVER)

    def until_it_lingers_or_ends(self) -> None:
        until(lambda: bool(self._queue._changed._waiters) or not self._thread.is_alive())  # type: ignore[attr-defined]

    def read_tokens(self) -> list[str]:
        self._thread.join(20)
        assert not self._thread.is_alive(), "it waits for more than will come"
        return [request.token for request in self._batch]


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


@pytest.fixture
def queue() -> AppendQueue:
    return AppendQueue(Bounds())


def test_those_who_are_answered_are_waited_for_beside_those_who_wait(queue: AppendQueue) -> None:
    queue.put(build_request("waits"))
    queue.expect(answered=2)
    taker = Taker(queue)
    for token in ("again", "and again"):
        taker.until_it_lingers_or_ends()
        queue.put(build_request(token))
    assert taker.read_tokens() == ["waits", "again", "and again"]


def test_nobody_is_waited_for_when_all_are_there(queue: AppendQueue) -> None:
    queue.expect(answered=2)
    for token in ("one", "two"):
        queue.put(build_request(token))
    assert Taker(queue).read_tokens() == ["one", "two"]


def test_a_full_batch_waits_for_nobody(queue: AppendQueue) -> None:
    queue.expect(answered=50)
    for token in ("one", "two"):
        queue.put(build_request(token, BATCH_LIMIT // 2))
    assert Taker(queue).read_tokens() == ["one", "two"]


def test_a_closed_queue_waits_for_nobody(queue: AppendQueue) -> None:
    queue.put(build_request("one"))
    queue.expect(answered=50)
    taker = Taker(queue)
    taker.until_it_lingers_or_ends()
    queue.close(Unavailable("LedgerClosed", "It is closed."))
    assert taker.read_tokens() == ["one"]
