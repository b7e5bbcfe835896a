"""Holds people's questions back until agents are reconnected, with a bound. It must not know how that is done."""

import asyncio
import contextlib
import logging
from dataclasses import astuple

from alineod.app.takeover import Takeover
from alineod.kube.health import Health
from alineod.reconcile.reconnect import Reconnection

LONGEST = 30.0  # s; who has no answer by then gets it while the API serves
SHOWN = 10  # names in a line of the log
log = logging.getLogger(__name__)


async def reconnect(health: Health, reconnection: Reconnection, takeover: Takeover) -> None:
    """Say how far it is; serve when there is an answer for every agent of before this term."""
    health.set_reconnecting(lambda: astuple(reconnection.compute_progress()))
    with takeover.timing("reconnect"):
        await wait_reconnected(reconnection)
    health.set_serving()


async def wait_reconnected(reconnection: Reconnection, longest: float = LONGEST) -> None:
    """Until that is so, or for `longest` seconds."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(longest):
            await reconnection.complete.wait()
    if waiting := reconnection.read_waiting():
        log.warning("%d agents are not reconnected after %g s: %s", len(waiting), longest, ", ".join(waiting[:SHOWN]))
