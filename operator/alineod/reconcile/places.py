"""How many agents are brought back at the same time: each holds a place from the making of its pod until it is back.

A restore that asks how to start unpacks nothing yet: it is told only if it holds a place or can take one. Places are
given up while a restore waits for something outside, or does not come on, so that nobody keeps those out whom it may
be waiting for. First pods of agents need none.
"""

from collections.abc import Mapping

from alineod.domain.facts import PodFacts
from alineod.domain.state import AgentState
from alineod.errors import Unavailable
from alineod.kube.objects import AGENTS, build_ref
from alineod.reconcile.pods import find_made, find_pod
from alineod.reconcile.world import Place, Stage, World

LIMITS: Mapping[Stage, float] = {Stage.MAKING: float("inf"), Stage.MADE: 300.0, Stage.TOLD: 1800.0}
"""s that a place is kept without news: a pod whose node was lost while it restored says nothing, and nobody of it."""


def find_holders(world: World) -> set[str]:
    """The agents that have a place now."""
    return {key for key, place in world.term.places.items() if _holds(world, key, place)}


def find_left(world: World, but: str) -> int:
    """The places that are left when that of the agent `but` is not counted."""
    return world.restores_at_once - len(find_holders(world) - {but})


def note_place(world: World, key: str, *, waits: bool) -> None:
    """After a look at the agent: what is held in vain is given back, and who waits is looked at when that is so."""
    if waits:
        world.term.waiting.setdefault(key)
    else:
        world.term.waiting.pop(key, None)
    for held in world.term.places.keys() - find_holders(world):
        give_place(world, held)


def take_place(world: World, key: str, incarnation: int) -> bool:
    """Take a place for a pod that is to be made now, without waiting; False when there is none."""
    if find_left(world, key) <= 0:
        return False
    world.term.places[key] = Place(incarnation, Stage.MAKING, world.clock.monotonic())
    return True


def settle_place(world: World, key: str) -> None:
    """The pod was asked for: its place stays if it is there, and is given back if not."""
    place = world.term.places.get(key)
    if place is None or place.stage is not Stage.MAKING:
        return
    if find_made(world, key, place.incarnation) is None:
        give_place(world, key)
    else:
        world.term.places[key] = Place(place.incarnation, Stage.MADE, world.clock.monotonic())


def give_place(world: World, key: str) -> None:
    """Give up the agent's place, if it has one: whoever waits longest for one is looked at."""
    if world.term.places.pop(key, None) is None:
        return
    if (longest := next(iter(world.term.waiting), None)) is not None:
        del world.term.waiting[longest]
        world.wake(build_ref(AGENTS, longest))


def check_place(world: World, agent: AgentState) -> None:
    """See to it that there is a place for an agent whose pod asks how to start; one that has to wait has none.

    Raises:
        Unavailable: reason `WaitingForPlace`.
    """
    if find_left(world, agent.key) > 0:
        return
    give_place(world, agent.key)
    message = f"others are being brought back first, {world.restores_at_once} at a time (rehydrateConcurrency)"
    raise Unavailable("WaitingForPlace", message)


def take_start(world: World, agent: AgentState) -> None:
    """Take the place of a pod that is told how to start.

    Raises:
        Unavailable: reason `WaitingForPlace`.
    """
    check_place(world, agent)
    world.term.places[agent.key] = Place(agent.incarnation, Stage.TOLD, world.clock.monotonic())


def rebuild_places(world: World) -> None:
    """Have a new leader know who is being brought back. Who only waits there asks again soon, and is counted anew."""
    for agent in world.ledger.state.agents.values():
        pod = find_pod(world, agent) if agent.is_coming_back and not agent.closed else None
        if pod is not None and _comes_on(pod):
            world.term.places[agent.key] = Place(agent.incarnation, Stage.TOLD, world.clock.monotonic())


def _holds(world: World, key: str, place: Place) -> bool:
    agent = world.ledger.state.agents.get(key)
    if agent is None or agent.closed or agent.incarnation > place.incarnation:
        return False
    if agent.incarnation == place.incarnation and agent.is_back:
        return False
    if place.stage is Stage.MAKING:
        return True
    pod = find_made(world, key, place.incarnation)
    in_time = world.clock.monotonic() - place.since < LIMITS[place.stage]
    return in_time and pod is not None and _comes_on(pod)


def _comes_on(pod: PodFacts) -> bool:
    """Whether its restore may be under way: nothing is in its way, and it is not over without a word."""
    silent = pod.agent_running and pod.restore is None
    return not (pod.over or pod.deleting or pod.trouble or pod.node_lost_since or silent)
