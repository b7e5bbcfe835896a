"""Whether this process is alive and ready, told over HTTP from threads that no event loop can block.

The verdicts are pure functions of facts; the server only says them. It must not know what makes a leader ready.
"""

import asyncio
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Protocol, assert_never

from alineod.clock import Clock

# Seconds: a loop that has not come to its turn for so long is stuck, and a Lease not read for so long is out of reach.
LONGEST_LAG = 30.0
LONGEST_READ_AGE = 30.0
# Seconds between two looks at how late the loop is.
BEAT = 0.05


class Phase(StrEnum):
    """How far this process is with leading. From `reconnecting` on it answers sandboxes, when `serving` everybody."""

    STANDBY = "standby"
    OPENING = "opening"
    RECONNECTING = "reconnecting"
    SERVING = "serving"
    STOPPING = "stopping"


@dataclass(frozen=True, slots=True)
class HealthFacts:
    """What the verdicts hang on.

    `waits_for` is what a leader that is opening still waits for; of `known` agents `reconnected` are reconnected.
    """

    lag: float
    elector_alive: bool
    phase: Phase
    lease_age: float
    lease_problem: str
    waits_for: str = ""
    reconnected: int = 0
    known: int = 0

    @property
    def leading(self) -> bool:
        return self.phase is not Phase.STANDBY


@dataclass(frozen=True, slots=True)
class Verdict:
    """Yes or no, and a sentence for who asks why."""

    good: bool
    sentence: str


def decide_liveness(facts: HealthFacts) -> Verdict:
    """Whether a restart would not help."""
    if not facts.elector_alive:
        return Verdict(False, "The elector has stopped.")
    if facts.lag >= LONGEST_LAG:
        return Verdict(False, f"The event loop has been stuck for {facts.lag:.0f} s.")
    return Verdict(True, f"The event loop is {facts.lag:.1f} s late.")


def decide_readiness(facts: HealthFacts) -> Verdict:
    """Whether this process does its part: a leader its work, a standby its watch over the lease."""
    match facts.phase:
        case Phase.OPENING:
            return Verdict(False, f"Leading, but waiting: {facts.waits_for}")
        case Phase.RECONNECTING:
            # Ready for sandboxes, which the Service leads here only then: one that is brought back asks how to start.
            return Verdict(True, f"Leading, and reconnecting: {facts.reconnected} of {facts.known} agents are.")
        case Phase.SERVING:
            return Verdict(True, "Leading.")
        case Phase.STOPPING:
            return Verdict(False, "Leading, but about to end.")
        case Phase.STANDBY if facts.lease_age >= LONGEST_READ_AGE:
            return Verdict(False, f"Standing by, but the lease cannot be read: {facts.lease_problem}.")
        case Phase.STANDBY:
            return Verdict(True, "Standing by.")
        case _:
            assert_never(facts.phase)


class ElectorView(Protocol):
    """What health wants to know of the elector."""

    @property
    def is_alive(self) -> bool: ...

    @property
    def is_leader(self) -> bool: ...

    @property
    def problem(self) -> str: ...

    def compute_read_age(self) -> float: ...


class Health:
    """The facts, as the event loop and the elector last left them."""

    def __init__(self, elector: ElectorView, clock: Clock) -> None:
        self._elector, self._clock = elector, clock
        self._beat = clock.monotonic()
        self._phase = Phase.OPENING
        self._waits: dict[str, str] = {}
        self._count: Callable[[], tuple[int, int]] = lambda: (0, 0)

    def beat(self) -> None:
        """Say that the event loop has come to its turn."""
        self._beat = self._clock.monotonic()

    def set_waiting(self, what: str, why: str) -> None:
        """Say that the leader is not ready without `what`, and why it has to wait."""
        self._waits[what] = why

    def set_there(self, what: str) -> None:
        """Say that the leader waits for this no longer."""
        self._waits.pop(what, None)

    def set_reconnecting(self, count: Callable[[], tuple[int, int]]) -> None:
        """Say that the leader reconnects agents; `count` tells, in any thread, how many are and of how many."""
        self._count = count
        self._phase = Phase.RECONNECTING

    def set_serving(self) -> None:
        """Say that the leader does its work."""
        self._phase = Phase.SERVING

    def set_stopping(self) -> None:
        """Say that the leader does its work no more."""
        self._phase = Phase.STOPPING

    def read_facts(self) -> HealthFacts:
        """Everything a verdict hangs on, now."""
        reconnected, known = self._count()
        return HealthFacts(
            lag=self._clock.monotonic() - self._beat,
            elector_alive=self._elector.is_alive,
            phase=self._phase if self._elector.is_leader else Phase.STANDBY,
            lease_age=self._elector.compute_read_age(),
            lease_problem=self._elector.problem,
            waits_for=self._describe_waits(),
            reconnected=reconnected,
            known=known,
        )

    def _describe_waits(self) -> str:
        # A copy: the event loop may change it while a probe is answered.
        return "; ".join(f"{what}: {why}" for what, why in dict(self._waits).items()) or "what it needs to begin."


async def watch_loop(health: Health, clock: Clock, observe_lag: Callable[[float], None], period: float = BEAT) -> None:
    """Beat once in `period` seconds for as long as the loop turns, and tell how late it was."""
    while True:
        due = clock.monotonic() + period
        await asyncio.sleep(period)
        health.beat()
        observe_lag(max(0.0, clock.monotonic() - due))


class _Server(ThreadingHTTPServer):
    """On every address, of both families where the machine has both."""

    daemon_threads = True
    address_family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET

    def server_bind(self) -> None:
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()


def start_health_server(health: Health, port: int) -> tuple[int, Callable[[], None]]:
    """Serve `/healthz` and `/readyz` from a thread.

    Returns:
        The port, and what stops it.
    """
    verdicts = {"/healthz": decide_liveness, "/readyz": decide_readiness}

    class Handler(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:
            decide = verdicts.get(self.path.partition("?")[0])
            verdict = (
                Verdict(False, "There is /healthz and /readyz.") if decide is None else decide(health.read_facts())
            )
            self.send_response(
                HTTPStatus.OK if verdict.good else HTTPStatus.SERVICE_UNAVAILABLE if decide else HTTPStatus.NOT_FOUND
            )
            body = f"{verdict.sentence}\n".encode()
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the base class calls it so)
            """Probes are no news."""

    server = _Server(("", port), Handler)
    thread = threading.Thread(target=server.serve_forever, name="health", daemon=True)
    thread.start()

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return server.server_address[1], stop
