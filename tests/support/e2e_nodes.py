"""Nodes of the development cluster as a test takes them away, and never one that the bucket or the model is on."""

import contextlib
from collections.abc import Iterator

import pytest
from pykube.objects import Node, Pod

from hack.demo.install import PARTS
from hack.demo.target import Kind, devcluster
from tests.support.e2e_objects import Json
from tests.support.e2e_world import World


def find_spare_node(world: World) -> str:
    """A node without the bucket; the model is sent away from it. Skips where nodes cannot be taken away."""
    if world.target.kind is not Kind.DEV:
        pytest.skip("nodes are taken away in the development cluster alone")
    bucket = _find_node(world, PARTS, {"app": "bucket"})
    spare = next(node.name for node in Node.objects(world.kube) if node.name != bucket)
    if _find_node(world, PARTS, {"app": "scripted-model"}) == spare:
        _send_away(world, spare)
    return spare


def _send_away(world: World, node: str) -> None:
    """Have the model run elsewhere."""
    world.kubectl(PARTS, "cordon", node)
    try:
        world.kubectl(PARTS, "delete", "pod", "--selector=app=scripted-model")
        world.kubectl(PARTS, "rollout", "status", "deployment/scripted-model", "--timeout=120s")
    finally:
        world.kubectl(PARTS, "uncordon", node)


def _find_node(world: World, namespace: str, selector: dict[str, str]) -> str:
    return next(find_node(pod) for pod in world.read_all(Pod, namespace, selector))


def find_node(pod: Json) -> str:
    """Where it runs; empty while nobody knows."""
    return str(pod["spec"].get("nodeName", ""))


def build_preference(node: str) -> Json:
    """A sandbox that would rather be on this node."""
    wanted = [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]
    rather = [{"weight": 100, "preference": {"matchExpressions": wanted}}]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": rather}}
    return {"podTemplate": {"spec": {"affinity": affinity}}}


@contextlib.contextmanager
def cut(world: World, node: str) -> Iterator[None]:
    """The node has no network while the block runs; what runs there runs on."""
    devcluster(world.target.tools, "node", "cut", node)
    try:
        yield
    finally:
        devcluster(world.target.tools, "node", "join", node)
