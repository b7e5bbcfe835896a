"""Removes from the bucket what former terms left there, now and then, beside the work."""

import asyncio
import logging
import threading
from datetime import timedelta

from alineod.clock import Clock
from alineod.errors import AlineoError
from alineod.ledger.replica import delete_former_terms
from alineod.ledger.replicate import Remote

FIRST, EVERY = 30.0, 600.0
"""Seconds until the first look, since a take-over has other work at first, and between two."""
AGE = timedelta(minutes=5)
"""What was written to since then stays: its Litestream may not know yet that its term is over, and would write again.
More than that would fill the bucket where leaders change often: every term begins with a copy of the whole ledger.
"""
log = logging.getLogger(__name__)


async def tidy_former_terms(remote: Remote, epoch: int, clock: Clock) -> None:
    """Go on until cancelled; `epoch` is the published term."""
    pause = FIRST
    while True:
        await asyncio.sleep(pause)
        pause = EVERY
        stopped = threading.Event()
        try:
            await asyncio.to_thread(
                delete_former_terms, remote.bucket, remote.prefix, epoch, clock.now() - AGE, stopped.is_set
            )
        except asyncio.CancelledError:
            stopped.set()
            raise
        except AlineoError as error:
            log.warning("the replicas of former terms could not be removed: %s", error.message)
