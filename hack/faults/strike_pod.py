"""Faults of single sandboxes, struck all at once: processes, containers and pods.

Each returns when the cluster shows that it has struck.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hack.chaos.processes import PROC
from hack.demo.run import DemoError
from hack.faults.groups import find_group
from hack.faults.sandboxes import (
    Sandboxes,
    find_first,
    find_harness,
    find_struck,
    is_over,
    is_replaced,
    wait_struck,
)
from hack.faults.stage import Stage

MEMORY, HOME = "512Mi", "256Mi"
EATEN = 1 << 30  # bytes that are asked for
FILLED = 400 << 20  # bytes that are written
EATER = f"import time; held = bytearray({EATEN}); time.sleep(60)"


@contextmanager
def kill_harness(stage: Stage) -> Iterator[None]:
    for column, sandbox in find_struck(stage).items():
        struck = find_harness(sandbox.containers["agent"])
        if not struck:
            raise DemoError(f"no Pi runs in the sandbox of {column}")
        for pid in struck:
            os.kill(pid, signal.SIGKILL)
    stage.release()
    yield


@contextmanager
def kill_bridge(stage: Stage) -> Iterator[None]:
    with _restarting(stage) as sandboxes:
        for sandbox in sandboxes.values():
            os.kill(find_first(sandbox.containers["agent"]), signal.SIGKILL)
    yield


@contextmanager
def hang_bridge(stage: Stage) -> Iterator[None]:
    with _restarting(stage, must=False) as sandboxes:
        for sandbox in sandboxes.values():
            os.kill(find_first(sandbox.containers["agent"]), signal.SIGSTOP)
    yield


@contextmanager
def exhaust_memory(stage: Stage) -> Iterator[None]:
    """A process of ours asks for too much memory in each of them; what is held stays held until the bridges went."""
    eaters: list[subprocess.Popen[bytes]] = []
    try:
        with _restarting(stage) as sandboxes:
            bridges = [PROC / str(find_first(sandbox.containers["agent"])) for sandbox in sandboxes.values()]
            for sandbox in sandboxes.values():
                eaters.append(start_eater(sandbox.containers["agent"]))
            stage.world.until("the kernel should end every bridge", lambda: not any(b.exists() for b in bridges))
    finally:
        for eater in eaters:
            eater.kill()
            eater.wait()
    yield


@contextmanager
def kill_containers(stage: Stage) -> Iterator[None]:
    """By the runtime, through its own client."""
    with _restarting(stage) as sandboxes:
        for sandbox in sandboxes.values():
            for name in ("agent", "checkpointer"):
                _kill_task(stage, sandbox.node, sandbox.containers[name])
    yield


@contextmanager
def delete(stage: Stage) -> Iterator[None]:
    stage.kubectl("delete", "pod", "--wait=false", *[pod.name for pod in find_struck(stage).values()])
    stage.release()
    yield


@contextmanager
def force_delete(stage: Stage) -> Iterator[None]:
    force_delete_pods(stage, find_struck(stage))
    stage.release()
    yield


def force_delete_pods(stage: Stage, sandboxes: Sandboxes) -> None:
    names = [pod.name for pod in sandboxes.values()]
    stage.kubectl("delete", "pod", "--wait=false", "--force", "--grace-period=0", *names)


@contextmanager
def evict(stage: Stage) -> Iterator[None]:
    for pod in find_struck(stage).values():
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod.name}}
        where = f"/api/v1/namespaces/{stage.namespace}/pods/{pod.name}/eviction"
        stage.target.kubectl("create", "--raw", where, "-f", "-", stdin=json.dumps(body))
    stage.release()
    yield


@contextmanager
def exhaust_storage(stage: Stage) -> Iterator[None]:
    """What is held stays held until the kubelet has looked: a state is not to pass while it does."""
    sandboxes = find_struck(stage)
    for sandbox in sandboxes.values():
        with Path(f"/proc/{find_first(sandbox.containers['agent'])}/root/root/filled").open("wb") as file:
            file.write(bytes(FILLED))
    wait_struck(stage, sandboxes, "be evicted", lambda pod, _: is_over(pod))
    stage.release()
    yield


@contextmanager
def _restarting(stage: Stage, *, must: bool = True) -> Iterator[Sandboxes]:
    """After the body the containers it struck are others, or their pods are."""
    sandboxes = find_struck(stage)
    yield sandboxes
    stage.release()
    with suppress(*([] if must else [AssertionError])):
        wait_struck(stage, sandboxes, "have another container", is_replaced)


def start_eater(container: str) -> subprocess.Popen[bytes]:
    """A process of ours in the container's memory group asks for too much, until the kernel ends the bridge for it.

    It ends Pi before, which is larger: the bridge is held still, so that it goes without having seen that.
    """
    pid = find_first(container)
    first = PROC / str(pid)
    (first / "oom_score_adj").write_text("1000")
    os.kill(pid, signal.SIGSTOP)
    return _start_in(find_group((first / "cgroup").read_text(), "memory"))


def _start_in(group: Path) -> subprocess.Popen[bytes]:
    """A process that asks for more memory than the group has."""
    enter = f"echo $$ > {group}/cgroup.procs; exec {sys.executable} -c '{EATER}'"
    return subprocess.Popen(["/bin/sh", "-c", enter], stderr=subprocess.DEVNULL)


def _kill_task(stage: Stage, node: str, container: str) -> None:
    socket = Path(stage.target.kubeconfig).parent / "nodes" / node / "run" / "containerd.sock"
    command = ["ctr", f"--address={socket}", "--namespace=k8s.io", "task", "kill", "--signal=SIGKILL", container]
    subprocess.run(command, check=True, capture_output=True)
