"""The operator's pods as a test takes them away: the leader killed, all of them gone for a while."""

import contextlib
from collections.abc import Iterator

from pykube.objects import Pod

from tests.support.e2e_world import World


def kill_leader(world: World) -> None:
    """End the leader without a word to it; returns once another pod leads."""
    old = world.until("an operator should lead", world.find_leader)
    world.kubectl(world.release.namespace, "delete", "pod", old, "--grace-period=0", "--force", "--wait=false")
    world.until("another operator should lead", lambda: world.find_leader() not in ("", old))


@contextlib.contextmanager
def without_operators(world: World) -> Iterator[None]:
    """No operator runs while the block does; afterwards one leads again."""
    namespace, name = world.release.namespace, f"deployment/{world.release.fullname}"
    replicas = world.kubectl(namespace, "get", name, "--output=jsonpath={.spec.replicas}")
    world.kubectl(namespace, "scale", name, "--replicas=0")
    try:
        world.until("the operators should be gone", lambda: not _find_operators(world))
        yield
    finally:
        world.kubectl(namespace, "scale", name, f"--replicas={replicas}")
        world.until("an operator should lead", world.find_leader)


def _find_operators(world: World) -> list[str]:
    pods = world.read_all(Pod, world.release.namespace, world.release.selector)
    return [pod["metadata"]["name"] for pod in pods]
