"""Times the steps between a lease that was won and an API that serves. It must not know what they do."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from alineod.clock import Clock

SHOWN = 0.05  # s; what took less is not named in the log


class Takeover:
    """One take-over; `observe` is told each step and its seconds.

    Steps may go on beside each other. A step that is taken again counts as a whole, with everything in between.
    """

    def __init__(self, clock: Clock, observe: Callable[[str, float], None]) -> None:
        self._clock, self._observe = clock, observe
        self._began = clock.monotonic()
        self._steps: dict[str, float] = {}

    @contextmanager
    def timing(self, step: str) -> Iterator[None]:
        """The block is this step."""
        began = self._clock.monotonic()
        try:
            yield
        finally:
            self._note(step, self._clock.monotonic() - began)

    def build_chain(self) -> Callable[[str], None]:
        """What is told the name of each of a row of steps when it begins; an empty name ends the last one."""
        current, began = "", 0.0

        def begin(step: str) -> None:
            nonlocal current, began
            now = self._clock.monotonic()
            if current:
                self._note(current, now - began)
            current, began = step, now

        return begin

    def finish(self) -> str:
        """The take-over is done; returns what it took, in words."""
        total = self._clock.monotonic() - self._began
        self._observe("total", total)
        slow = [f"{step} {seconds:.2f}" for step, seconds in self._steps.items() if seconds >= SHOWN]
        return f"{total:.2f} s after the lease" + (f" ({', '.join(slow)})" if slow else "")

    def _note(self, step: str, seconds: float) -> None:
        self._steps[step] = seconds
        self._observe(step, seconds)
