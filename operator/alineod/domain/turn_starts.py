"""Which turn comes next, and with what words."""

from collections import Counter

from alineod.domain import events as ev
from alineod.domain.events import Entry, LedgerState
from alineod.domain.fold import LOST_TURNS
from alineod.domain.state import AgentState, InboxMessage, Interruption, Turn
from alineod.domain.turn_ends import entry
from alineod.wire.turns import TurnState


def build_turn_start(agent: AgentState, first_prompt: str) -> tuple[Entry, ...]:
    """The entries that start the next turn; none when none is due.

    Due are, in this order: the next attempt at a turn that was cut off, the agent's first prompt, the oldest prompt
    in its inbox. A retry keeps the turn's id; everything else gets one of its own. A blocked agent goes on with a
    prompt that was given since: that is the decision it waits for.
    """
    turn, decision = agent.turn, find_decision(agent)
    if agent.state is LedgerState.BLOCKED and (decision is None or turn is not None):
        return _deliver(agent, decision) if decision else ()
    if turn is None:
        return (_start(agent, 1, f"{agent.uid}-1", first_prompt),)
    number = turn.number + 1
    if _is_retried(agent, turn):
        return (_start(agent, number, turn.id, turn.prompt, attempt=turn.attempt + 1),)
    prompts = find_prompts(agent)
    return _deliver(agent, prompts[0]) if prompts else ()


def find_prompts(agent: AgentState) -> list[InboxMessage]:
    """The prompts that wait to become turns, the oldest first."""
    return [message for message in agent.inbox if message.kind == "prompt"]


def find_decision(agent: AgentState) -> InboxMessage | None:
    """The prompt by which somebody decided about a blocked agent: the first one after it was blocked."""
    if agent.state is not LedgerState.BLOCKED:
        return None
    return next((prompt for prompt in find_prompts(agent) if not prompt.waited), None)


def find_number(agent: AgentState, message: str) -> int:
    """The turn that `message`, a prompt in the inbox, will become, unless one before it is cut off."""
    decision = find_decision(agent)
    ids = [decision.id] if decision is not None else []
    ids += [prompt.id for prompt in find_prompts(agent) if prompt.id not in ids]
    retried = agent.turn is not None and _is_retried(agent, agent.turn)
    last = (agent.turn.number if agent.turn else 1) + retried
    return last + ids.index(message) + 1


def _is_retried(agent: AgentState, turn: Turn) -> bool:
    return turn.state is TurnState.INTERRUPTED and agent.state is LedgerState.RUNNING


def _deliver(agent: AgentState, prompt: InboxMessage) -> tuple[Entry, ...]:
    number = agent.turn.number + 1 if agent.turn else 1
    delivered = ev.InboxDelivered(ids=[prompt.id], turn=number)
    return (
        _start(agent, number, f"{agent.uid}-{number}", prompt.text),
        entry(agent, f"turn/{number}/delivered", delivered),
    )


def _start(agent: AgentState, number: int, turn_id: str, prompt: str, attempt: int = 1) -> Entry:
    started = ev.AgentTurnStarted(
        turn=number, turn_id=turn_id, prompt=prompt, incarnation=agent.incarnation, attempt=attempt
    )
    return entry(agent, f"turn/{number}/started", started)


def build_preface(interruption: Interruption | None) -> str:
    """What the harness is given before the prompt: word of what was cut off or lost before it."""
    return "\n\n".join(_describe_all(interruption))


def _describe_all(cut: Interruption | None) -> list[str]:
    return [*_describe_all(cut.before), _describe(cut)] if cut is not None else []


def _describe(cut: Interruption) -> str:
    tools = [name if count == 1 else f"{name} ({count} times)" for name, count in Counter(cut.tools).items()]
    started = f" These tools had started and may have taken effect: {', '.join(tools)}." if tools else ""
    if cut.reason in LOST_TURNS:
        return f"[Turn {cut.turn} and what it did to files is not here any more: {cut.message}.]"
    return f"[Turn {cut.turn} was cut off ({cut.reason}: {cut.message}) and is not in this conversation.{started}]"
