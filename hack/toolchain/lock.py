"""One run at a time for each step, across all checkouts of the machine."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from hack.toolchain.progress import say


@contextlib.contextmanager
def hold(step: str, path: Path) -> Iterator[None]:
    """Hold a lock; say whom it waits for. The kernel lets go of it when the process dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            say(step, f"waiting for another run (process {file.read().strip() or 'unknown'}) to finish this step")
            fcntl.flock(file, fcntl.LOCK_EX)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
