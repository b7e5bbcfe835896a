"""Asks for the leader all the time, at every operator's own address and through the Service, as a client would.

One thread for each address: one that does not answer keeps nobody else waiting.
"""

import http.client
import json
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

PERIOD = 0.05  # s between questions: more of them would slow down what they wait for
PATIENCE = 0.5  # s for an answer
SERVICE = "service"


class Probe:
    """`answered` holds, by place, when (monotonic s) a leader of a later epoch than `epoch` answered there first."""

    def __init__(self, places: Mapping[str, tuple[str, int]], epoch: int) -> None:
        self._epoch = epoch
        self._stopping = threading.Event()
        self.answered: dict[str, float] = {}
        self._threads = [
            threading.Thread(target=self._ask, args=(name, *address), daemon=True) for name, address in places.items()
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def find_first(self) -> tuple[str, float] | None:
        """Which pod answered first, and when."""
        pods = {name: when for name, when in self.answered.items() if name != SERVICE}
        return min(pods.items(), key=lambda item: item[1]) if pods else None

    def _ask(self, name: str, host: str, port: int) -> None:
        connection = http.client.HTTPConnection(host, port, timeout=PATIENCE)
        while name not in self.answered and not self._stopping.is_set():
            due = time.monotonic() + PERIOD
            try:
                if read_epoch(connection) > self._epoch:
                    self.answered[name] = time.monotonic()
                elif name == SERVICE:
                    connection.close()  # only a new connection is led to another pod
            except (OSError, http.client.HTTPException, ValueError):
                connection.close()
            self._stopping.wait(max(0.0, due - time.monotonic()))
        connection.close()


def read_epoch(connection: http.client.HTTPConnection) -> int:
    """The epoch in which who answers there serves; 0 where nobody does."""
    connection.request("GET", "/v1/health")
    health = json.loads(connection.getresponse().read())
    return int(health["epoch"]) if health.get("phase") == "serving" else 0


def read_steps(address: str, port: int = 8082) -> dict[str, float]:
    """What the take-over of the leader at `address` took, by step, as its metrics say."""
    connection = http.client.HTTPConnection(address, port, timeout=5)
    try:
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
    finally:
        connection.close()
    return parse_steps(lines)


def parse_steps(lines: Sequence[str]) -> dict[str, float]:
    """The series of the metric, by its label."""
    steps = {}
    for line in lines:
        if line.startswith('alineod_takeover_seconds{step="'):
            name, _, rest = line.partition('{step="')[2].partition('"')
            with suppress(ValueError):
                steps[name] = float(rest.rpartition(" ")[2])
    return steps
