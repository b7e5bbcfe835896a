"""A thread for one call that must not wait behind others. It must not know what is called."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


async def run_apart(act: Callable[[], T]) -> T:
    """As `asyncio.to_thread`, whose few threads may all be waiting for a bucket that does not answer."""
    pool = ThreadPoolExecutor(1)
    try:
        return await asyncio.get_running_loop().run_in_executor(pool, act)
    finally:
        pool.shutdown(wait=False)
