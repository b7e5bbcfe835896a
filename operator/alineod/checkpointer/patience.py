"""How long to wait before the next try, and saying so. Nothing that is out of reach is ever given up."""

import logging
from collections.abc import Callable

FIRST, LONGEST = 0.5, 30.0  # s
_log = logging.getLogger("alineod.checkpointer")


def compute_delay(attempt: int) -> float:
    """Seconds before the next try, after `attempt` failed ones in a row."""
    return float(min(LONGEST, FIRST * 2 ** min(attempt - 1, 10)))


class Patience:
    """Waits between tries, each time longer, and logs what it waits for when that is news."""

    def __init__(self, sleep: Callable[[float], None]) -> None:
        self._sleep = sleep
        self._attempt = 0
        self._said = ""

    def wait(self, why: str) -> None:
        """One wait. `why` is a sentence."""
        self._attempt += 1
        if why != self._said:
            _log.info("waiting: %s", why)
            self._said = why
        self._sleep(compute_delay(self._attempt))

    def reset(self) -> None:
        """Something went well: the next wait is short again."""
        self._attempt = 0
