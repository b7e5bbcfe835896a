"""Signals with their sender: a shutdown is what comes from outside the container.

As PID 1 the bridge can be signalled by any process of its container, the agent's included. The kernel tells: of a
signal from outside the namespace the sender's pid reads 0. The signals are blocked everywhere and taken by one thread
that waits for them, because a Python handler is not told the sender.
"""

import asyncio
import os
import signal
import threading
from collections.abc import Callable

SHUTDOWN = frozenset({signal.SIGTERM, signal.SIGINT})


def is_shutdown(own_pid: int, sender: int) -> bool:
    """Whether a shutdown signal counts: for PID 1 only from outside its namespace, for others always."""
    return own_pid != 1 or sender == 0


def block_shutdown() -> None:
    """Keep the signals pending from now on; to be called before any thread is there."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SHUTDOWN)


def watch_shutdown(on_shutdown: Callable[[], None]) -> None:
    """Call `on_shutdown` in the running loop for every shutdown signal that counts."""
    loop = asyncio.get_running_loop()

    def wait() -> None:
        while True:
            info = signal.sigwaitinfo(SHUTDOWN)
            if is_shutdown(os.getpid(), info.si_pid):
                try:
                    loop.call_soon_threadsafe(on_shutdown)
                except RuntimeError:  # the loop is closed: it is over already
                    return

    threading.Thread(target=wait, name="signals", daemon=True).start()
