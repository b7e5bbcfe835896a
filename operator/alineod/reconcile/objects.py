"""One object as it was last seen, by the store and the ledger. Absence is confirmed by a read where it matters."""

from collections.abc import Callable
from typing import TypeVar

from alineod.crd.agent import AgentSpec
from alineod.crd.objects import Swarm
from alineod.crd.parse import parse_agent_spec
from alineod.crd.swarm import SupervisionSpec
from alineod.domain.facts import Trouble
from alineod.domain.state import AgentState, is_of_run
from alineod.errors import Denied, NotFound, Refused, Unavailable
from alineod.kube.objects import AGENTS, CRDS, SWARMS, Json, Ref, Resource, build_ref, is_leaving
from alineod.podspec.observe import parse_time
from alineod.reconcile.world import World

T = TypeVar("T")


async def read_object(world: World, resource: Resource, key: str, *, confirm: bool) -> Json | None:
    """The object as last seen; `confirm` asks the API server before it is called gone.

    Raises:
        Unavailable: nobody can say that it is gone, such as while the CRD itself is being removed.
    """
    namespace, name = key.split("/")
    known = world.store.get(Ref(resource, namespace, name))
    if known is not None or not confirm:
        return known
    try:
        found = await world.gateway.get(resource, namespace, name)
    except NotFound:
        await _confirm_served(world, resource)
        return None
    world.store.put(resource, found)
    return found


async def _confirm_served(world: World, resource: Resource) -> None:
    """Objects that went with their CRD were not deleted by a person."""
    if not resource.group:
        return
    try:
        crd = await world.gateway.get(CRDS, "", str(resource))
    except Denied:
        return
    except NotFound as error:
        raise Unavailable("ResourceNotServed", f"the CRD {resource} is not installed") from error
    if is_leaving(crd):
        raise Unavailable("ResourceNotServed", f"the CRD {resource} is being removed")


async def is_renewed(world: World, resource: Resource, since: float) -> bool:
    """Whether the CRD is younger than `since` (Unix seconds): then objects of before went with the former one."""
    return await read_kind_time(world, resource) > since


async def read_kind_time(world: World, resource: Resource) -> float:
    """When the CRD was made, Unix seconds; 0 where nobody can say."""
    try:
        crd = await world.gateway.get(CRDS, "", str(resource))
    except (Denied, NotFound):
        return 0.0
    return parse_time(crd["metadata"].get("creationTimestamp"))


def parse_found(parse: Callable[[Json], T], raw: Json | None) -> tuple[T | None, Trouble | None]:
    """An object that may not be there, and why it cannot be read if it is."""
    try:
        return parse(raw) if raw is not None else None, None
    except Refused as error:
        return None, Trouble(error.reason, error.message)


def parse_swarm(world: World, run: str) -> Swarm | None:
    """The Swarm of a run; None where there is none, or none that can be read."""
    namespace, _, name = run.partition("/")
    swarm, _ = parse_found(world.parsed.swarm, world.store.get(Ref(SWARMS, namespace, name)))
    return swarm


def read_supervision(world: World, agent: AgentState) -> SupervisionSpec:
    """The supervision of the agent's swarm; the defaults once the swarm is gone."""
    swarm = parse_swarm(world, agent.run)
    return swarm.spec.supervision if swarm else SupervisionSpec()


def read_spec(world: World, agent: AgentState) -> AgentSpec:
    """The agent's effective spec as it is now; as it was spawned once its object is gone."""
    swarm = parse_swarm(world, agent.run)
    own, _ = parse_found(world.parsed.agent, world.store.get(build_ref(AGENTS, agent.key)))
    if own is None:
        return parse_agent_spec(agent.spec)
    return world.parsed.effective(own, swarm) if swarm else own.spec


def find_agent(world: World, run: str, alias: str) -> AgentState | None:
    """An agent of a run by its short name; agents of a former run of that name do not count."""
    state = world.ledger.state
    found = state.runs.get(run)
    if found is None:
        return None
    usual = state.agents.get(f"{run}-{alias}")
    if usual is not None and usual.alias == alias and is_of_run(usual, found):
        return usual
    return next((a for a in state.agents.values() if a.alias == alias and is_of_run(a, found)), None)
