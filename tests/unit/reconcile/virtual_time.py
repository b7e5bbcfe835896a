"""A clock that is moved, and an event loop that goes by it: what waits for a time alone makes that time come.

Hours pass in milliseconds, and two runs of the same life take the same steps. It must not know what is simulated.
"""

import asyncio
import selectors
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

T = TypeVar("T")
STEP = 1e-6  # s, the least that a clock can be moved by


class FakeClock:
    """Wall and monotonic time that go together."""

    def __init__(self) -> None:
        self.time = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return self.time.timestamp()

    def advance(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


class _Selector(selectors.BaseSelector):
    """Waits in the clock's time. Nothing comes from outside, so that there is nothing to wait for in real time."""

    def __init__(self, clock: FakeClock) -> None:
        self._real, self._clock = selectors.DefaultSelector(), clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("the simulation waits for something that never comes")
        ready = self._real.select(0)
        if not ready and timeout > 0:
            self._clock.advance(timeout + STEP)
        return ready

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._real.get_map()

    def close(self) -> None:
        self._real.close()


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop in the clock's time; what would go to a thread is done at once."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(_Selector(clock))
        self._clock, self._timers = clock, list[asyncio.TimerHandle]()

    def time(self) -> float:
        return self._clock.monotonic()

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> Any:
        timer = super().call_at(when, callback, *args, context=context)
        self._timers.append(timer)
        return timer

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> Any:
        done = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # it is the caller's, as from a thread
            done.set_exception(error)
        return done

    def find_next(self) -> float | None:
        """When the next timer is due."""
        now = self.time()
        self._timers = [timer for timer in self._timers if not timer.cancelled() and timer.when() > now]
        return min((timer.when() for timer in self._timers), default=None)


def play(life: Callable[[FakeClock], Awaitable[T]]) -> T:
    """Run a life in time of its own."""
    clock = FakeClock()

    async def run() -> T:
        return await life(clock)

    with asyncio.Runner(loop_factory=lambda: VirtualLoop(clock)) as runner:
        return runner.run(run())
