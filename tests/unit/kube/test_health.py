"""Alive and ready: the table of verdicts, and what a probe reads."""

import asyncio
import urllib.error
import urllib.request
from dataclasses import dataclass, replace

import pytest

from alineod.kube.health import (
    Health,
    HealthFacts,
    Phase,
    decide_liveness,
    decide_readiness,
    start_health_server,
    watch_loop,
)
from tests.support.manual_clock import ManualClock

STANDBY = HealthFacts(0.1, elector_alive=True, phase=Phase.STANDBY, lease_age=2.0, lease_problem="")
LEADER = replace(STANDBY, phase=Phase.SERVING)
OPENING = replace(STANDBY, phase=Phase.OPENING, waits_for="the bucket cannot be reached.")
RECONNECTING = replace(STANDBY, phase=Phase.RECONNECTING, reconnected=3, known=12)


@pytest.mark.parametrize(
    ("facts", "good", "words"),
    [
        (STANDBY, True, "0.1 s late"),
        (replace(STANDBY, lag=29.9), True, "29.9 s late"),
        (replace(STANDBY, lag=30.0), False, "stuck for 30 s"),
        (replace(LEADER, elector_alive=False), False, "elector has stopped"),
    ],
)
def test_liveness(facts: HealthFacts, good: bool, words: str) -> None:
    verdict = decide_liveness(facts)
    assert verdict.good is good
    assert words in verdict.sentence


@pytest.mark.parametrize(
    ("facts", "good", "words"),
    [
        (STANDBY, True, "Standing by."),
        (replace(STANDBY, lease_age=30.0, lease_problem="no way"), False, "cannot be read: no way"),
        (LEADER, True, "Leading."),
        (OPENING, False, "waiting: the bucket cannot be reached."),
        (RECONNECTING, True, "reconnecting: 3 of 12 agents"),
        (replace(STANDBY, phase=Phase.STOPPING), False, "about to end"),
        (replace(LEADER, lease_age=99.0), True, "Leading."),
    ],
)
def test_readiness(facts: HealthFacts, good: bool, words: str) -> None:
    verdict = decide_readiness(facts)
    assert verdict.good is good
    assert words in verdict.sentence


@dataclass
class Elector:
    """What health sees of an elector."""

    is_alive: bool = True
    is_leader: bool = False
    problem: str = ""
    age: float = 0.0

    def compute_read_age(self) -> float:
        return self.age


def ask(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_a_probe_reads_a_code_and_a_sentence() -> None:
    clock, elector = ManualClock(), Elector()
    health = Health(elector, clock)
    port, stop = start_health_server(health, 0)
    try:
        assert ask(port, "/healthz") == (200, "The event loop is 0.0 s late.\n")
        assert ask(port, "/readyz?verbose") == (200, "Standing by.\n")
        elector.is_leader = True
        assert ask(port, "/readyz") == (503, "Leading, but waiting: what it needs to begin.\n")
        health.set_waiting("the CRDs", "being opened")
        health.set_waiting("the bucket", "it cannot be reached.")
        assert ask(port, "/readyz") == (
            503, "Leading, but waiting: the CRDs: being opened; the bucket: it cannot be reached.\n",
        )  # fmt: skip
        health.set_there("the CRDs")
        health.set_there("the CRDs")
        assert ask(port, "/readyz") == (503, "Leading, but waiting: the bucket: it cannot be reached.\n")
        health.set_reconnecting(lambda: (1, 2))
        assert ask(port, "/readyz") == (200, "Leading, and reconnecting: 1 of 2 agents are.\n")
        health.set_serving()
        assert ask(port, "/readyz") == (200, "Leading.\n")
        clock.advance(31)
        assert ask(port, "/healthz")[0] == 503
        health.beat()
        assert ask(port, "/healthz")[0] == 200
        assert ask(port, "/else") == (404, "There is /healthz and /readyz.\n")
    finally:
        stop()


def test_two_processes_of_a_pod_do_not_listen_at_once() -> None:
    """On this rests that a container which is started again may take back the lease of its pod (decision 0006)."""
    health = Health(Elector(), ManualClock())
    port, stop = start_health_server(health, 0)
    try:
        with pytest.raises(OSError, match="in use"):
            start_health_server(health, port)
    finally:
        stop()
    start_health_server(health, port)[1]()


async def test_the_loop_beats_while_it_turns() -> None:
    clock, lags, told = ManualClock(), list[float](), asyncio.Event()
    health = Health(Elector(), clock)
    clock.advance(100)

    def observe(seconds: float) -> None:
        lags.append(seconds)
        told.set()

    watching = asyncio.create_task(watch_loop(health, clock, observe, period=0.001))
    async with asyncio.timeout(10):
        await told.wait()
    watching.cancel()
    assert health.read_facts().lag == 0.0
    assert lags[0] == 0.0
