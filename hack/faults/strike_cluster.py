"""Faults of the operator and of the API server."""

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pykube.objects import Pod

from hack.chaos.operators import Operator, parse_operator
from hack.chaos.processes import send_signal
from hack.demo.install import install_chart
from hack.demo.run import DemoError
from hack.faults.stage import Stage

MINUTE = 60.0
TAKEN_LIMIT = 120.0  # s until another operator leads
ANNOTATION = "alineo\\.dev/faults"


@contextmanager
def kill_operator(stage: Stage) -> Iterator[None]:
    leader = find_leader(stage)
    send_signal(list(leader.containers.values()), signal.SIGKILL)
    stage.release()
    yield


@contextmanager
def have_two_leaders(stage: Stage) -> Iterator[None]:
    """The leader sleeps until another leads. It wakes as one that believes to lead, its Litestream first."""
    old = find_leader(stage)
    send_signal(list(old.containers.values()), signal.SIGSTOP)
    stage.release()
    try:
        look = stage.world.find_leader
        stage.world.until("another operator should lead", lambda: look() not in ("", old.name), limit=TAKEN_LIMIT)
    finally:
        for name in ("litestream", "operator"):
            send_signal([old.containers[name]], signal.SIGCONT)
    yield


@contextmanager
def upgrade(stage: Stage) -> Iterator[None]:
    stage.release()
    install_chart(stage.target, stage.images, more=[f"--set=podAnnotations.{ANNOTATION}={stage.namespace}"])
    try:
        yield
    finally:
        install_chart(stage.target, stage.images)


@contextmanager
def stop_api_server(stage: Stage) -> Iterator[None]:
    pid = find_api_server(Path(stage.target.kubeconfig).parent)
    os.kill(pid, signal.SIGSTOP)
    try:
        stage.release()
        time.sleep(MINUTE)
    finally:
        os.kill(pid, signal.SIGCONT)
    yield


def find_leader(stage: Stage) -> Operator:
    """The operator's pod that leads, with what runs in it."""
    name = stage.world.until("an operator should lead", stage.world.find_leader)
    pod = stage.world.read(Pod, stage.world.release.namespace, name)
    if pod is None:
        raise DemoError(f"the leader {name} is gone before it was struck")
    return parse_operator(pod)


def find_api_server(cluster: Path) -> int:
    """Its number, by the development cluster's own record, if that is still the process it was."""
    record = json.loads((cluster / "run" / "kube-apiserver.json").read_text())
    pid = int(record["pid"])
    if str(cluster).encode() not in Path(f"/proc/{pid}/environ").read_bytes():
        raise DemoError(f"the process {pid} is not the API server of {cluster}")
    return pid
