"""One short function per action, each safe to run twice."""

import contextlib
from typing import assert_never

from alineod.crd.merge import build_agent_spec
from alineod.crd.objects import Swarm
from alineod.domain.actions import (
    AbortTurn,
    Action,
    AdoptAgent,
    Append,
    CreateAgent,
    CreatePod,
    DeleteAgent,
    DeleteArchives,
    DeletePod,
    Drive,
    Probe,
    UpdateAgent,
)  # fmt: skip
from alineod.domain.facts import AgentFacts, AgentObject, Trouble
from alineod.domain.gone_rules import build_taken
from alineod.errors import Conflict, NotFound, Refused, Unavailable
from alineod.kube.objects import AGENTS, OWNER_MANAGER, PODS, SWARMS, Json, Ref, Resource, read_owner_uids
from alineod.podspec import names
from alineod.podspec.pod import build_pod
from alineod.reconcile.places import give_place, settle_place, take_place
from alineod.reconcile.removal import delete_archives
from alineod.reconcile.world import Heard, Silence, World
from alineod.wire.turns import AbortRequest


async def apply_agent_action(world: World, facts: AgentFacts, action: Action) -> bool:
    """Do it. Returns whether the facts changed, so that the rules should be asked again at once."""
    match action:
        case Append():
            await world.ledger.append(action.entries)
            return True
        case CreatePod():
            return await create_pod(world, facts, action.incarnation)
        case DeletePod():
            return await delete_object(world, PODS, facts.key, action)
        case Probe():
            return await read_bridge(world, facts)
        case Drive():
            world.drive(facts.key, action.turn)
            return False
        case AbortTurn():
            return await abort_turn(world, facts, action)
        case CreateAgent() | UpdateAgent() | AdoptAgent() | DeleteAgent() | DeleteArchives():
            raise TypeError(f"{action} is no action on an agent")
        case _:
            assert_never(action)


async def apply_swarm_action(world: World, key: str, swarm: Swarm | None, action: Action) -> bool:
    """Do it. Returns whether the facts changed, so that the rules should be asked again at once."""
    match action:
        case Append():
            await world.ledger.append(action.entries)
            return True
        case CreateAgent():
            return swarm is not None and await create_agent(world, swarm, action.alias)
        case UpdateAgent():
            return swarm is not None and await update_agent(world, swarm, action)
        case AdoptAgent():
            return swarm is not None and await apply_owner(world, swarm, action)
        case DeleteAgent():
            return await delete_object(world, AGENTS, key, action)
        case DeleteArchives():
            await delete_archives(world, action.agents)
            return False
        case CreatePod() | DeletePod() | Probe() | Drive() | AbortTurn():
            raise TypeError(f"{action} is no action on a swarm")
        case _:
            assert_never(action)


async def create_pod(world: World, facts: AgentFacts, incarnation: int) -> bool:
    """Make the pod. A name that is taken is looked at; a refusal is kept for the agent's condition."""
    agent: AgentObject | None = facts.object
    if agent is None:
        return False
    back = facts.ledger is not None and facts.ledger.pod is not None
    if back and not take_place(world, facts.key, incarnation):
        return False
    try:
        return await _make_pod(world, facts.key, agent, incarnation)
    finally:
        settle_place(world, facts.key)


async def _make_pod(world: World, key: str, agent: AgentObject, incarnation: int) -> bool:
    namespace, name = key.split("/")
    try:
        pod = await world.gateway.create(PODS, build_pod(key, agent, incarnation, world.pods))
    except Conflict:
        try:
            pod = await world.gateway.get(PODS, namespace, names.build_pod_name(name, incarnation))
        except NotFound:  # it went meanwhile: look again
            return True
        if agent.uid not in read_owner_uids(pod):
            return _keep_refusal(world, key, build_taken(pod["metadata"]["name"]))
    except Refused as error:
        return _keep_refusal(world, key, Trouble(error.reason, error.message))
    world.term.refusals.pop(key, None)
    world.term.started.add(pod["metadata"]["uid"])
    world.store.put(PODS, pod)
    return True


def _keep_refusal(world: World, key: str, refusal: Trouble) -> bool:
    """Returns whether it is news."""
    give_place(world, key)
    before = world.term.refusals.get(key)
    world.term.refusals[key] = refusal
    return before is None


async def delete_object(world: World, kind: Resource, key: str, seen: DeletePod | DeleteAgent) -> bool:
    """Ask for the end of exactly what was seen.

    Raises:
        Conflict: it has changed, or another one has the name: what to do about that is decided anew.
    """
    namespace = key.split("/")[0]
    grace = seen.grace if isinstance(seen, DeletePod) else None
    left = await world.gateway.delete(
        kind, namespace, seen.name, uid=seen.uid, version=seen.version, grace_seconds=grace
    )
    if left is not None:
        world.store.put(kind, left)
    else:
        world.store.discard_uid(Ref(kind, namespace, seen.name), seen.uid)
    return False


async def abort_turn(world: World, facts: AgentFacts, action: AbortTurn) -> bool:
    """Have the bridge end the turn. Whatever it says, the sandbox is deleted next."""
    pod = facts.pod
    if pod is not None and pod.ip:
        request = AbortRequest(reason=action.reason, epoch=world.release.epoch)
        with contextlib.suppress(Unavailable, Refused):
            await world.bridges.abort_turn(pod, world.bridge_token(pod.uid), action.turn_id, request)
    return False


async def read_bridge(world: World, facts: AgentFacts) -> bool:
    """Ask the bridge how it is. Returns whether it is ready now."""
    pod = facts.pod
    if pod is None or not pod.ip:
        return False
    try:
        state = await world.bridges.read_state(pod, world.bridge_token(pod.uid))
    except (Unavailable, Refused) as error:
        world.term.errors[pod.uid] = Trouble(error.reason, error.message)
        world.term.silences[pod.uid] = Silence(facts.tries + 1, world.now())
        return False  # the rule asks again
    world.term.errors.pop(pod.uid, None)
    world.term.silences.pop(pod.uid, None)
    world.term.heard[pod.uid] = Heard(state, pod.restarts, world.now())
    return state.ready


async def create_agent(world: World, swarm: Swarm, alias: str) -> bool:
    """Make the Agent of an entry, owned by the swarm. One that is there already is looked at.

    Applied and not posted, so that what its entry no longer says can be taken back later.

    Raises:
        Conflict: somebody has made one of its name since, with other values.
    """
    if (body := build_agent_object(swarm, alias)) is None:
        return False
    try:
        found = await world.gateway.get(AGENTS, swarm.metadata.namespace, body["metadata"]["name"])
    except NotFound:
        found = await world.gateway.apply(AGENTS, body, force=False)
    world.store.put(AGENTS, found)
    return True


async def update_agent(world: World, swarm: Swarm, seen: UpdateAgent) -> bool:
    """Have the Agent of an entry say what the entry says. What others have added to it stays.

    Raises:
        Conflict: it has changed since it was seen.
    """
    if (body := build_agent_object(swarm, seen.alias)) is None:
        return False
    body["metadata"] |= {
        "name": seen.name, "uid": seen.uid, "resourceVersion": seen.version,
        "ownerReferences": [_build_owner(swarm, controller=seen.control)],
    }  # fmt: skip
    world.store.put(AGENTS, await world.gateway.apply(AGENTS, body))
    return True


def build_agent_object(swarm: Swarm, alias: str) -> Json | None:
    """The Agent object `<swarm>-<alias>`; None where the swarm has no such entry."""
    entry = next((entry for entry in swarm.spec.agents if entry.name == alias), None)
    if entry is None:
        return None
    spec = build_agent_spec(swarm.metadata.name, entry)
    name = f"{swarm.metadata.name}-{alias}"
    labels = {names.SWARM: swarm.metadata.name, names.AGENT: name}
    return {
        "apiVersion": AGENTS.api_version,
        "kind": AGENTS.kind,
        "metadata": {
            "name": name,
            "namespace": swarm.metadata.namespace,
            "labels": labels | ({names.PARENT: spec.parent} if spec.parent else {}),
            "annotations": {names.MADE_OF: entry.digest()},
            "ownerReferences": [_build_owner(swarm)],
        },
        "spec": spec.dump(),
    }


def _build_owner(swarm: Swarm, *, controller: bool = True) -> Json:
    return {
        "apiVersion": SWARMS.api_version,
        "kind": SWARMS.kind,
        "name": swarm.metadata.name,
        "uid": swarm.metadata.uid,
        "controller": controller,
    }


async def apply_owner(world: World, swarm: Swarm, seen: AdoptAgent) -> bool:
    """Own an Agent that a former object of the swarm made. The dead owner is the cluster's to remove.

    Raises:
        Conflict: it has changed or is gone: to name the owner that was right once would be its end.
    """
    metadata = {
        "name": seen.name, "namespace": swarm.metadata.namespace, "uid": seen.uid, "resourceVersion": seen.version,
        "ownerReferences": [_build_owner(swarm, controller=False)],
    }  # fmt: skip
    body = {"apiVersion": AGENTS.api_version, "kind": AGENTS.kind, "metadata": metadata}
    world.store.put(AGENTS, await world.gateway.apply(AGENTS, body, manager=OWNER_MANAGER))
    return True
