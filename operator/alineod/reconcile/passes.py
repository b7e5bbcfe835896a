"""The passes over an Agent and a Swarm: the same loop of facts, decision and actions, then the status."""

import logging
from dataclasses import replace

from alineod.crd.objects import Agent, Swarm
from alineod.domain.actions import Append, Decision, Standing
from alineod.domain.agent_rules import decide_agent
from alineod.domain.facts import AgentFacts, SwarmFacts
from alineod.domain.gone_rules import REFUSED_AGAIN
from alineod.domain.status import compute_agent_status, compute_swarm_status
from alineod.domain.swarm_rules import decide_swarm, is_of_other
from alineod.errors import Conflict, NotFound, Refused, Unavailable
from alineod.kube.objects import AGENTS, SWARMS, Json, Ref, Resource, build_ref
from alineod.reconcile.act import apply_agent_action, apply_swarm_action
from alineod.reconcile.announce import tell_left_alone
from alineod.reconcile.gather import gather_agent
from alineod.reconcile.gather_swarm import gather_swarm
from alineod.reconcile.places import note_place
from alineod.reconcile.world import World

COUNT_EVERY = 10.0  # s between two writes of a swarm's status that only count the ledger on
MAX_STEPS = 20  # decisions in one pass; more would be a circle
log = logging.getLogger(__name__)


async def run_pass(world: World, ref: Ref) -> float | None:
    """Look at one object. Returns in how many seconds to look again, or None when only news matters."""
    key = f"{ref.namespace}/{ref.name}"
    if ref.resource == SWARMS:
        return await run_swarm_pass(world, key)
    if ref.resource == AGENTS:
        try:
            return await run_agent_pass(world, key)
        except Conflict:
            raise
        except Exception:  # said in the log, and no reason for others to wait
            world.term.reconnection.answer(key)
            raise
    return None


async def run_agent_pass(world: World, key: str) -> float | None:
    """One pass over an agent."""
    for _ in range(MAX_STEPS):
        facts, agent = await gather_agent(world, key)
        decision = decide_agent(facts)
        if has_moved(world, facts) and any(isinstance(action, Append) for action in decision.actions):
            continue  # a turn has ended meanwhile, say: that must not be recorded once more, in other words
        _say(world, key, decision)
        try:
            changed = [await apply_agent_action(world, facts, action) for action in decision.actions]
        except Refused as error:
            decision = build_refusal(decision, error)
            world.term.reconnection.answer(key)
            break
        except Unavailable as error:
            # What cannot be done now is no reason to keep quiet: the status says why.
            await _show_agent(world, facts, agent, Standing(error.reason, error.message))
            raise
        if decision.back:
            world.term.reattached.add(key)
        if decision.answers:
            world.term.reconnection.answer(key)
        if not any(changed):
            break
    else:
        raise RuntimeError(f"{key}: {MAX_STEPS} decisions in one pass, the last was {decision.rule}")
    note_place(world, key, waits=decision.queues)
    if decision.standing is not None:
        await _show_agent(world, facts, agent, decision.standing)
    return decision.again_after


async def _show_agent(world: World, facts: AgentFacts, agent: Agent | None, standing: Standing) -> None:
    """Write the status if it changed."""
    if agent is None:
        return
    status = compute_agent_status(facts, standing, agent.status)
    if status != agent.status:
        await write_status(world, AGENTS, agent, status.model_dump(mode="json", by_alias=True, exclude_none=True))
        world.wake(Ref(SWARMS, agent.metadata.namespace, agent.spec.swarm))


def has_moved(world: World, facts: AgentFacts) -> bool:
    """Whether the ledger says something else of the agent by now, but for what was read of its journal."""
    now = world.ledger.state.agents.get(facts.key)
    if now is facts.ledger:
        return False
    return now is None or facts.ledger is None or replace(now, journal_seq=facts.ledger.journal_seq) != facts.ledger


async def run_swarm_pass(world: World, key: str) -> float | None:
    """One pass over a swarm."""
    for _ in range(MAX_STEPS):
        facts, swarm = await gather_swarm(world, key)
        decision = decide_swarm(facts)
        _say(world, key, decision)
        try:
            changed = [await apply_swarm_action(world, key, swarm, action) for action in decision.actions]
        except Refused as error:
            decision = build_refusal(decision, error)
            break
        except Unavailable:
            # What cannot be done now is no reason to keep quiet: the status may say why.
            await _show_swarm(world, facts, swarm, decision)
            raise
        if not any(changed):
            break
    else:
        log.warning("%s: more than %d decisions in one pass; the rest follows", key, MAX_STEPS)
        world.wake(build_ref(SWARMS, key))
    due = await _show_swarm(world, facts, swarm, decision)
    if swarm is not None and is_of_other(facts):
        await tell_left_alone(world, swarm)
    return min((seconds for seconds in (decision.again_after, due) if seconds is not None), default=None)


async def _show_swarm(world: World, facts: SwarmFacts, swarm: Swarm | None, decision: Decision) -> float | None:
    """Write the status if it changed. Returns in how many seconds it is to be written, if that can wait.

    Each event counts the ledger's number on, and each write wakes the next pass: agents that report would keep their
    swarm's passes going without end.
    """
    if swarm is None or decision.standing is None:
        return None
    status, key = compute_swarm_status(facts, decision.standing, swarm.status), swarm.key
    if status == swarm.status:
        return None
    now = world.clock.monotonic()
    due = world.term.counted.get(key, -COUNT_EVERY) + COUNT_EVERY - now
    if due > 0 and status.model_copy(update={"ledger": swarm.status.ledger}) == swarm.status:
        return due
    world.term.counted[key] = now
    await write_status(world, SWARMS, swarm, status.model_dump(mode="json", by_alias=True, exclude_none=True))
    return None


def build_refusal(decision: Decision, error: Refused) -> Decision:
    """What was decided was refused: the person reads why, and it is tried again later.

    A conflict is no refusal: something has changed, and the pass is run again.
    """
    if isinstance(error, Conflict):
        raise error
    return Decision(decision.rule, Standing(error.reason, error.message, stalled=True), again_after=REFUSED_AGAIN)


def _say(world: World, key: str, decision: Decision) -> None:
    """What is done, once: what is tried again and again is no news."""
    standing = decision.standing or Standing(decision.rule, "")
    words = f"{decision.rule} ({standing.reason}) {standing.message}"
    if decision.actions and world.term.said.get(key) != words:
        log.info("%s: %s", key, words)
    world.term.said[key] = words


async def write_status(world: World, resource: Resource, obj: Agent | Swarm, status: Json) -> None:
    """Server-side apply of the whole status. An object that went meanwhile needs none.

    Raises:
        Conflict: the object is not the one that was looked at any more; of two leaders, the later one's word stands.
    """
    seen = obj.metadata
    body = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {
            "name": seen.name, "namespace": seen.namespace, "uid": seen.uid, "resourceVersion": seen.resource_version,
        },
        "status": status,
    }  # fmt: skip
    try:
        written = await world.gateway.apply_status(resource, body)
    except NotFound:
        return
    world.store.put(resource, written)
