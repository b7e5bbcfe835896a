"""The work queue: runs passes over keys as tasks of one event loop, each key's one after the other.

What runs next and when is decided in `kube.schedule`. It must not know what a key is or what a pass does.
"""

import asyncio
import contextlib
import logging
import random
from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import Generic, TypeVar

from alineod.clock import Clock
from alineod.errors import AlineoError, Conflict, Unavailable
from alineod.kube.schedule import Outcome, QueueOptions, QueueState, TokenBucket

K = TypeVar("K", bound=Hashable)

# A pass: looks at one key and returns in how many seconds it wants to look again, or None when only news matters.
Work = Callable[[K], Awaitable[float | None]]


class WorkQueue(Generic[K]):
    """Runs passes over keys, each key's one after the other. For one event loop; `run` is its only task.

    `report` is told the outcome and the duration (s) of each pass.
    """

    def __init__(
        self,
        work: Work[K],
        clock: Clock,
        *,
        options: QueueOptions,
        chance: Callable[[], float] = random.random,
        report: Callable[[Outcome, float], None] = lambda outcome, seconds: None,
    ) -> None:
        self._work, self._clock, self._report, self._options = work, clock, report, options
        self._state: QueueState[K] = QueueState(options, chance)
        self._bucket = TokenBucket(options.rate, options.burst, clock.monotonic())
        self._slots = asyncio.Semaphore(options.workers)
        self._passes: set[asyncio.Task[None]] = set()
        self._wake = asyncio.Event()
        self._closing = False
        self._log = logging.getLogger(__name__)

    @property
    def depth(self) -> int:
        """How many keys could run now."""
        return self._state.depth

    @property
    def idle(self) -> bool:
        """Whether nothing runs and nothing is ready; keys may still wait for their time."""
        return self._state.depth == 0 and self._state.running == 0

    def compute_age(self) -> float:
        """Seconds that the oldest ready key has been waiting for a worker."""
        return self._state.compute_age(self._clock.monotonic())

    def add(self, key: K, *, urgent: bool = False) -> None:
        """Look at `key` as soon as a worker is free; `urgent` goes before everything that is not."""
        self._state.add(key, self._clock.monotonic(), urgent=urgent)
        self._wake.set()

    def add_after(self, key: K, seconds: float) -> None:
        """Look at `key` in `seconds`, or earlier if that was wished before."""
        self._state.add_at(key, self._clock.monotonic() + seconds)
        self._wake.set()

    async def run(self) -> None:
        """Start passes until the queue is closed."""
        while not self._closing:
            await self._slots.acquire()
            key = await self._wait_for_key()
            if key is None:
                self._slots.release()
                return
            task = asyncio.create_task(self._run_pass(key), name=f"pass {key}")
            self._passes.add(task)
            task.add_done_callback(self._passes.discard)
            # Else all workers would begin in one turn of the loop, and everything else would wait for all of them.
            await asyncio.sleep(0)

    async def drain(self, seconds: float) -> bool:
        """Start no further pass and wait for those under way; after `seconds` they are cancelled.

        Returns:
            Whether every pass came to its own end.
        """
        self._closing = True
        self._wake.set()
        if not self._passes:
            return True
        _, late = await asyncio.wait(self._passes, timeout=seconds)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)
        return not late

    async def _wait_for_key(self) -> K | None:
        while not self._closing:
            self._wake.clear()
            now = self._clock.monotonic()
            self._state.advance(now)
            pause = self._bucket.take(now) if self._state.depth else self._compute_idle_time(now)
            if pause == 0.0 and (key := self._state.take(now)) is not None:
                return key
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._wake.wait()
        return None

    def _compute_idle_time(self, now: float) -> float | None:
        due = self._state.compute_next_due()
        # Never nothing: a timer that is due to the last digit must not spin the loop.
        return None if due is None else max(0.001, due - now)

    async def _run_pass(self, key: K) -> None:
        began = self._clock.monotonic()
        wish: float | None = None
        outcome = Outcome.DONE
        try:
            async with asyncio.timeout(self._options.longest_pass):
                wish = await self._work(key)
        except Exception as error:  # the queue outlives every pass
            outcome = classify(error)
            wish = error.retry_after if isinstance(error, Unavailable) else None
            self._log.log(_LEVELS[outcome], "%s: %s", key, _describe(error), exc_info=outcome is Outcome.BUG)
        finally:
            self._slots.release()
        now = self._clock.monotonic()
        self._state.finish(key, now, outcome, wish)
        self._report(outcome, now - began)
        self._wake.set()


_LEVELS: Mapping[Outcome, int] = {
    Outcome.DONE: logging.DEBUG,
    Outcome.CONFLICT: logging.DEBUG,
    Outcome.UNAVAILABLE: logging.WARNING,
    Outcome.REFUSED: logging.WARNING,
    Outcome.BUG: logging.ERROR,
}


def _describe(error: Exception) -> str:
    return "the pass took too long" if isinstance(error, TimeoutError) else str(error) or type(error).__name__


def classify(error: Exception) -> Outcome:
    """What an error that ended a pass means for the next one."""
    match error:
        case Conflict():
            return Outcome.CONFLICT
        case Unavailable():
            return Outcome.UNAVAILABLE
        case AlineoError():
            return Outcome.REFUSED
        case _:
            return Outcome.BUG
