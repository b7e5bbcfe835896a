"""Faults of the node that every agent of the row is on, and of the whole cluster."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from pykube.objects import Node

from hack.demo.run import DemoError
from hack.demo.target import devcluster
from hack.faults.sandboxes import find_struck, is_replaced, wait_struck
from hack.faults.stage import STRUCK, Stage

DRAIN_LIMIT = 300  # s
AWAY = 15.0  # s a cut node stays away after the cluster has noticed
NOTICED_LIMIT = 90.0  # s


@contextmanager
def stop(stage: Stage) -> Iterator[None]:
    try:
        _change(stage, "stop")
        stage.release()
        _wait_noticed(stage)
        yield
    finally:
        _change(stage, "start")


@contextmanager
def cut(stage: Stage) -> Iterator[None]:
    try:
        _change(stage, "cut")
        stage.release()
        _wait_noticed(stage)
        yield
    finally:
        _change(stage, "join")


@contextmanager
def cut_and_join(stage: Stage) -> Iterator[None]:
    with cut(stage):
        time.sleep(AWAY)
    yield


@contextmanager
def reboot(stage: Stage) -> Iterator[None]:
    sandboxes = find_struck(stage)
    _change(stage, "reboot")
    stage.release()
    wait_struck(stage, sandboxes, "have another container", is_replaced)
    yield


@contextmanager
def reboot_cluster(stage: Stage) -> Iterator[None]:
    sandboxes = find_struck(stage)
    devcluster(stage.target.tools, "down")
    devcluster(stage.target.tools, "up")
    stage.release()
    wait_struck(stage, sandboxes, "have another container", is_replaced)
    yield


@contextmanager
def drain(stage: Stage) -> Iterator[None]:
    words = ["drain", STRUCK, "--ignore-daemonsets", "--delete-emptydir-data", "--force", f"--timeout={DRAIN_LIMIT}s"]
    drained = subprocess.Popen(
        [*stage.target.build_kubectl(), *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    try:
        time.sleep(1)
        stage.release()
        _, said = drained.communicate()
        if drained.returncode:
            raise DemoError(f"kubectl drain failed: {said.decode()[-500:]}")
        yield
    finally:
        drained.kill()
        stage.target.kubectl("uncordon", STRUCK)


def _change(stage: Stage, verb: str) -> None:
    devcluster(stage.target.tools, "node", verb, STRUCK)


def _wait_noticed(stage: Stage) -> None:
    def look() -> bool:
        node = Node.objects(stage.world.kube).get_by_name(STRUCK).obj
        return any(c["type"] == "Ready" and c["status"] != "True" for c in node["status"]["conditions"])

    stage.world.until(f"the node {STRUCK} should be NotReady", look, limit=NOTICED_LIMIT)
