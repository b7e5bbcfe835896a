"""What a run says: on stdout, and in a file of its own with the clients' records beside it."""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from hack.chaos.judge import Record


class Log:
    """A new file in `folder`, named by the time."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"chaos-{datetime.now(UTC):%Y%m%d-%H%M%S}.log"
        self._begun = time.monotonic()

    def say(self, line: str = "") -> None:
        print(line, flush=True)
        with self.path.open("a") as file:
            file.write(f"{time.monotonic() - self._begun:8.1f}  {line}\n")

    def write_records(self, name: str, records: Sequence[Record]) -> None:
        """The clients' records as JSON lines."""
        with self.path.with_suffix(f".{name}.jsonl").open("w") as file:
            file.writelines(f"{json.dumps(asdict(record))}\n" for record in records)

    @contextmanager
    def timed(self, title: str) -> Iterator[None]:
        """Say how long something took, set-up and removal included."""
        begun = time.monotonic()
        yield
        seconds = time.monotonic() - begun
        self.say(f"{title} took {seconds / 60:.1f} min" if seconds > 120 else f"{title} took {seconds:.0f} s")
