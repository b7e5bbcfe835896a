"""One run: faults one after another while clients write, then what the bucket has against what the clients know."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from hack.chaos.clients import Client, count_answers, start_clients, stop_clients
from hack.chaos.faults import ACTS, end_release
from hack.chaos.judge import Record, Verdict, judge
from hack.chaos.operators import Leader
from hack.chaos.plan import Fault, Kind
from hack.chaos.sites import Site
from hack.chaos.tally import Tally
from hack.demo.run import DemoError, wait_for

T = TypeVar("T")
Say = Callable[[str], None]
CLIENTS = 16
ANSWERS = 5  # prompts that a new leader must have acknowledged before the next fault
LIMIT = 180.0  # s until somebody serves again
FENCED_LIMIT = 30.0  # s a leader that was replaced may live on once nothing holds it
LOOK = 0.25  # s between looks
FENCED = 75  # exit code of a leader that lost its lease or its place in the bucket


@dataclass(frozen=True)
class Outcome:
    """`chain` is what `alineod ledger verify` said of the rows that came back, `sound` if it was content.

    `stopped` says why the run ended before its last fault, empty where it did not.
    """

    tally: Tally
    verdict: Verdict
    records: Sequence[Record]
    chain: str
    sound: bool
    stopped: str = ""


def run_faults(site: Site, faults: Sequence[Fault], say: Say) -> Outcome:
    """Everything from the first prompt to the verdict."""
    clients = start_clients(CLIENTS, site.agents, site.token, site.scout.read_addresses)
    tally, stopped = Tally(), ""
    try:
        _wait_served(site, clients, "somebody serves", 0)
        for number, fault in enumerate(faults, 1):
            say(f"{number:>3} of {len(faults)}  {_run_fault(site, clients, fault, tally)}")
    except DemoError as error:
        stopped = str(error)  # what was acknowledged until then is judged all the same
    finally:
        records = stop_clients(clients)
    end_release(site.hands)
    rows, chain = site.read_rows(), site.ask_ledger("verify")
    words = (chain.stdout.strip() or chain.stderr.strip()).splitlines()
    return Outcome(tally, judge(records, rows), records, " ".join(words), chain.returncode == 0, stopped)


def _run_fault(site: Site, clients: Sequence[Client], fault: Fault, tally: Tally) -> str:
    """Strike once and wait until others go on; returns a line about it."""
    leader = _prepare(site, fault.kind)
    _work(clients, fault.calm)
    begun = time.monotonic()
    with ACTS[fault.kind](site.hands, leader):
        what = f"another serves after {leader.operator.name} in epoch {leader.epoch}: {fault.kind}"
        successor = _wait_served(site, clients, what, leader.epoch)
        seconds = time.monotonic() - begun
    tally.struck[fault.kind] += 1
    tally.seconds.setdefault(fault.kind, []).append(seconds)
    line = f"epoch {leader.epoch} -> {successor.epoch} in {seconds:5.1f} s  {fault.kind.name}: {fault.kind}"
    if fault.makes_zombie:
        tally.zombies += 1
        end = _wait_end(site, leader)
        tally.fenced += end == FENCED
        line += "; IT LIVES ON" if end is None else f"; {site.hands.read_last_words(leader) or f'it ended with {end}'}"
    return line


def _work(clients: Sequence[Client], seconds: float) -> None:
    """Leave the leader alone for so long, and until it has acknowledged as many prompts as there are clients."""
    since = time.monotonic()
    time.sleep(seconds)
    _wait("the clients are answered", lambda: count_answers(clients, since) >= len(clients) or None)


def _wait_served(site: Site, clients: Sequence[Client], what: str, epoch: int) -> Leader:
    """Who leads in a later epoch, once prompts that were begun after that are answered."""

    def look() -> Leader | None:
        leader = site.scout.find_leader()
        return leader if leader is not None and leader.epoch > epoch else None

    successor, since = _wait(what, look), time.monotonic()
    _wait(f"{ANSWERS} prompts are answered: {what}", lambda: count_answers(clients, since) >= ANSWERS or None)
    return successor


def _prepare(site: Site, kind: Kind) -> Leader:
    """A leader to strike, with somebody ready to follow it: on another node where the node is struck."""

    def look() -> Leader | None:
        leader, operators = site.scout.find_leader(), site.scout.look()
        for one in operators:
            if one.backing_off:  # the kubelet lets it wait longer each time; a new pod starts at once
                site.hands.delete_pod(one.name)
        if leader is None or len(leader.operator.containers) < 2:
            return None
        others = [one for one in operators if one.ready and one.name != leader.operator.name]
        if kind is Kind.CUT and all(one.node == leader.operator.node for one in others):
            for one in others[:1]:
                site.hands.delete_pod(one.name)  # its next pod is spread to the other node
            return None
        return leader if others else None

    return _wait("there are a leader and a standby", look)


def _wait_end(site: Site, leader: Leader) -> int | None:
    """With which code the leader's operator ended; None where it did not."""
    container = leader.operator.containers["operator"]
    end = time.monotonic() + FENCED_LIMIT
    while time.monotonic() < end:
        found = next((one for one in site.scout.look() if one.name == leader.operator.name), None)
        if found is not None and container in found.ends:
            return found.ends[container]
        time.sleep(LOOK)
    return None


def _wait(what: str, look: Callable[[], T | None]) -> T:
    return wait_for(what, look, LIMIT, LOOK)
