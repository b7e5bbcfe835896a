"""What a restore cannot do without: the archive fetched from the bucket and unpacked, by plain tools in a pod.

On the same node and into a volume of the same kind as a sandbox's home; nothing is verified and nobody is asked.
"""

from collections.abc import Iterator

from hack.bench.recovery_kube import Json, Kube, PodWatch
from hack.bench.recovery_report import FETCH, SYNC
from hack.demo.target import Target

POD = "pipe"
UNZSTD = 'const z=require("zlib"); process.stdin.pipe(z.createZstdDecompress()).pipe(process.stdout)'
SCRIPT = """
set -eo pipefail
rm -rf /t/x && mkdir /t/x && cd /t/x && sync
date +%s.%N
curl --silent --fail "$1" | node -e "$2" | tar --extract
date +%s.%N
sync
date +%s.%N
"""


def build_pod(image: str, node: str) -> Json:
    """A pod that waits to be used."""
    container = {
        "name": POD,
        "image": image,
        "command": ["sleep", "infinity"],
        "volumeMounts": [{"name": "t", "mountPath": "/t"}],
    }
    spec = {
        "nodeSelector": {"kubernetes.io/hostname": node},
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
        "volumes": [{"name": "t", "emptyDir": {}}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": POD}, "spec": spec}


def have_pod(kube: Kube, watch: PodWatch, image: str, node: str) -> None:
    """Make it, and wait until it runs."""
    kube.create(build_pod(image, node))
    watch.wait(
        "the pod for plain transfers runs",
        lambda word: word.pod["metadata"]["name"] == POD and word.pod["status"].get("phase") == "Running",
    )


def measure_transfer(target: Target, namespace: str, url: str) -> Iterator[tuple[str, float]]:
    """Seconds of GET and unpacking, and the same until all of it is on the disk."""
    command = ("exec", POD, "--", "bash", "-c", SCRIPT, "bash", url, UNZSTD)
    begun, unpacked, synced = map(float, target.kubectl(f"--namespace={namespace}", *command).out.split())
    yield FETCH, unpacked - begun
    yield SYNC, synced - begun
