"""Stops every other process of the container, so that nothing writes while an archive is cut.

As PID 1 of a process namespace that is everyone, orphans of the agent included, in one call that no fork escapes. Where
the bridge is an ordinary process (on a developer's machine) it is only those descended from it.
"""

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import AsyncIterator

from alineod.bridge.proc import Process, read_table, send

_SETTLE_LIMIT = 5.0
"""s for processes to come to a stop. One that waits for a disk cannot until it is done. One inside vfork() never can,
and stands still because its child does."""
_SETTLE_STEP = 0.01
_STOPPED = frozenset("TtZX")
_log = logging.getLogger("alineod.bridge")


def find_others(table: list[Process], own: int) -> list[Process]:
    """Whom a freeze by `own` concerns: everyone for PID 1, else its descendants."""
    if own == 1:
        return [process for process in table if process.pid != 1]
    below = {own}
    grew = True
    while grew:
        more = {process.pid for process in table if process.parent in below} - below
        below |= more
        grew = bool(more)
    return [process for process in table if process.pid in below and process.pid != own]


@contextlib.asynccontextmanager
async def frozen() -> AsyncIterator[None]:
    """Everyone else stands still inside this block, but for who cannot be stopped within some seconds.

    Who was stopped before stays stopped after it.
    """
    own = os.getpid()
    already = {process.pid for process in find_others(read_table(), own) if process.state in "Tt"}
    try:
        await _stop(own)
        yield
    finally:
        for process in find_others(read_table(), own):
            if process.pid not in already:
                send(process.pid, signal.SIGCONT)


async def _stop(own: int) -> None:
    deadline = asyncio.get_running_loop().time() + _SETTLE_LIMIT
    while True:
        moving = [process for process in find_others(read_table(), own) if process.state not in _STOPPED]
        if not moving:
            return
        if asyncio.get_running_loop().time() > deadline:
            _log.warning("these do not stand still while the archive is cut: %s", moving)
            return
        if own == 1:
            send(-1, signal.SIGSTOP)
        for process in moving if own != 1 else ():
            send(process.pid, signal.SIGSTOP)
        await asyncio.sleep(_SETTLE_STEP)
