"""What a person sees while it runs: steps with their times, and a tree that changes in place on a terminal."""

import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TextIO

from hack.demo.tree import Leaf, build_tree, compute_changes


@dataclass
class Show:
    """Writes to `out`; keeps how long each step took (seconds)."""

    out: TextIO = sys.stdout
    clock: Callable[[], float] = time.monotonic
    times: list[tuple[str, float]] = field(default_factory=list)
    _shown: Sequence[Leaf] = ()
    _lines: int = 0

    def say(self, line: str = "") -> None:
        self._lines = 0
        print(line, file=self.out, flush=True)

    def quote(self, text: str) -> None:
        """What somebody else said."""
        for line in filter(None, text.splitlines()):
            self.say(f"   | {line}")

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Say what is done now, and how long it took."""
        self.say(f"== {title}")
        begun = self.clock()
        yield
        self.times.append((title, self.clock() - begun))
        self.say(f"   {self.times[-1][1]:.1f} s")

    def tree(self, leaves: Sequence[Leaf]) -> None:
        """The tree in the place of the last one; where that cannot be, the agents that changed."""
        if tuple(leaves) == tuple(self._shown):
            return
        if not self.out.isatty():
            for line in compute_changes(self._shown, leaves):
                self.say(f"   {line}")
        else:
            width = shutil.get_terminal_size().columns - 4  # a line that wraps would not be overwritten
            lines = [line[:width] for line in build_tree(leaves)]
            back = f"\x1b[{self._lines}A\x1b[J" if self._lines else ""
            print(back + "\n".join(f"   {line}" for line in lines), file=self.out, flush=True)
            self._lines = len(lines)
        self._shown = tuple(leaves)

    def table(self) -> None:
        """The steps and their times."""
        width = max((len(title) for title, _ in self.times), default=0)
        for title, seconds in self.times:
            self.say(f"   {title:<{width}}  {seconds:7.1f} s")
