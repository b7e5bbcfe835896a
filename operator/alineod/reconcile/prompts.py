"""The verbs of the thin API: give an agent a prompt, and wait for what came of it."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from alineod.domain import events as ev
from alineod.domain.events import Outcome, Row
from alineod.domain.state import AgentState
from alineod.domain.turn_ends import drop_inbox, entry
from alineod.domain.turn_starts import find_number, find_prompts
from alineod.errors import Conflict, NotFound
from alineod.ledger.text import compute_clean_text
from alineod.reconcile.world import World
from alineod.wire.turns import ErrorKind

SETTLING = (ev.HandleSettled, ev.AgentEnded, ev.AgentReleased)


@dataclass(frozen=True)
class Accepted:
    """The turn that the prompt becomes, unless turns are cut off before it."""

    id: str
    turn: int


@dataclass(frozen=True)
class Result:
    """What came of a turn; `outcome` None while nothing has."""

    turn: int | None
    outcome: Outcome | None
    result: str = ""
    error: str = ""
    error_kind: str = ""


def read_agent(world: World, key: str) -> AgentState:
    """The agent as the ledger has it.

    Raises:
        NotFound: no such agent was ever accepted.
    """
    agent = world.ledger.state.agents.get(key)
    if agent is None:
        raise NotFound("AgentNotFound", f"there is no agent {key}: `kubectl get agents` lists them")
    return agent


async def queue_prompt(world: World, key: str, text: str, idempotency_key: str) -> Accepted:
    """Put a prompt into the agent's inbox; it becomes a turn when the agent is free.

    Raises:
        NotFound: no such agent.
        Conflict: `NotLive`, it has ended; `IdTaken`, the idempotency key stands for another prompt.
    """
    agent = read_agent(world, key)
    text, idempotency_key = compute_clean_text(text), compute_clean_text(idempotency_key)
    if not _is_live(agent) and not await _was_given(world, key, idempotency_key):
        raise _build_not_live(agent)
    message = ev.InboxQueued(id=idempotency_key, kind="prompt", text=text)
    rows = await world.ledger.append([entry(agent, f"inbox/{idempotency_key}", message)])
    if rows[0].body != message:
        raise Conflict("IdTaken", f"the idempotency key {idempotency_key} stands for another prompt: choose a new one")
    agent = read_agent(world, key)
    if not _is_live(agent):  # it has ended meanwhile: nobody delivers this one, nor may whoever brings it back
        await world.ledger.append(drop_inbox(agent, f"inbox/{idempotency_key}/dropped", agent.reason))
    return Accepted(idempotency_key, await find_turn(world, key, idempotency_key, rows[0].seq - 1))


def _is_live(agent: AgentState) -> bool:
    return not agent.closed and not agent.released


async def _was_given(world: World, key: str, message: str) -> bool:
    """Whether the agent was given the prompt; whoever asks again gets the first answer."""
    try:
        await find_turn(world, key, message)
    except NotFound:
        return False
    return True


def _build_not_live(agent: AgentState) -> Conflict:
    words = f"the agent {agent.key} has ended ({agent.state}: {agent.message or agent.reason})"
    return Conflict("NotLive", words)


async def find_turn(world: World, key: str, message: str, after: int = 0) -> int:
    """The turn that the prompt will become, or has become by the ledger's rows behind `after`.

    Raises:
        NotFound: no such prompt was given to this agent.
        Conflict: `NotLive`, it is never delivered.
    """
    agent, queued = read_agent(world, key), False
    after = max(after, agent.spawned_seq)
    if any(waiting.id == message for waiting in agent.inbox):
        if not _is_live(agent):  # it may have ended meanwhile, and nobody would ever deliver it
            raise _build_not_live(agent)
        return find_number(agent, message)
    while rows := await world.ledger.read(agent=key, after=after):
        for row in rows:
            if isinstance(row.body, ev.InboxDelivered) and message in row.body.ids:
                return row.body.turn
            queued |= isinstance(row.body, ev.InboxQueued) and row.body.id == message
        after = rows[-1].seq
    if not queued:
        raise NotFound("PromptNotFound", f"the agent {key} was given no prompt with the idempotency key {message}")
    raise _build_not_live(agent)


async def read_result(world: World, key: str, turn: int | None, wait: float, message: str = "") -> Result:
    """What came of the turn (of the latest one when None), waiting up to `wait` seconds for it.

    `message` is the idempotency key of a prompt: then it is the turn which that became, whatever was cut before it.

    Raises:
        NotFound: no such agent, turn or prompt.
        Conflict: `NotLive`, the prompt is never delivered.
    """
    read_agent(world, key)
    changed = asyncio.Event()

    def hear(rows: Sequence[Row]) -> None:
        if any(row.agent == key and isinstance(row.body, SETTLING) for row in rows):
            changed.set()

    unsubscribe = world.ledger.subscribe(hear)
    try:
        deadline = asyncio.get_running_loop().time() + wait
        while True:
            changed.clear()
            now = await find_turn(world, key, compute_clean_text(message)) if message else turn
            result = await _read_now(world, key, now)
            if result.outcome is not None or not await _wait_for(changed, deadline):
                return result
    finally:
        unsubscribe()


async def _wait_for(changed: asyncio.Event, deadline: float) -> bool:
    try:
        async with asyncio.timeout_at(deadline):
            await changed.wait()
    except TimeoutError:
        return False
    return True


async def _read_now(world: World, key: str, turn: int | None) -> Result:
    agent = read_agent(world, key)
    handle, last = agent.handle, agent.turn.number if agent.turn else 0
    if handle.settled and (turn is None or handle.turn == turn):
        return Result(handle.turn, handle.outcome, handle.result, handle.error, handle.error_kind)
    if turn is None:
        return Result(None, None)
    settled = await find_settled(world, agent, turn) if turn <= last else None
    if settled is not None:
        return Result(turn, settled.outcome, settled.result, settled.error, settled.error_kind or "")
    if agent.closed or agent.released:
        outcome = agent.outcome if agent.closed else Outcome.LOST
        return Result(turn, outcome, error=f"it never came to its end: {agent.message or agent.reason}")
    if turn > last + len(find_prompts(agent)) + 1:  # a turn that is cut may be tried again
        raise NotFound("TurnNotFound", f"the agent {key} has no turn {turn}, and no prompt that would become it")
    return Result(turn, None)


async def find_settled(world: World, agent: AgentState, turn: int) -> ev.HandleSettled | None:
    """How a turn of the agent settled, in whichever of its attempts: from the ledger's rows since it was spawned.

    One that was cut off, and instead of which somebody gave another prompt, came to nothing more than what survived.
    """
    after, attempts, turn_id = agent.spawned_seq, {turn}, ""
    cut: ev.AgentTurnInterrupted | None = None
    while rows := await world.ledger.read(agent=agent.key, after=after):
        for row in rows:
            match row.body:
                case ev.AgentTurnStarted(turn=number, turn_id=id_) if number == turn or id_ == turn_id:
                    attempts, turn_id = {*attempts, number}, id_
                case ev.AgentTurnStarted(turn=number) if cut is not None:
                    return _build_passed_over(cut, number)
                case ev.AgentTurnInterrupted(turn=number) if number in attempts:
                    cut = row.body
                case ev.HandleSettled(turn=number) if number in attempts:
                    return row.body
        after = rows[-1].seq
    return None


def _build_passed_over(cut: ev.AgentTurnInterrupted, instead: int) -> ev.HandleSettled:
    message = f"turn {cut.turn} was cut off: {cut.message}; turn {instead} was given instead"
    return ev.HandleSettled(
        outcome=Outcome.FAILED, turn=cut.turn, result=cut.text, error=message, error_kind=ErrorKind.INTERRUPTED
    )
