"""Puts alineod and the parts beside it into a cluster as a person would: images, manifests, the chart with Helm."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hack.demo.run import DemoError, run
from hack.demo.target import ROOT, Kind, Target, devcluster

SYSTEM = "alineod-system"
PARTS = "alineod-parts"
RELEASE = "alineod"
HERE = Path(__file__).parent
CHART = ROOT / "charts" / "alineod"
VALUES = HERE / "values.yaml"
BUCKET = "alineod"
MODEL_KEY = "scripted-key"
BUCKET_KEYS = {"AWS_ACCESS_KEY_ID": "demo", "AWS_SECRET_ACCESS_KEY": "demo-secret"}


@dataclass(frozen=True)
class Images:
    """The images of this checkout by target, and the archives they are packed in."""

    refs: dict[str, str]
    archives: list[str]

    def build_values(self) -> list[str]:
        """Helm's words for them."""
        return [f"--set=image.{name}={self.refs[target]}" for name, target in IMAGE_VALUES.items()]


IMAGE_VALUES = {"operator": "operator", "sandbox": "sandbox", "agent": "agent-pi"}


def build_images(*, show: bool = True) -> Images:
    """Have the images built; what is there already is not built again. Its progress goes to stderr."""
    command = [sys.executable, "-m", "hack.images", "build"]
    done = subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=None if show else subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        raise DemoError(f"the images could not be built{': ' + done.stderr[-2000:] if done.stderr else ''}")
    built = json.loads(done.stdout.splitlines()[-1])
    return Images(built["images"], built["archives"])


def load_images(target: Target, images: Images) -> None:
    """Give the images to the cluster's nodes. A cluster of the person's own pulls them from where they pushed them."""
    match target.kind:
        case Kind.DEV:
            devcluster(target.tools, "load", *images.archives)
        case Kind.KIND:
            name = target.context.removeprefix("kind-")
            for archive in images.archives:
                run(["kind", "load", "image-archive", archive, f"--name={name}"])
        case Kind.CURRENT:
            pass


def install_parts(target: Target, images: Images) -> None:
    """Apply the bucket and the scripted model, and wait until both answer."""
    manifest = (HERE / "manifests" / "parts.yaml").read_text()
    target.kubectl("apply", "-f", "-", stdin=manifest.replace("${DEVTOOLS_IMAGE}", images.refs["devtools"]))
    for name in ("bucket", "scripted-model"):
        target.kubectl("rollout", "status", f"deployment/{name}", f"--namespace={PARTS}", "--timeout=180s")


def apply_namespace(target: Target, name: str, labels: Sequence[str] = ()) -> None:
    """Have the namespace, with these labels (`name=value`)."""
    if target.kubectl("get", "namespace", name, check=False).code:
        target.kubectl("create", "namespace", name)
    if labels:
        target.kubectl("label", "--overwrite", "namespace", name, *labels)


def apply_secret(target: Target, namespace: str, name: str, values: dict[str, str]) -> None:
    """Have a Secret with these values."""
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": values}
    target.kubectl("apply", f"--namespace={namespace}", "-f", "-", stdin=json.dumps(body))


def install_chart(
    target: Target,
    images: Images,
    *,
    release: str = RELEASE,
    namespace: str = SYSTEM,
    more: Sequence[str] = (),
    wait: bool = True,
) -> None:
    """Apply the CRDs, then `helm upgrade --install` with the demo's values and `more` words; ends when it is ready."""
    apply_namespace(target, namespace, ["pod-security.kubernetes.io/enforce=restricted"])
    apply_secret(target, namespace, "bucket", BUCKET_KEYS)
    target.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(CHART / "crds"))
    words = [f"--namespace={namespace}", f"--values={VALUES}", *images.build_values(), *more]
    command = ["upgrade", "--install", release, str(CHART), *words, *(["--wait", "--timeout=3m"] if wait else [])]
    ran = target.helm(*command, check=False)
    if ran.code:
        raise DemoError(f"helm {' '.join(command)} failed: {ran.words}\n{explain_release(target, release, namespace)}")


def explain_release(target: Target, release: str, namespace: str) -> str:
    """Its pods, and the last words of each."""
    where, selector = f"--namespace={namespace}", f"--selector=app.kubernetes.io/instance={release}"
    pods = target.kubectl(where, "get", "pods", selector, "-o", "wide", check=False)
    logs = target.kubectl(where, "logs", selector, "--prefix", "--tail=3", "--container=operator", check=False)
    return f"{pods.out}{logs.out}{logs.err}"


def remove_everything(target: Target, *namespaces: str) -> None:
    """Take away the release, the parts and these namespaces. The CRDs stay, as Helm leaves them."""
    target.helm("uninstall", RELEASE, f"--namespace={SYSTEM}", "--ignore-not-found", "--wait")
    target.kubectl("delete", "namespace", "--ignore-not-found", *namespaces, PARTS, SYSTEM)


def find_leader(target: Target) -> str:
    """The operator's pod that leads."""
    where = f"--namespace={SYSTEM}"
    names = "jsonpath={.items[*].metadata.name}"
    found = target.kubectl(where, "get", "pods", "--selector=alineo.dev/role=leader", "-o", names).out.split()
    if not found:
        raise DemoError(f"no operator leads in {SYSTEM}\n{explain_release(target, RELEASE, SYSTEM)}")
    return found[0]
