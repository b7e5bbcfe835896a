"""How many agents are brought back at the same time: each takes a place before its pod is made.

A place is given up when the agent is back, and while its restore waits for something outside, so that those who wait
never keep those out whom they may be waiting for.
"""

from alineod.reconcile.pods import find_pod
from alineod.reconcile.world import World


def count_places(world: World, but: str) -> int:
    """The places that are taken now by others than the agent `but`."""
    for key, incarnation in tuple(world.term.places.items()):
        if not _holds(world, key, incarnation):
            del world.term.places[key]
    return sum(key != but for key in world.term.places)


def take_place(world: World, key: str, incarnation: int) -> bool:
    """Take a place for this incarnation, without waiting; False when there is none."""
    if count_places(world, key) >= world.restores_at_once:
        return False
    world.term.places[key] = incarnation
    return True


def _holds(world: World, key: str, incarnation: int) -> bool:
    agent = world.ledger.state.agents.get(key)
    if agent is None or agent.closed or agent.incarnation > incarnation:
        return False
    if agent.incarnation < incarnation:
        return True  # its pod is being made
    if agent.restored is not None and agent.restored.incarnation == incarnation:
        return False
    pod = find_pod(world, agent)
    return pod is not None and not pod.over and pod.trouble is None and pod.uid not in world.term.start_waits
