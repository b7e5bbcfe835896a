"""What a new leader has still to hear of: agents with a sandbox of before its term, until the ladder's first answer.

A lower rung that has begun is an answer, and so is a reason to wait that is said: neither a node that is out of reach
nor a bucket that is away holds up who waits for the reconnection. It must not know who does.
"""

import asyncio
from collections.abc import Set
from dataclasses import dataclass

from alineod.domain.state import State


@dataclass(frozen=True)
class Progress:
    """How many agents are reconnected, and of how many."""

    done: int
    total: int


def find_known(state: State) -> frozenset[str]:
    """The agents that have a sandbox by the ledger; when a term begins, all of those are of before it."""
    return frozenset(agent.key for agent in state.agents.values() if agent.pod is not None and not agent.closed)


class Reconnection:
    """Counts a term's agents of before it. `complete` is set when there is an answer for each."""

    def __init__(self) -> None:
        self.complete = asyncio.Event()
        self._total = 0
        self._waiting: set[str] = set()

    def begin(self, known: Set[str]) -> None:
        """These are waited for."""
        self._total, self._waiting = len(known), set(known)
        self._look()

    def answer(self, key: str) -> None:
        """There is an answer for this agent; one that is not waited for changes nothing."""
        if key in self._waiting:
            self._waiting.discard(key)
            self._look()

    def _look(self) -> None:
        if not self._waiting:
            self.complete.set()

    def compute_progress(self) -> Progress:
        """May be called from another thread."""
        return Progress(self._total - len(self._waiting), self._total)

    def read_waiting(self) -> list[str]:
        """The agents for which there is no answer yet."""
        return sorted(self._waiting)
