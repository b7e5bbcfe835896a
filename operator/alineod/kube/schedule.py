"""Which key is looked at next, when, and never twice at once: decided from the time alone.

Pure: it reads no clock, runs nothing and knows nothing of what a key is.
"""

import heapq
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Outcome(StrEnum):
    """How a pass ended."""

    DONE = "done"
    CONFLICT = "conflict"
    UNAVAILABLE = "unavailable"
    REFUSED = "refused"
    BUG = "bug"


@dataclass(frozen=True, slots=True)
class QueueOptions:
    """Figures of a queue; times in seconds, `rate` in passes a second over all keys."""

    workers: int = 32
    rate: float = 50.0
    burst: int = 100
    first_delay: float = 0.5
    longest_delay: float = 60.0
    longest_pass: float = 300.0


class QueueState(Generic[K]):
    """Keys that are ready, running or waiting for their time. A key has one place at a time."""

    def __init__(self, options: QueueOptions, chance: Callable[[], float]) -> None:
        self._options = options
        self._chance = chance
        self._urgent: OrderedDict[K, float] = OrderedDict()
        self._ready: OrderedDict[K, float] = OrderedDict()
        self._running: dict[K, bool] = {}
        self._again: dict[K, bool] = {}
        self._due: dict[K, float] = {}
        self._timers: list[tuple[float, int, K]] = []
        self._timer_count = 0
        self._failures: dict[K, int] = {}

    @property
    def depth(self) -> int:
        """How many keys could run now."""
        return len(self._urgent) + len(self._ready)

    @property
    def waiting(self) -> int:
        """How many keys wait for their time."""
        return len(self._due)

    @property
    def running(self) -> int:
        """How many passes are under way."""
        return len(self._running)

    def compute_age(self, now: float) -> float:
        """Seconds that the oldest ready key has been waiting for a worker."""
        heads = [next(iter(line.values())) for line in (self._urgent, self._ready) if line]
        return max(0.0, now - min(heads)) if heads else 0.0

    def compute_next_due(self) -> float | None:
        """When the next waiting key becomes ready, on the clock that `now` is from."""
        while self._timers and self._due.get(self._timers[0][2]) != self._timers[0][0]:
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def add(self, key: K, now: float, *, urgent: bool = False) -> None:
        """Make a key ready; while it runs, it is looked at once more afterwards."""
        if key in self._running:
            self._again[key] = urgent or self._again.get(key, False)
        elif urgent and key not in self._urgent:
            self._urgent[key] = self._ready.pop(key, now)
        elif not urgent and key not in self._urgent:
            self._ready.setdefault(key, now)

    def add_at(self, key: K, due: float) -> None:
        """Make a key ready at `due`, or earlier if that was wished before."""
        known = self._due.get(key)
        if known is not None and known <= due:
            return
        self._due[key] = due
        self._timer_count += 1
        heapq.heappush(self._timers, (due, self._timer_count, key))

    def take(self, now: float) -> K | None:
        """The key to look at now, which then counts as running; wishes for a later look are fulfilled by it."""
        self.advance(now)
        line = self._urgent or self._ready
        if not line:
            return None
        key, _ = line.popitem(last=False)
        self._running[key] = line is self._urgent
        self._due.pop(key, None)
        return key

    def finish(self, key: K, now: float, outcome: Outcome, wish: float | None = None) -> None:
        """Take note that a pass has ended; `wish` is the seconds until the next look that it asked for.

        A conflict is looked at again at once, the first time; every other failure after a delay that doubles. News
        that came during a failed pass waits with it, as most of it is the pass's own writes.
        """
        was_urgent = self._running.pop(key)
        again = self._again.pop(key, None)
        if outcome is Outcome.DONE:
            self._failures.pop(key, None)
            if wish is not None:
                self.add_at(key, now + wish)
            if again is not None:
                self.add(key, now, urgent=again)
            return
        failures = self._failures.get(key, 0) + 1
        self._failures[key] = failures
        if outcome is Outcome.CONFLICT and failures == 1:
            self.add(key, now, urgent=was_urgent)
        else:
            self.add_at(key, now + max(self._compute_delay(failures), wish or 0.0))

    def advance(self, now: float) -> None:
        """Make every key ready whose time has come."""
        while (due := self.compute_next_due()) is not None and due <= now:
            _, _, key = heapq.heappop(self._timers)
            del self._due[key]
            self.add(key, now)

    def _compute_delay(self, failures: int) -> float:
        """Doubling from the first delay to the longest, of which a random upper half is used."""
        delay = min(self._options.longest_delay, self._options.first_delay * 2.0 ** min(failures - 1, 30))
        return delay * (0.5 + self._chance() / 2)


class TokenBucket:
    """Permits at a steady rate, with a burst saved up while nothing happens."""

    def __init__(self, rate: float, burst: int, now: float) -> None:
        self._rate, self._burst = rate, burst
        self._tokens, self._at = float(burst), now

    def take(self, now: float) -> float:
        """Take one permit: 0 when it was there, else the seconds to wait before asking again."""
        self._tokens = min(self._burst, self._tokens + max(0.0, now - self._at) * self._rate)
        self._at = max(now, self._at)
        if self._tokens >= 1.0:
            self._tokens -= 1.0
            return 0.0
        return (1.0 - self._tokens) / self._rate
