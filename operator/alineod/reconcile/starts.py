"""Answers a sandbox that asks how it is to start: when it may, and what its agent's condition says until then."""

from alineod.domain.facts import Trouble
from alineod.domain.state import AgentState
from alineod.errors import Unavailable
from alineod.kube.objects import AGENTS, build_ref
from alineod.reconcile.archives import build_start_order
from alineod.reconcile.places import check_place, give_place, take_start
from alineod.reconcile.world import World
from alineod.wire.archives import StartOrder, StartRequest

WAITING = "RestoreWaiting"


async def answer_start(world: World, agent: AgentState, request: StartRequest) -> StartOrder:
    """How the agent's pod starts.

    Raises:
        Unavailable: it has to wait; the agent's condition says why.
    """
    try:
        order = await _build_order(world, agent, request)
    except Unavailable as error:
        _note_wait(world, agent, Trouble(error.reason, error.message))
        raise
    _note_wait(world, agent, Trouble(WAITING, request.waiting_for) if request.waiting_for else None)
    return order


async def _build_order(world: World, agent: AgentState, request: StartRequest) -> StartOrder:
    if request.resting:
        give_place(world, agent.key)
        raise Unavailable(WAITING, request.waiting_for)
    if not agent.is_coming_back:
        return await build_start_order(world, agent)
    check_place(world, agent)
    if agent.turn is None:
        give_place(world, agent.key)  # its parent may be long in answering, or need one itself
    try:
        order = await build_start_order(world, agent)
    except BaseException:
        give_place(world, agent.key)
        raise
    take_start(world, agent)
    return order


def _note_wait(world: World, agent: AgentState, wait: Trouble | None) -> None:
    """Remember what the agent's restore container waits for; news is shown in the agent's condition."""
    uid = agent.pod.uid if agent.pod else ""
    if world.term.start_waits.get(uid) == wait:
        return
    if wait is None:
        world.term.start_waits.pop(uid, None)
    else:
        world.term.start_waits[uid] = wait
    world.wake(build_ref(AGENTS, agent.key))
