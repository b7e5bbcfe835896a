"""Pods that are lost, beside what they are measured against: in a release of its own, with a bucket on this machine."""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from alineod.bucket.s3 import S3Bucket, build_options
from alineod.clock import SystemClock
from alineod.settings import BucketSettings
from hack.bench.recovery_agents import NAME, Stage, build_home, lose_pod, wait_saved
from hack.bench.recovery_kube import Kube, watching
from hack.bench.recovery_pods import build_set, fill_set, measure_bare, measure_set
from hack.bench.recovery_report import BARE, CLAIM, name_size
from hack.bench.recovery_transfer import have_pod, measure_transfer
from hack.bench.skeleton import NAMESPACE, Bench, choose_node, make_token
from hack.chaos.sites import having_store, pausing_others
from hack.demo.api import ControlApi
from hack.demo.forward import Forward
from hack.demo.install import (
    MODEL_KEY,
    Images,
    apply_namespace,
    apply_secret,
    build_images,
    install_chart,
    install_parts,
    load_images,
)
from hack.demo.show import Show
from hack.demo.target import Target
from tests.support.seaweed import REGION, Seaweed

RELEASE, SYSTEM = "alineod-recovery", "alineod-recovery"
SECRET = "store"


def run(target: Target, sizes: Sequence[int], rounds: int, show: Show) -> dict[int, dict[str, list[float]]]:
    """Everything, by size."""
    with show.step("images and parts"):
        images = build_images()
        load_images(target, images)
        install_parts(target, images)
    with (
        tempfile.TemporaryDirectory() as folder,
        pausing_others(target),
        having_store(target, Path(folder) / "store") as store,
        having_stage(target, images, store) as stage,
    ):
        bench = Losses(stage, images, build_bucket(store))
        return {size: bench.measure(size, rounds, show) for size in sizes}


def build_bucket(store: Seaweed) -> S3Bucket:
    """To sign requests for the plain transfer."""
    os.environ.update(store.env)  # the S3 client reads its keys there
    return S3Bucket(build_options(BucketSettings(store.bucket, "", store.endpoint, REGION)), SystemClock())


@contextmanager
def having_stage(target: Target, images: Images, store: Seaweed) -> Iterator[Stage]:
    """The release, and the namespace of the agents; both are gone afterwards."""
    with ExitStack() as stack:
        for namespace in (NAMESPACE, SYSTEM):
            target.kubectl("delete", "namespace", namespace, "--ignore-not-found")
            apply_namespace(target, namespace)
            stack.callback(target.kubectl, "delete", "namespace", namespace, "--wait=false")
        apply_secret(target, SYSTEM, SECRET, store.env)
        apply_secret(target, NAMESPACE, "model", {"api-key": MODEL_KEY})
        stack.callback(target.helm, "uninstall", RELEASE, f"--namespace={SYSTEM}", "--wait", check=False)
        install_chart(target, images, release=RELEASE, namespace=SYSTEM, more=build_values(store))
        bench = Bench(target, images)
        forward = stack.enter_context(Forward(target, SYSTEM, f"service/{RELEASE}", 8080))
        watch = stack.enter_context(watching(Kube(target.kubeconfig, target.context, NAMESPACE)))
        kube = Kube(target.kubeconfig, target.context, NAMESPACE)
        yield Stage(target, SYSTEM, kube, watch, ControlApi(forward, make_token(bench)), choose_node(bench))


def build_values(store: Seaweed) -> list[str]:
    """One operator, which serves the bench's namespace alone."""
    return [
        "--set=replicas=1",
        f"--set=namespaces={{{NAMESPACE}}}",
        f"--set=bucket.name={store.bucket}",
        f"--set=bucket.endpoint={store.endpoint}",
        f"--set=bucket.existingSecret={SECRET}",
        "--set=admissionPolicy.enabled=false",
    ]


class Losses:
    """Rounds of one size after another, all in the same namespace."""

    def __init__(self, stage: Stage, images: Images, bucket: S3Bucket) -> None:
        self._stage, self._image, self._bucket = stage, images.refs["agent-pi"], bucket
        self._bench = Bench(stage.target, images)
        have_pod(stage.kube, stage.watch, self._image, stage.node)

    def measure(self, size: int, rounds: int, show: Show) -> dict[str, list[float]]:
        """Every figure of homes of this size."""
        found: dict[str, list[float]] = {}
        with show.step(f"an agent with a home of {name_size(size)}, and a StatefulSet"):
            key = self._prepare(size)
        for number in range(rounds):
            with show.step(f"{name_size(size)}, round {number + 1}"):
                for name, seconds in self._run_round(size, number, key):
                    found.setdefault(name, []).append(seconds)
                key = wait_saved(self._stage, name_agent(size), number + 2)
        self._clear(size)
        return found

    def _prepare(self, size: int) -> str:
        """Returns the key of the first checkpoint."""
        stage = self._stage
        self._bench.apply(build_set(self._image, stage.node), build_home(f"s{size}", stage.node, size))
        fill_set(stage.target, stage.watch, stage.kube.namespace, size)
        return wait_saved(stage, name_agent(size), 1)

    def _run_round(self, size: int, number: int, key: str) -> Iterator[tuple[str, float]]:
        stage = self._stage
        self._bench.until("the pods of the round before are gone", self._is_calm)
        yield BARE, measure_bare(stage.kube, stage.watch, f"bare-{size}-{number}", self._image, stage.node)
        yield CLAIM, measure_set(stage.kube, stage.watch)
        url = self._bucket.grant_get(key, 3600).url
        yield from measure_transfer(stage.target, stage.kube.namespace, url)
        yield from lose_pod(stage, name_agent(size), size)

    def _is_calm(self) -> bool:
        """The agent's pod, the set's and the one for transfers are there and nothing else."""
        pods = self._stage.kube.read("pods")["items"]
        return len(pods) == 3 and all(pod["status"].get("phase") == "Running" for pod in pods)

    def _clear(self, size: int) -> None:
        where = ("--ignore-not-found", "--timeout=120s")
        self._bench.kubectl("delete", "swarm", f"s{size}", *where)
        self._bench.kubectl("delete", "statefulset", "web", *where)
        self._bench.until("only the pod for transfers is left", lambda: self._count_pods() == 1)
        self._stage.watch.forget()

    def _count_pods(self) -> int:
        return len(self._stage.kube.read("pods")["items"])


def name_agent(size: int) -> str:
    """The Agent with a home of this size."""
    return f"s{size}-{NAME}"
