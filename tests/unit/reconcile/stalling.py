"""A process that stalls before one of its outside calls, and sends that call when another one leads.

The call goes out as it was decided, however much has changed. What the process would do afterwards is refused by
itself: its lease has run out (`remaining`), and the ledger's fence has moved on.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from inspect import isasyncgenfunction, iscoroutinefunction
from typing import Any

from alineod.errors import Fenced, Unavailable


@dataclass
class Stall:
    """Counts the calls of one process and holds the one numbered `at` until `free` is set."""

    at: int
    calls: int = 0
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    free: asyncio.Event = field(default_factory=asyncio.Event)
    sent: str = ""

    async def pass_by(self, call: str) -> None:
        """Wait here for the term's end if this is the call; refuse what comes after it."""
        self.calls += 1
        if self.reached.is_set():
            raise Unavailable("LeaseLost", f"{call} was not sent")
        if self.calls == self.at:
            self.sent = call
            self.reached.set()
            await self.free.wait()

    def wrap(self, port: Any, *, fenced: bool = False) -> Any:
        """The port, each of its asynchronous calls numbered; `fenced` refuses what is sent late."""
        return _Stalling(self, port, fenced)


class _Stalling:
    def __init__(self, stall: Stall, port: Any, fenced: bool) -> None:
        self._stall, self._port, self._fenced = stall, port, fenced

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._port, name)
        if isasyncgenfunction(real):
            return self._follow(real, name)
        return self._call(real, name) if iscoroutinefunction(real) else real

    def _call(self, real: Callable[..., Awaitable[Any]], name: str) -> Callable[..., Awaitable[Any]]:
        async def call(*args: Any, **named: Any) -> Any:
            await self._stall.pass_by(name)
            if self._fenced and self._stall.reached.is_set():
                raise Fenced("Fenced", f"{name} of a leader of before")
            return await real(*args, **named)

        return call

    def _follow(self, real: Callable[..., Any], name: str) -> Callable[..., Any]:
        async def follow(*args: Any, **named: Any) -> Any:
            await self._stall.pass_by(name)
            async for each in real(*args, **named):
                if self._stall.reached.is_set():
                    raise Unavailable("LeaseLost", f"{name} is read no more")
                yield each

        return follow
