"""Faults of the bucket and of what lies in it."""

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from pykube.objects import Pod

from hack.chaos.operators import parse_operator
from hack.chaos.processes import send_signal
from hack.demo.install import PARTS
from hack.faults.sandboxes import find_struck
from hack.faults.stage import Stage
from hack.faults.strike_pod import force_delete_pods
from hack.faults.table import Column

MINUTE = 60.0
ASLEEP, AWAKE = 2.0, 0.4  # s; the bucket of a slow minute stands still and answers in turns
RESTING = (Column.IDLE, Column.DONE)
NAME = "bucket"


@contextmanager
def take_away(stage: Stage) -> Iterator[None]:
    _scale(stage, 0)
    try:
        stage.world.until("the bucket should be gone", lambda: not _find_pods(stage), limit=MINUTE)
        stage.release()
        force_delete_pods(stage, {c: pod for c, pod in find_struck(stage).items() if c in RESTING})
        threading.Event().wait(MINUTE)
    finally:
        _scale(stage, 1)
        stage.target.kubectl("rollout", "status", f"deployment/{NAME}", f"--namespace={PARTS}", "--timeout=180s")
    yield


@contextmanager
def slow_down(stage: Stage) -> Iterator[None]:
    bucket = [parse_operator(pod.obj) for pod in _find_pods(stage)]
    containers = [container for pod in bucket for container in pod.containers.values()]
    over = threading.Event()
    timer = threading.Timer(MINUTE, over.set)
    timer.start()
    stage.release()
    try:
        while not over.is_set():
            send_signal(containers, signal.SIGSTOP)
            over.wait(ASLEEP)
            send_signal(containers, signal.SIGCONT)
            over.wait(AWAKE)
    finally:
        timer.cancel()
        send_signal(containers, signal.SIGCONT)
    yield


@contextmanager
def damage_newest(stage: Stage) -> Iterator[None]:
    _damage(stage, lambda keys: keys[-1:])
    yield


@contextmanager
def damage_all(stage: Stage) -> Iterator[None]:
    _damage(stage, lambda keys: keys)
    yield


def _damage(stage: Stage, choose: Callable[[Sequence[str]], Sequence[str]]) -> None:
    for column, keys in stage.list_checkpoints().items():
        for key in choose(keys) if column in stage.struck else ():
            stage.bucket.write(key, damage(stage.bucket.read(key)))
            stage.damaged.add(key)
    force_delete_pods(stage, find_struck(stage))
    stage.release()


def damage(archive: bytes) -> bytes:
    """The same length, with a stretch of its middle turned over."""
    at = len(archive) // 2
    return archive[:at] + bytes(255 - byte for byte in archive[at : at + 64]) + archive[at + 64 :]


def _scale(stage: Stage, replicas: int) -> None:
    stage.target.kubectl("scale", f"deployment/{NAME}", f"--namespace={PARTS}", f"--replicas={replicas}")


def _find_pods(stage: Stage) -> list[Pod]:
    return list(Pod.objects(stage.world.kube, namespace=PARTS).filter(selector={"app": NAME}))
