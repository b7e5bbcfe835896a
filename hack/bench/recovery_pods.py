"""What a sandbox is measured against, on its node and of its image: a bare pod, and a StatefulSet with a claim.

Both serve one directory by HTTP. The StatefulSet's lies on a claim of the cluster's default class and is filled before.
"""

import http.client
import time
from collections.abc import Callable

from hack.bench.recovery_kube import LIMIT, Json, Kube, PodWatch, Word
from hack.demo.run import DemoError, wait_for
from hack.demo.target import Target

PORT = 8080
DATA, FILE = "/data", "home.bin"
SET = "web"
PATIENCE = 0.5  # s for an answer
PAUSE = 0.02  # s between questions
FILL = "head -c {size} /dev/urandom > {path} && sync"


def build_spec(image: str, node: str) -> Json:
    """A pod that serves the volume `data`; the scheduler has its say, as it has on a sandbox."""
    container = {
        "name": "web",
        "image": image,
        "command": ["python3", "-m", "http.server", str(PORT), "--directory", DATA],
        "volumeMounts": [{"name": "data", "mountPath": DATA}],
    }
    where = {"nodeSelector": {"kubernetes.io/hostname": node}, "terminationGracePeriodSeconds": 1}
    return {**where, "enableServiceLinks": False, "containers": [container]}


def build_bare(name: str, image: str, node: str) -> Json:
    """One with an empty directory."""
    spec = {**build_spec(image, node), "volumes": [{"name": "data", "emptyDir": {}}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def build_set(image: str, node: str) -> Json:
    """One whose directory stays when its pod goes. The claim goes with the set."""
    labels = {"app": SET}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}
    spec = {
        "replicas": 1,
        "serviceName": SET,
        "selector": {"matchLabels": labels},
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Delete"},
        "template": {"metadata": {"labels": labels}, "spec": build_spec(image, node)},
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
    }
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": SET}, "spec": spec}


def measure_bare(kube: Kube, watch: PodWatch, name: str, image: str, node: str) -> float:
    """Seconds from the pod's creation to its first answer."""
    begun = time.time()
    kube.create(build_bare(name, image, node))
    try:
        return wait_answer(watch, lambda word: word.pod["metadata"]["name"] == name, PORT, "/") - begun
    finally:
        kube.delete_pod(name)


def fill_set(target: Target, watch: PodWatch, namespace: str, size: int) -> None:
    """Have the set's volume hold a file of so many random bytes."""
    wait_answer(watch, lambda word: word.pod["metadata"]["name"] == f"{SET}-0", PORT, "/")
    fill = FILL.format(size=size, path=f"{DATA}/{FILE}")
    target.kubectl(f"--namespace={namespace}", "exec", f"{SET}-0", "--", "sh", "-c", fill)


def measure_set(kube: Kube, watch: PodWatch) -> float:
    """Seconds from the deletion of the set's pod to the first answer of the next one, about the file it kept."""
    old = kube.read(f"pods/{SET}-0")["metadata"]["uid"]
    begun = time.time()
    kube.delete_pod(f"{SET}-0")
    return wait_answer(watch, build_next({"app": SET}, old), PORT, f"/{FILE}") - begun


def build_next(labels: Json, former: str) -> Callable[[Word], bool]:
    """Whether a word is of a pod with these labels that is not the former one."""

    def is_next(word: Word) -> bool:
        metadata = word.pod["metadata"]
        return labels.items() <= (metadata.get("labels") or {}).items() and metadata["uid"] != former

    return is_next


def wait_answer(watch: PodWatch, is_ours: Callable[[Word], bool], port: int, path: str) -> float:
    """When (Unix s) that pod first answered; its address is the API server's word."""
    word = watch.wait("the pod has an address", lambda word: is_ours(word) and bool(read_address(word.pod)))
    address, name = read_address(word.pod), word.pod["metadata"]["name"]
    return wait_for(f"{name} answers", lambda: ask(address, port, path), LIMIT, PAUSE)


def read_address(pod: Json) -> str:
    """Its IP address; empty until it has one."""
    return str((pod.get("status") or {}).get("podIP") or "")


def ask(address: str, port: int, path: str) -> float | None:
    """The moment at which it answered, if it did."""
    connection = http.client.HTTPConnection(address, port, timeout=PATIENCE)
    try:
        connection.request("HEAD" if path.endswith(FILE) else "GET", path)
        answer = connection.getresponse()
        if answer.status == http.HTTPStatus.OK:
            return time.time()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
    if answer.status == http.HTTPStatus.NOT_FOUND:
        raise DemoError(f"http://{address}:{port}{path} is not there any more")
    return None
