"""One round: a leader that serves is taken away, and the time runs until the next one answers.

What was broken is whole again before the next round: three operators that are ready, none of which was restarted, so
that no container waits for its turn, and a leader with nothing left to do.
"""

import json
import signal
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

from hack.bench.failover_probe import SERVICE, Probe, read_steps
from hack.bench.failover_seed import wait
from hack.chaos.clients import PORT
from hack.chaos.operators import Leader, Operator
from hack.chaos.processes import send_signal
from hack.chaos.sites import RELEASE, REPLICAS, Site
from hack.demo.run import DemoError

WAY = "failover-way"
LIMIT = 120.0  # s that a take-over may take here
CALM = 3.0  # s before a fault
BEFORE = 0.5  # s that is asked before it
LEASE, PODS, THE_SERVICE = "fault -> lease", "fault -> a pod serves", "fault -> the Service serves"


class Fault(StrEnum):
    """What happens to the leader."""

    STOP = "clean stop: the pod is deleted and told so"
    CRASH = "crash: the operator's container is killed"
    GONE = "node gone: its network is cut"


@dataclass(frozen=True)
class Way:
    """How a client outside gets to the Service: a port of each node, by the node's name."""

    addresses: Mapping[str, str]
    port: int

    def choose(self, without: str) -> tuple[str, int]:
        """Over a node that nothing happens to."""
        return next(address for node, address in self.addresses.items() if node != without), self.port


def open_way(site: Site) -> Way:
    """A Service like the release's own that can be reached from outside."""
    where = f"--namespace={site.hands.namespace}"
    ours = f"--selector=app.kubernetes.io/instance={RELEASE}"
    [own] = json.loads(site.target.kubectl(where, "get", "services", ours, "-o", "json").out)["items"]
    spec = {"type": "NodePort", "selector": own["spec"]["selector"], "ports": [{"port": PORT, "targetPort": "api"}]}
    body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": WAY}, "spec": spec}
    site.target.kubectl(where, "apply", "-f", "-", stdin=json.dumps(body))
    port = site.target.kubectl(where, "get", "service", WAY, "-o", "jsonpath={.spec.ports[0].nodePort}").out
    return Way(_read_nodes(site), int(port))


def _read_nodes(site: Site) -> dict[str, str]:
    nodes = json.loads(site.target.kubectl("get", "nodes", "-o", "json").out)["items"]
    return {
        node["metadata"]["name"]: address["address"]
        for node in nodes
        for address in node["status"]["addresses"]
        if address["type"] == "InternalIP"
    }


def measure(site: Site, way: Way, fault: Fault) -> dict[str, float]:
    """Seconds by step."""
    leader = have_calm(site)
    operators = {one.name: (one.address, PORT) for one in site.scout.look() if one.address}
    probe = Probe(operators | {SERVICE: way.choose(leader.operator.node)}, leader.epoch)
    probe.start()
    time.sleep(BEFORE)
    begun = time.monotonic()
    try:
        with striking(site, leader, fault):
            _wait_for(probe, begun)
            name, served = probe.find_first() or ("", 0.0)
            steps = read_steps(operators[name][0])
    finally:
        probe.stop()
    return {
        LEASE: served - begun - steps["total"],
        **steps,
        PODS: served - begun,
        THE_SERVICE: probe.answered[SERVICE] - begun,
    }


def _wait_for(probe: Probe, begun: float) -> None:
    while SERVICE not in probe.answered or probe.find_first() is None:
        if time.monotonic() - begun > LIMIT:
            raise DemoError(f"nobody led within {LIMIT:.0f} s; answers came from {sorted(probe.answered) or 'nobody'}")
        time.sleep(0.05)


@contextmanager
def striking(site: Site, leader: Leader, fault: Fault) -> Iterator[None]:
    """Do it, and undo what does not mend by itself."""
    name, node = leader.operator.name, leader.operator.node
    match fault:
        case Fault.STOP:
            delete(site, leader.operator)
            yield
        case Fault.CRASH:
            if not send_signal([leader.operator.containers["operator"]], signal.SIGKILL):
                raise DemoError(f"the operator of {name} has no process on this machine that could be killed")
            yield
        case Fault.GONE:
            site.hands.change_node("cut", node)
            try:
                yield
            finally:
                site.hands.change_node("join", node)


def delete(site: Site, operator: Operator) -> None:
    """As a roll-out or a drain does it."""
    where = f"--namespace={site.hands.namespace}"
    site.target.kubectl(where, "delete", "pod", operator.name, "--wait=false", "--ignore-not-found")


def have_calm(site: Site) -> Leader:
    """The leader, once everything is whole and it has nothing to do."""

    def is_calm() -> bool:
        operators = site.scout.look()
        for used in (one for one in operators if one.ends and not one.leaving):
            delete(site, used)
        fresh = [one for one in operators if one.ready and not one.ends]
        leader = site.scout.find_leader()
        return len(fresh) == len(operators) == REPLICAS and leader is not None and read_depth(leader) == 0

    wait("three operators are ready and the leader has nothing to do", is_calm)
    time.sleep(CALM)
    leader = site.scout.find_leader()
    if leader is None:
        raise DemoError("the leader went by itself")
    return leader


def read_depth(leader: Leader) -> float:
    """How many keys wait for a worker."""
    with urllib.request.urlopen(f"http://{leader.operator.address}:8082/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return sum(float(line.split()[1]) for line in lines if line.startswith("alineod_queue_depth "))
