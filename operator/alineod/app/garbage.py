"""Keeps collections of garbage short: a full one looks at every object, a second of the loop's time with 1,000 agents.

What a collection has just found alive is set aside when that took long, and not looked at again. It is freed as before
when nothing refers to it any more; only a circle of references in it that is given up later stays. It must not know
what the objects are.
"""

import gc
import time
from collections.abc import Callable
from typing import Any

LONGEST = 0.025  # s
YOUNG, MIDDLE, OLD = 3_000, 4, 100
"""New objects until they are looked at, since most of what waits for an answer is gone by then; how often that is until
those that were left are looked at, few at a time; and how often that is until all are.
"""
FULL = 2  # the oldest generation


class Garbage:
    """Hears of each collection. `monotonic` in seconds; `set_aside` is called when a full one took too long."""

    def __init__(
        self, monotonic: Callable[[], float] = time.monotonic, set_aside: Callable[[], None] = gc.freeze
    ) -> None:
        self._monotonic, self._set_aside = monotonic, set_aside
        self._began = 0.0

    def start(self) -> None:
        """What was imported stays for ever."""
        self._set_aside()
        gc.set_threshold(YOUNG, MIDDLE, OLD)
        gc.callbacks.append(self.hear)

    def hear(self, phase: str, info: dict[str, Any]) -> None:
        """A collection begins or has ended."""
        if phase == "start":
            self._began = self._monotonic()
        elif info["generation"] == FULL and self._monotonic() - self._began > LONGEST:
            self._set_aside()
