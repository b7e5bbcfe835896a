"""Measures how late an event loop is, what of that is its thread's own work, and which function was at work.

Knows nothing of what runs on the loop. Collections of garbage are timed, since they come in whatever function.
"""

import asyncio
import gc
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import alineod

BEAT = 0.005
"""Seconds between two looks."""
LATE = 0.05
"""Seconds from which on a look's lateness is asked for its cause."""
SHOWN = 3  # functions of a stack that are named
OURS = str(Path(alineod.__file__).parent)
BENCH = str(Path(__file__).parent)


@dataclass
class Looks:
    """Of each look the seconds it was late, and those of the thread's CPU since the one before; causes by samples.

    `collections`: what those of each generation took, in seconds.
    """

    seconds: float = 0.0
    late: list[float] = field(default_factory=list)
    used: list[float] = field(default_factory=list)
    causes: Counter[str] = field(default_factory=Counter)
    collections: tuple[list[float], ...] = field(default_factory=lambda: ([], [], []))


class LoopWatch:
    """Looks at the running loop for as long as its context lasts; `begin` starts a new account."""

    def __init__(self) -> None:
        self._looks, self._due, self._thread = Looks(), time.monotonic(), threading.get_ident()
        self._began, self._collecting = time.monotonic(), 0.0
        self._ended = threading.Event()
        self._sampler = threading.Thread(target=self._sample, daemon=True)

    async def __aenter__(self) -> "LoopWatch":
        gc.callbacks.append(self._hear_collection)
        self._sampler.start()
        self._beats = asyncio.create_task(self._beat())
        return self

    async def __aexit__(self, *error: object) -> None:
        self._beats.cancel()
        self._ended.set()
        gc.callbacks.remove(self._hear_collection)

    def begin(self) -> None:
        """Forget what was seen."""
        self._looks, self._began = Looks(), time.monotonic()

    def read(self) -> Looks:
        """What was seen since the beginning."""
        self._looks.seconds = time.monotonic() - self._began
        return self._looks

    async def _beat(self) -> None:
        while True:
            self._due, used = time.monotonic() + BEAT, time.thread_time()
            await asyncio.sleep(BEAT)
            self._looks.late.append(max(0.0, time.monotonic() - self._due))
            self._looks.used.append(time.thread_time() - used)

    def _sample(self) -> None:
        while not self._ended.wait(BEAT):
            if time.monotonic() - self._due > LATE:
                self._looks.causes[describe_stack(sys._current_frames().get(self._thread))] += 1

    def _hear_collection(self, phase: str, info: dict[str, Any]) -> None:
        now = time.monotonic()
        if phase == "start":
            self._collecting = now
            return
        self._looks.collections[info["generation"]].append(now - self._collecting)


def describe_stack(frame: FrameType | None) -> str:
    """The innermost functions of the product, outermost first, and whose code was at work in them."""
    names: list[str] = []
    innermost = Path(frame.f_code.co_filename).stem + "." + frame.f_code.co_qualname if frame else "nothing"
    while frame is not None and len(names) < SHOWN:
        code = frame.f_code
        if code.co_filename.startswith((OURS, BENCH)):
            names.append(f"{Path(code.co_filename).stem}.{code.co_qualname}")
        frame = frame.f_back
    return " > ".join([*reversed(names), *([innermost] if innermost not in names[:1] else [])])
