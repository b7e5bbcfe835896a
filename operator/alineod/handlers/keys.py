"""Which keys have to be looked at after a change of an object. Pure but for looking into the store.

It must not know what a pass does with a key.
"""

from collections.abc import Iterator

from alineod.kube.objects import (
    AGENT_LABEL,
    AGENTS,
    PODS,
    SWARMS,
    Json,
    Ref,
    is_leaving,
    read_label,
    read_ref,
    read_swarm,
)
from alineod.kube.store import Change, Store


def compute_keys(change: Change, store: Store) -> tuple[Ref, ...]:
    """The swarms and agents that the change matters to, each once.

    A pod matters to its agent; an agent to itself and its swarm; a swarm to itself and, when more than its status
    changed, to all of its agents.
    """
    return tuple(dict.fromkeys(_find_keys(change, store)))


def is_urgent(change: Change) -> bool:
    """Whether the change is an end, which goes before everything else."""
    return change.after is None or is_leaving(change.after)


def _find_keys(change: Change, store: Store) -> Iterator[Ref]:
    namespace = change.ref.namespace
    sides = [obj for obj in (change.before, change.after) if obj is not None]
    if change.ref.resource == PODS:
        yield from (Ref(AGENTS, namespace, agent) for obj in sides if (agent := read_label(obj, AGENT_LABEL)))
    elif change.ref.resource == AGENTS:
        yield change.ref
        yield from (Ref(SWARMS, namespace, swarm) for obj in sides if (swarm := read_swarm(obj)))
    elif change.ref.resource == SWARMS:
        yield change.ref
        if _what_agents_see(change.before) != _what_agents_see(change.after):
            agents = store.find_by_swarm(AGENTS, namespace, change.ref.name)
            yield from (read_ref(AGENTS, agent) for agent in agents)


def _what_agents_see(swarm: Json | None) -> tuple[object, ...]:
    """Everything but the status, which is written from the agents and would come back to all of them."""
    if swarm is None:
        return ()
    metadata = swarm["metadata"]
    return (
        metadata.get("uid"),
        metadata.get("generation"),
        metadata.get("annotations"),
        metadata.get("labels"),
        is_leaving(swarm),
        swarm.get("spec"),
    )
