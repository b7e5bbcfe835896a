"""What an operator's process is restarted in: a real API server, a real bucket and Litestream, and kubelets of our own.

All of it is in the network and the mounts of this process alone (see `recovery_restarts`): the operator's ports, the
bridge's port and /run/alineod are nobody else's. There is no node; a pod that is made runs a moment later, and its
bridge is on a loopback address of its own.
"""

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from alineod.crd.definition import DEFINITIONS, build_crd
from alineod.podspec.observe import parse_pod
from alineod.wire.archives import RestoreReport
from alineod.wire.base import encode
from hack.bench.ledger_world import SIDECAR, running
from hack.bench.recovery_kube import AGAIN, Json, Kube
from hack.bench.recovery_pods import read_address
from hack.demo.run import DemoError
from tests.support.apiserver import ApiServer, find_kube, run_apiserver
from tests.support.seaweed import REGION, Seaweed, running_seaweed
from tests.unit.reconcile.pod_status import build_running

SYSTEM, SPACE = "alineod-system", "agents"
OPERATOR_POD = "alineod-0"
RUN_DIRECTORY = "/run/alineod"
NOBODY = {"containers": [{"name": "operator", "image": "none"}], "automountServiceAccountToken": False}


@dataclass(frozen=True)
class Rig:
    """What there is, and the environment of an operator in it."""

    server: ApiServer
    kubeconfig: Path
    env: dict[str, str]
    ledger: Path


@contextmanager
def having_rig(directory: Path) -> Iterator[Rig]:
    """Everything but the operator."""
    if (kube := find_kube()) is None:
        raise DemoError("there is no API server: `make bootstrap` builds one")
    with ExitStack() as stack:
        (directory / "api").mkdir()
        server = stack.enter_context(run_apiserver(kube, directory / "api"))
        uid = install(server)
        store = stack.enter_context(running_seaweed(directory / "store"))
        env = build_env(server, store, directory / "ledger", uid)
        stack.enter_context(running([sys.executable, "-c", SIDECAR], env | {"ALINEOD_RUN_DIR": RUN_DIRECTORY}))
        stack.enter_context(running([sys.executable, "-m", "hack.bench.recovery_bridges"], dict(os.environ)))
        kubelet = Kubelet(open_pods(server.kubeconfig), open_pods(server.kubeconfig))
        threading.Thread(target=kubelet.run, name="kubelet", daemon=True).start()
        yield Rig(server, server.kubeconfig, env, directory / "ledger")


def open_pods(kubeconfig: Path, namespace: str = SPACE) -> Kube:
    """The pods of the agents."""
    return Kube(str(kubeconfig), "test", namespace)


def install(server: ApiServer) -> str:
    """The CRDs, the namespaces, and a pod for the operator to write its label on; returns that pod's UID."""
    namespaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in (SYSTEM, SPACE)]
    said = server.apply(*(build_crd(definition) for definition in DEFINITIONS), *namespaces)
    if not said.ok:
        raise DemoError(f"the API server refused our kinds: {said.text}")
    for name in (SYSTEM, SPACE):  # no controller makes it here, and no pod is made without
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        open_pods(server.kubeconfig, name).create(account, "serviceaccounts")
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": OPERATOR_POD}, "spec": NOBODY}
    return str(open_pods(server.kubeconfig, SYSTEM).create(pod)["metadata"]["uid"])


def build_env(server: ApiServer, store: Seaweed, ledger: Path, pod_uid: str) -> dict[str, str]:
    """As the chart sets it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "ALINEOD_"))}
    settings = {
        "INSTANCE": "bench",
        "NAMESPACE": SYSTEM,
        "POD_NAME": OPERATOR_POD,
        "POD_UID": pod_uid,
        "SERVICE_URL": "http://operator:8080",
        "WATCH_NAMESPACES": SPACE,
        "IMAGE_SANDBOX": "none",
        "IMAGE_AGENT": "none",
        "LEDGER_DIR": str(ledger),
        "BUCKET_NAME": store.bucket,
        "BUCKET_ENDPOINT": store.endpoint,
        "BUCKET_REGION": REGION,
    }
    ours = {f"ALINEOD_{name}": value for name, value in settings.items()}
    return {**kept, **store.env, **ours, "KUBECONFIG": str(server.kubeconfig)}


class Kubelet:
    """Says of every pod that its containers run, at an address of its own. `kube` watches, `hand` writes."""

    def __init__(self, kube: Kube, hand: Kube) -> None:
        self._kube, self._hand, self._count = kube, hand, 0

    def run(self) -> None:
        """For as long as the process lives."""
        while True:
            with suppress(OSError):  # the server ends a watch after a while, and itself at the end
                for word in self._kube.watch():
                    if word.kind == "ADDED" and not read_address(word.pod):
                        self._start(word.pod)
            time.sleep(AGAIN)

    def _start(self, pod: Json) -> None:
        self._count += 1
        address = f"127.{1 + self._count // 62_500}.{self._count // 250 % 250}.{1 + self._count % 250}"
        status = build_running(parse_pod(pod), encode(RestoreReport(start="fresh")).decode())
        self._hand.write_status(pod["metadata"]["name"], {**status, "podIP": address, "podIPs": [{"ip": address}]})
