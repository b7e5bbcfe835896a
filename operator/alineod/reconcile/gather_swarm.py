"""The facts of one swarm: from the store, the ledger and its Agent objects."""

from collections.abc import Iterable

from alineod.crd.agent import AgentEntry
from alineod.crd.base import field_alias
from alineod.crd.check import check_swarm
from alineod.crd.objects import ADOPT, Agent, Swarm
from alineod.domain.facts import (
    MemberObject,
    Owner,
    SwarmFacts,
    SwarmObject,
    Trouble,
)  # fmt: skip
from alineod.domain.state import AgentState, RunState
from alineod.kube.objects import AGENTS, SWARMS, Ref
from alineod.podspec.names import MADE_OF
from alineod.reconcile.objects import is_renewed, parse_found, read_kind_time, read_object
from alineod.reconcile.recall import recall_heard
from alineod.reconcile.world import World
from alineod.wire.heard import Heard


async def gather_swarm(world: World, key: str) -> tuple[SwarmFacts, Swarm | None]:
    """The facts of a swarm, and its object as parsed."""
    ledger = world.ledger.state.runs.get(key)
    raw = await read_object(world, SWARMS, key, confirm=ledger is not None and not ledger.deleted)
    swarm, invalid = parse_found(world.parsed.swarm, raw)
    obj = None
    if swarm is not None:
        obj, invalid = _gather_swarm_object(swarm)
    agents = _read_members(world, key)
    members = _gather_members(world, agents, swarm)
    states = {a.key: a for a in world.ledger.state.agents.values() if a.run == key}
    facts = SwarmFacts(
        now=world.now(),
        key=key,
        cluster_uid=world.release.cluster_uid,
        instance=world.release.instance,
        object=obj,
        invalid=invalid,
        ledger=ledger,
        kind_renewed=await _is_renewed(world, ledger, obj),
        members=members,
        taken=_taken(world, key, swarm, members),
        agents=states,
        leaving=await _find_leaving(world, ledger, states.values(), members) if obj is not None else frozenset(),
        heard=await _recall(world, states.values()) if _is_gone(ledger, obj) else {},
        stuck=_stuck(agents),
        replicated=_replicated(world),
        replicated_seq=world.ledger.acknowledged_seq if world.bucket else 0,
    )
    return facts, swarm


async def _find_leaving(
    world: World, run: RunState | None, agents: Iterable[AgentState], members: Iterable[MemberObject]
) -> frozenset[str]:
    """Agents whose object is gone, and was not taken along by its kind or left behind in another cluster."""
    if run is None or run.deleted:
        return frozenset()
    there = {member.alias for member in members}
    gone = [a for a in agents if not a.closed and a.claimed_seq > run.resumed_seq and a.alias not in there]
    since = await read_kind_time(world, AGENTS) if gone else 0.0
    return frozenset(agent.alias for agent in gone if agent.claimed_at >= since)


async def _is_renewed(world: World, run: RunState | None, obj: SwarmObject | None) -> bool:
    """Asked only where the run's own object is not there."""
    return await is_renewed(world, SWARMS, run.claimed_at) if run is not None and _is_gone(run, obj) else False


def _is_gone(run: RunState | None, obj: SwarmObject | None) -> bool:
    """Whether the object of a run that has not ended is not there any more."""
    return run is not None and not run.deleted and (obj is None or obj.uid != run.uid)


async def _recall(world: World, agents: Iterable[AgentState]) -> dict[str, Heard]:
    return {agent.key: await recall_heard(world, agent) for agent in agents if agent.turn_running and not agent.closed}


def _gather_swarm_object(swarm: Swarm) -> tuple[SwarmObject, Trouble | None]:
    problems = check_swarm(swarm.metadata.name, swarm.spec)
    invalid = Trouble(str(problems[0].flaw), f"{problems[0].field}: {problems[0].message}") if problems else None
    obj = SwarmObject(
        uid=swarm.metadata.uid,
        generation=swarm.metadata.generation,
        spec=swarm.spec,
        instance=swarm.status.instance,
        adopt=swarm.metadata.annotations.get(ADOPT) == "true",
        deleting=swarm.metadata.deletion_timestamp is not None,
    )
    return obj, invalid


def _read_members(world: World, key: str) -> list[Agent]:
    namespace, name = key.split("/")
    found = (parse_found(world.parsed.agent, raw)[0] for raw in world.store.find_by_swarm(AGENTS, namespace, name))
    return [agent for agent in found if agent is not None and agent.spec.swarm == name]


def _gather_members(world: World, agents: list[Agent], swarm: Swarm | None) -> tuple[MemberObject, ...]:
    entries = world.parsed.entries(swarm) if swarm is not None else {}
    return tuple(_gather_member(agent, swarm, *entries.get(agent.alias, (None, ""))) for agent in agents)


def _gather_member(agent: Agent, swarm: Swarm | None, entry: AgentEntry | None, digest: str) -> MemberObject:
    owner = _find_owner(agent, swarm)
    outdated = owner is Owner.OURS and entry is not None and agent.metadata.annotations.get(MADE_OF) != digest
    uid = swarm.metadata.uid if swarm is not None else ""
    return MemberObject(
        agent.metadata.name,
        agent.metadata.uid,
        agent.alias,
        owner,
        deleting=agent.metadata.deletion_timestamp is not None,
        version=agent.metadata.resource_version,
        outdated=outdated,
        fixed=_find_fixed(agent, entry) if outdated and entry is not None else (),
        controlled=any(other.controller and other.uid != uid for other in agent.metadata.owner_references),
    )


def _find_fixed(agent: Agent, entry: AgentEntry) -> tuple[str, ...]:
    """The door refuses such a change, where it is guarded."""
    names = ("prompt", "parent", "wait_for")
    return tuple(field_alias(name) for name in names if getattr(agent.spec, name) != getattr(entry, name))


def _find_owner(agent: Agent, swarm: Swarm | None) -> Owner:
    makers = [o for o in agent.metadata.owner_references if o.kind == SWARMS.kind and o.name == agent.spec.swarm]
    if not makers:
        return Owner.NOBODY
    ours = swarm is not None and any(maker.uid == swarm.metadata.uid for maker in makers)
    return Owner.OURS if ours else Owner.FORMER


def _taken(world: World, key: str, swarm: Swarm | None, members: tuple[MemberObject, ...]) -> tuple[str, ...]:
    """Wanted names that somebody else's Agent has."""
    if swarm is None:
        return ()
    namespace, name = key.split("/")
    made = {member.name for member in members if member.owner is not Owner.NOBODY}
    wanted = (f"{name}-{entry.name}" for entry in swarm.spec.agents)
    return tuple(n for n in wanted if n not in made and world.store.get(Ref(AGENTS, namespace, n)) is not None)


def _stuck(agents: list[Agent]) -> tuple[str, ...]:
    return tuple(
        sorted(
            agent.alias
            for agent in agents
            if any(c.type == "Stalled" and c.status == "True" for c in agent.status.conditions)
        )
    )


def _replicated(world: World) -> Trouble | None:
    if world.term.ledger_trouble is not None or world.bucket is not None:
        return world.term.ledger_trouble
    return Trouble("NoBucket", "no bucket is configured: the ledger lies on the operator's volume alone")
