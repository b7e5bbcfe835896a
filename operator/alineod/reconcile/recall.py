"""What was heard of a running turn, should it be cut off: by this term, and by those before it, from the ledger."""

from collections.abc import AsyncIterator
from dataclasses import replace

from alineod.domain import events as ev
from alineod.domain.facts import PodFacts
from alineod.domain.state import AgentState
from alineod.reconcile.world import World
from alineod.wire.heard import Heard, hear
from alineod.wire.turns import JournalRecord


async def read_heard(world: World, agent: AgentState | None, pod: PodFacts | None) -> Heard:
    """What was heard of the agent's turn; whole where its sandbox may be given up."""
    if agent is None or agent.turn is None or not agent.turn_running:
        return Heard()
    if pod is None or pod.over or pod.deleting or pod.node_lost_since or not pod.agent_running:
        return await recall_heard(world, agent)
    return find_heard(world, agent.key, agent.turn.number)


def find_heard(world: World, key: str, turn: int) -> Heard:
    """What this term has heard of the turn."""
    number, heard = world.term.turns.get(key, (0, Heard()))
    return heard if number == turn else Heard()


async def recall_heard(world: World, agent: AgentState) -> Heard:
    """All that was heard of the running turn. What a former term heard stands in the ledger, but for unended text."""
    number = agent.turn.number if agent.turn else 0
    heard = find_heard(world, agent.key, number)
    if heard.begun:
        return heard
    recalled = Heard()
    async for record in _read_records(world, agent, number):
        recalled = hear(recalled, record)
    if heard.writing:
        recalled = replace(recalled, text=heard.text, writing=True)
    recalled = replace(recalled, begun=True)
    world.term.turns[agent.key] = (number, recalled)
    return recalled


async def _read_records(world: World, agent: AgentState, turn: int) -> AsyncIterator[JournalRecord]:
    """The records of the turn that the ledger holds."""
    after = agent.spawned_seq
    while rows := await world.ledger.read(agent=agent.key, after=after):
        for row in rows:
            body = row.body
            if isinstance(body, ev.HarnessEvent) and (body.turn, body.incarnation) == (turn, agent.incarnation):
                yield JournalRecord(time=row.time, turn=turn, turn_id="", event=body.type, data=body.data, seq=body.seq)
        after = rows[-1].seq
