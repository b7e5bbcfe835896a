"""Where the operator's pods are: one on each node, so that no row takes both, and the leader where a row wants it."""

from collections.abc import Mapping, Sequence

from pykube.objects import Pod

from hack.demo.target import Target
from tests.support.e2e_world import World

LIMIT = 300.0  # s


def spread_operators(world: World, leader_on: str = "") -> None:
    """Have one on each node; with `leader_on` the one there leads."""
    world.until("the operators should be on both nodes", lambda: _look(world, leader_on), limit=LIMIT)


def _look(world: World, leader_on: str) -> bool:
    leader = world.find_leader()
    pods = world.read_all(Pod, world.release.namespace, world.release.selector)
    nodes = {pod["metadata"]["name"]: str(pod["spec"].get("nodeName") or "") for pod in pods}
    victim = choose_victim(nodes, leader, leader_on)
    if victim and leader:
        _replace(world.target, world.release.namespace, victim, [nodes[name] for name in nodes if name != victim])
    return bool(leader) and len(nodes) > 1 and not victim


def choose_victim(nodes: Mapping[str, str], leader: str, leader_on: str) -> str:
    """The pod that has to go, by the node of each; empty when all are where they should be."""
    if len(set(nodes.values())) < 2:
        return next((name for name in sorted(nodes) if name != leader), "")
    return leader if leader_on and nodes.get(leader) != leader_on else ""


def _replace(target: Target, namespace: str, pod: str, taken: Sequence[str]) -> None:
    """Delete a pod, and have its successor where the others are not. After a leader one of the others leads."""
    target.kubectl("cordon", *taken)
    try:
        target.kubectl(f"--namespace={namespace}", "delete", "pod", pod)
        target.kubectl(f"--namespace={namespace}", "rollout", "status", "deployment", "--timeout=120s")
    finally:
        target.kubectl("uncordon", *taken)
