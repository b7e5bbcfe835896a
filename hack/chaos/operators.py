"""The operator's pods as the cluster tells of them, and which of them leads, as they themselves say.

`parse_operator` is pure; the rest reads.
"""

import http.client
import json
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pykube
from pykube.objects import Pod

from hack.chaos.clients import PORT
from hack.demo.target import Target

LOOK = 0.4  # s between looks at the pods
HEALTH_PATIENCE = 1.0  # s
LEASES, LEASE = "coordination.k8s.io/v1", "alineod"
CONTAINERS = ("operator", "litestream")


@dataclass(frozen=True)
class Operator:
    """One pod. `containers` are the ids of what runs by name, `ends` the exit codes of the operator's by id."""

    name: str
    node: str
    address: str
    ready: bool
    leaving: bool
    backing_off: bool
    containers: Mapping[str, str]
    ends: Mapping[str, int]


@dataclass(frozen=True)
class Leader:
    """The pod that serves, and the epoch it serves in."""

    operator: Operator
    epoch: int

    @property
    def ids(self) -> list[str]:
        """Its containers."""
        return list(self.operator.containers.values())


def parse_operator(pod: Mapping[str, Any]) -> Operator:
    """What matters here of a pod."""
    status: Mapping[str, Any] = pod.get("status") or {}
    statuses = [*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())]
    conditions = {c["type"]: c["status"] for c in status.get("conditions") or ()}
    return Operator(
        name=pod["metadata"]["name"],
        node=(pod.get("spec") or {}).get("nodeName") or "",
        address=status.get("podIP") or "",
        ready=conditions.get("Ready") == "True" and "deletionTimestamp" not in pod["metadata"],
        leaving="deletionTimestamp" in pod["metadata"],
        backing_off=any("waiting" in s["state"] and "BackOff" in s["state"]["waiting"]["reason"] for s in statuses),
        containers={s["name"]: _parse_id(s["containerID"]) for s in statuses if "running" in s["state"]},
        ends=dict(_find_ends(next((s for s in statuses if s["name"] == "operator"), {}))),
    )


def _find_ends(status: Mapping[str, Any]) -> list[tuple[str, int]]:
    ends = [(status.get(name) or {}).get("terminated") for name in ("state", "lastState")]
    return [(_parse_id(end["containerID"]), end["exitCode"]) for end in ends if end and end.get("containerID")]


def _parse_id(text: str) -> str:
    """The id without the runtime's name before it."""
    return text.rpartition("/")[2]


class Scout:
    """Looks at the pods of one release all the time, so that clients find those that are there."""

    def __init__(self, target: Target, namespace: str, release: str) -> None:
        config = pykube.KubeConfig.from_file(target.kubeconfig)
        config.set_current_context(target.context)
        self._kube = pykube.HTTPClient(config, timeout=10)
        self._namespace, self._selector = namespace, {"app.kubernetes.io/instance": release}
        self._guard = threading.Lock()
        self._stopping = threading.Event()
        self._operators: Sequence[Operator] = ()
        self._thread = threading.Thread(target=self._run, name="scout", daemon=True)

    def start(self) -> None:
        self.look()
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        self._kube.session.close()

    def look(self) -> Sequence[Operator]:
        """The pods as they are now, or were last where the API server does not answer."""
        with self._guard, suppress(OSError, pykube.exceptions.PyKubeError):
            pods = Pod.objects(self._kube, namespace=self._namespace).filter(selector=self._selector)
            self._operators = [parse_operator(pod.obj) for pod in pods]
        return self._operators

    def read_addresses(self) -> Sequence[str]:
        """Where operators were at the last look."""
        return [operator.address for operator in self._operators if operator.address]

    def find_leader(self) -> Leader | None:
        """Who serves, in the highest epoch should there be two."""
        serving = [Leader(one, epoch) for one in self.look() if (epoch := read_epoch(one.address)) is not None]
        return max(serving, key=lambda leader: leader.epoch, default=None)

    def find_holder(self) -> Operator | None:
        """Whose name is in the Lease, whether it serves yet or not."""
        with self._guard:
            asked = self._kube.get(version=LEASES, namespace=self._namespace, url=f"leases/{LEASE}")
        holder = str(asked.json()["spec"].get("holderIdentity") or "")
        return next((one for one in self.look() if holder.startswith(f"{one.name}_")), None)

    def _run(self) -> None:
        while not self._stopping.wait(LOOK):
            self.look()


def read_epoch(address: str) -> int | None:
    """The epoch in which the operator at `address` serves; None where it does not."""
    health = read_health(address)
    return None if health is None else int(health["epoch"])


def read_health(address: str) -> Mapping[str, Any] | None:
    """What the operator at `address` says of itself; None where it does not serve."""
    if not address:
        return None
    connection = http.client.HTTPConnection(address, PORT, timeout=HEALTH_PATIENCE)
    try:
        connection.request("GET", "/v1/health")
        response = connection.getresponse()
        body: Mapping[str, Any] = json.loads(response.read())
        return body if body.get("phase") == "serving" else None
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()
