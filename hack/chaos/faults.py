"""Does to a leader what the plan says, and undoes what has to be undone.

Each fault is a context: entered it strikes, left it takes away what still stands in the leader's way. What happens
between the two is the successor's business. Kills by number what the leader's containers run, and nothing else.
"""

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from hack.chaos.operators import Leader, Operator, Scout
from hack.chaos.plan import Kind
from hack.chaos.processes import open_directory, open_network, run_in_network, send_signal
from hack.demo.run import DemoError
from hack.demo.target import Target, devcluster

LEDGER = "/var/lib/alineod"
UNDERMINED = 1.5  # s in which a leader goes on with its files deleted
TAKEN_LIMIT = 60.0  # s until somebody else must have taken the lease
GLANCE = 0.1  # s between looks at the lease


@dataclass(frozen=True)
class Hands:
    """What faults are made with; `api_server` is the address that pods know it by."""

    target: Target
    namespace: str
    scout: Scout
    api_server: str

    def delete_pod(self, name: str) -> None:
        words = ("delete", "pod", name, "--grace-period=0", "--force", "--wait=false", "--ignore-not-found")
        self.target.kubectl(f"--namespace={self.namespace}", *words)

    def read_last_words(self, leader: Leader) -> str:
        """What the leader's operator said at its end, where the cluster still has it."""
        words = (f"--namespace={self.namespace}", "logs", leader.operator.name, "--container=operator")
        for which in ("--previous", "--tail=20"):  # the container's next one runs already, or not yet
            said = self.target.kubectl(*words, which, check=False).out.splitlines()
            if said and "ends with code" in said[-1]:
                return said[-1]
        return ""

    def change_node(self, verb: str, node: str) -> None:
        devcluster(self.target.tools, "node", verb, node)


def end_release(hands: Hands) -> None:
    """Kill every operator for good, so that nothing more leaves for the bucket."""
    for operator in hands.scout.look():
        send_signal(list(operator.containers.values()), signal.SIGKILL)
    for words in (("deployment", "--wait=false"), ("pod", "--grace-period=0", "--force")):
        hands.target.kubectl(f"--namespace={hands.namespace}", "delete", *words, "--all")


def _kill(operator: Operator) -> None:
    if not send_signal(list(operator.containers.values()), signal.SIGKILL):
        raise DemoError(f"the containers of {operator.name} have no process on this machine that could be killed")


@contextmanager
def kill(hands: Hands, leader: Leader) -> Iterator[None]:
    _kill(leader.operator)
    yield


@contextmanager
def delete(hands: Hands, leader: Leader) -> Iterator[None]:
    hands.delete_pod(leader.operator.name)
    yield


@contextmanager
def vanish(hands: Hands, leader: Leader) -> Iterator[None]:
    _kill(leader.operator)
    hands.delete_pod(leader.operator.name)
    yield


@contextmanager
def wipe(hands: Hands, leader: Leader) -> Iterator[None]:
    with _opened(leader.operator) as directory:
        _kill(leader.operator)
        _empty(directory)
    yield


@contextmanager
def wipe_live(hands: Hands, leader: Leader) -> Iterator[None]:
    with _opened(leader.operator) as directory:
        _empty(directory)
        time.sleep(UNDERMINED)
        _kill(leader.operator)
        _empty(directory)
    yield


@contextmanager
def twice(hands: Hands, leader: Leader) -> Iterator[None]:
    _kill(leader.operator)
    hands.delete_pod(leader.operator.name)
    end = time.monotonic() + TAKEN_LIMIT
    while (holder := hands.scout.find_holder()) is None or not holder.containers:
        if time.monotonic() > end:
            raise DemoError(f"nobody took the lease within {TAKEN_LIMIT:.0f} s after {leader.operator.name} was gone")
        time.sleep(GLANCE)
    _kill(holder)
    hands.delete_pod(holder.name)
    yield


@contextmanager
def cut(hands: Hands, leader: Leader) -> Iterator[None]:
    hands.change_node("cut", leader.operator.node)
    try:
        yield
    finally:
        hands.change_node("join", leader.operator.node)


@contextmanager
def reboot(hands: Hands, leader: Leader) -> Iterator[None]:
    hands.change_node("reboot", leader.operator.node)
    yield


@contextmanager
def freeze(hands: Hands, leader: Leader) -> Iterator[None]:
    send_signal(leader.ids, signal.SIGSTOP)
    try:
        yield
    finally:
        # Litestream first: the operator is to find it at work.
        for name in ("litestream", "operator"):
            send_signal([leader.operator.containers[name]], signal.SIGCONT)


@contextmanager
def blind(hands: Hands, leader: Leader) -> Iterator[None]:
    network = open_network(leader.operator.containers["operator"])
    rule = ("OUTPUT", "--destination", hands.api_server, "--jump", "DROP")
    try:
        run_in_network(network, "iptables", "--wait", "--insert", *rule)
        yield
    finally:
        run_in_network(network, "iptables", "--wait", "--delete", *rule)
        os.close(network)


@contextmanager
def _opened(operator: Operator) -> Iterator[int]:
    """The ledger's volume."""
    directory = open_directory(operator.containers["operator"], LEDGER)
    try:
        yield directory
    finally:
        os.close(directory)


def _empty(directory: int) -> None:
    for name in os.listdir(directory):
        shutil.rmtree(name, dir_fd=directory, ignore_errors=True)


ACTS: Mapping[Kind, Callable[[Hands, Leader], AbstractContextManager[None]]] = {
    Kind.KILL: kill,
    Kind.DELETE: delete,
    Kind.VANISH: vanish,
    Kind.WIPE: wipe,
    Kind.WIPE_LIVE: wipe_live,
    Kind.TWICE: twice,
    Kind.CUT: cut,
    Kind.REBOOT: reboot,
    Kind.FREEZE: freeze,
    Kind.BLIND: blind,
}
