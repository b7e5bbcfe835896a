"""Small helpers for tasks that live until the process is told to stop."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


async def wait_first(task: "asyncio.Task[T]", stopped: asyncio.Event) -> bool:
    """Whether the task came to its end before the process was told to stop; if not, it is cancelled."""
    waiting = asyncio.create_task(stopped.wait())
    await asyncio.wait([task, waiting], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if task.done():
        return True
    await cancel_all([task])
    return False


async def run_when(seen: asyncio.Event, run: Callable[[], Awaitable[None]]) -> None:
    """Begin when everything was seen once: what was not seen yet would be taken for what is not there."""
    await seen.wait()
    await run()


async def watch_jobs(jobs: "list[asyncio.Task[None]]", stopped: asyncio.Event) -> None:
    """Until the process is told to stop; a job that ends before has failed, and the process with it."""
    waiting = asyncio.create_task(stopped.wait(), name="stop")
    done, _ = await asyncio.wait([*jobs, waiting], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    for job in done:
        if job.get_name() != "stop":
            raise RuntimeError(f"the job {job.get_name()} ended") from job.exception()


async def cancel_all(tasks: "Iterable[asyncio.Task[Any]]") -> None:
    """Cancel and wait, whatever they raise."""
    all_of_them = list(tasks)
    for task in all_of_them:
        task.cancel()
    await asyncio.gather(*all_of_them, return_exceptions=True)
