"""What a run stands on: a bucket on this machine that nobody kills, a release of the chart, and agents that only wait.

The agents are held by `waitFor` for one whose pod no node takes, so that prompts queue and no sandbox ever runs. A run
leaves nothing behind in the cluster.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hack.chaos.faults import Hands
from hack.chaos.operators import Scout
from hack.demo.install import Images, apply_namespace, apply_secret, install_chart
from hack.demo.run import DemoError
from hack.demo.target import ROOT, Kind, Target
from tests.support.seaweed import Seaweed, running_seaweed

RELEASE = "chaos"
REPLICAS = 3
NAMES = [f"a{number:02d}" for number in range(48)]
SWARM = "held"
BUCKET = "chaos"
SECRET = "chaos-bucket"
LABEL = "alineo.dev/chaos=true"
OURS = "--selector=app.kubernetes.io/name=alineod"


@dataclass(frozen=True)
class Site:
    """One installed release; `instance` is what it keeps its things in the bucket under."""

    target: Target
    hands: Hands
    scout: Scout
    store: Seaweed
    instance: str
    space: str
    token: str

    @property
    def agents(self) -> list[str]:
        """Who takes prompts."""
        return [f"{self.space}/{SWARM}-{name}" for name in NAMES]

    def ask_ledger(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run `alineod ledger` on this machine, over the bucket and nothing else."""
        program = "import sys; from alineod.cli.main import main; sys.exit(main())"
        where = [f"--bucket={BUCKET}", f"--endpoint={self.store.endpoint}", f"--instance={self.instance}"]
        env = {**self.store.env, "PYTHONPATH": str(ROOT / "operator"), "PATH": "/usr/bin:/bin"}
        command = [sys.executable, "-c", program, "ledger", *words, *where]
        return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=600)

    def read_rows(self) -> list[dict[str, Any]]:
        """Every row that a restore from the bucket brings back."""
        dumped = self.ask_ledger("dump")
        if dumped.returncode:
            raise DemoError(f"the ledger does not come back from the bucket: {dumped.stderr.strip()}")
        return [json.loads(line) for line in dumped.stdout.splitlines()]


@contextmanager
def having_store(target: Target, directory: Path) -> Iterator[Seaweed]:
    """SeaweedFS on this machine, where the cluster's pods reach it and no fault does."""
    if target.kind is not Kind.DEV:
        raise DemoError("nodes are cut and processes killed in the development cluster alone: leave CLUSTER out")
    shown = target.kubectl("config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}").out
    with running_seaweed(directory, BUCKET, host=str(urlsplit(shown).hostname)) as store:
        yield store


@contextmanager
def pausing_others(target: Target) -> Iterator[None]:
    """No other release leads meanwhile: it would take our swarm for its own, and half of this machine."""
    found = json.loads(target.kubectl("get", "deployments", "--all-namespaces", OURS, "-o", "json").out)["items"]
    scales = [(d["metadata"]["namespace"], d["metadata"]["name"], d["spec"]["replicas"]) for d in found]
    for namespace, name, _ in scales:
        target.kubectl(f"--namespace={namespace}", "scale", "deployment", name, "--replicas=0")
    try:
        yield
    finally:
        for namespace, name, replicas in scales:
            where = f"--namespace={namespace}"
            target.kubectl(where, "scale", "deployment", name, f"--replicas={replicas}")
            target.kubectl(where, "rollout", "status", f"deployment/{name}", "--timeout=120s")


@contextmanager
def having_site(target: Target, images: Images, store: Seaweed, instance: str, operator: str) -> Iterator[Site]:
    """Install a release whose operators run the image `operator`, with everybody in place."""
    system, space = f"{instance}-system", f"{instance}-agents"
    with ExitStack() as stack:
        for namespace in (space, system):
            target.kubectl("delete", "namespace", namespace, "--ignore-not-found")
            apply_namespace(target, namespace, [LABEL])
            stack.callback(target.kubectl, "delete", "namespace", namespace, "--wait=false")
        apply_secret(target, system, SECRET, store.env)
        stack.callback(target.helm, "uninstall", RELEASE, f"--namespace={system}", "--wait", check=False)
        _install(target, images, store, instance, operator)
        scout = Scout(target, system, RELEASE)
        scout.start()
        stack.callback(scout.stop)
        address = target.kubectl("get", "service", "kubernetes", "-o", "jsonpath={.spec.clusterIP}").out
        hands = Hands(target, system, scout, address)
        body = json.dumps(build_held(SWARM, NAMES))
        target.kubectl(f"--namespace={space}", "apply", "-f", "-", stdin=body)
        yield Site(target, hands, scout, store, instance, space, _make_token(target, space))


def _install(target: Target, images: Images, store: Seaweed, instance: str, operator: str) -> None:
    more = [
        f"--set=instance={instance}",
        f"--set=replicas={REPLICAS}",
        f"--set=namespaces={{{instance}-agents}}",
        f"--set=image.operator={operator}",
        f"--set=bucket.name={BUCKET}",
        f"--set=bucket.endpoint={store.endpoint}",
        f"--set=bucket.existingSecret={SECRET}",
        "--set=rbac.aggregate=false",
        "--set=admissionPolicy.enabled=false",
    ]
    install_chart(target, images, release=RELEASE, namespace=f"{instance}-system", more=more)


def build_held(swarm: str, names: Sequence[str]) -> dict[str, Any]:
    """Agents that wait for one whose pod no node takes: objects, and no sandbox."""
    nowhere = {"podTemplate": {"spec": {"nodeSelector": {"alineo.dev/nowhere": "true"}}}}
    gate = {"name": "gate", "prompt": "Never begin.", "sandbox": nowhere}
    held = [{"name": name, "prompt": "Wait.", "waitFor": ["gate"]} for name in names]
    model = {"provider": "openai", "id": "nobody", "baseURL": "http://nobody.invalid/v1"}
    spec = {"defaults": {"harness": {"type": "Pi", "model": model}}, "agents": [gate, *held]}
    return {"apiVersion": "alineo.dev/v1alpha1", "kind": "Swarm", "metadata": {"name": swarm}, "spec": spec}


def _make_token(target: Target, space: str) -> str:
    where = f"--namespace={space}"
    target.kubectl(where, "create", "serviceaccount", "client")
    # The cluster's own role for editors lacks our verbs where the release does not add them.
    target.kubectl(where, "create", "role", "client", "--verb=create,get", "--resource=agents.alineo.dev/prompt")
    target.kubectl(where, "create", "rolebinding", "client", "--role=client", f"--serviceaccount={space}:client")
    return target.kubectl(where, "create", "token", "client", "--duration=24h").out.strip()
