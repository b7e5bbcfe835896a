"""Which turn comes next, and with what words."""

from alineod.domain import events as ev
from alineod.domain.events import Entry, LedgerState
from alineod.domain.fold import CLEAN_TURN_LOST
from alineod.domain.state import AgentState, Interruption, Turn
from alineod.domain.turn_ends import entry
from alineod.wire.turns import TurnState


def build_turn_start(agent: AgentState, first_prompt: str) -> tuple[Entry, ...]:
    """The entries that start the next turn; none when none is due.

    Due are, in this order: the next attempt at a turn that was cut off, the agent's first prompt, the oldest prompt
    in its inbox. A retry keeps the turn's id; everything else gets one of its own.
    """
    turn = agent.turn
    if turn is None:
        return (_start(agent, 1, f"{agent.uid}-1", first_prompt),)
    number = turn.number + 1
    if turn.state is TurnState.INTERRUPTED and agent.state is LedgerState.RUNNING:
        return (_start(agent, number, turn.id, turn.prompt, attempt=turn.attempt + 1),)
    prompts = [message for message in agent.inbox if message.kind == "prompt"]
    if not prompts:
        return ()
    delivered = ev.InboxDelivered(ids=[prompts[0].id], turn=number)
    return (
        _start(agent, number, f"{agent.uid}-{number}", prompts[0].text),
        entry(agent, f"turn/{number}/delivered", delivered),
    )


def _start(agent: AgentState, number: int, turn_id: str, prompt: str, attempt: int = 1) -> Entry:
    started = ev.AgentTurnStarted(
        turn=number, turn_id=turn_id, prompt=prompt, incarnation=agent.incarnation, attempt=attempt
    )
    return entry(agent, f"turn/{number}/started", started)


def build_prompt_text(turn: Turn, interruption: Interruption | None) -> str:
    """What the harness is given for a turn: the prompt, after word of what was cut off before it."""
    return turn.prompt if interruption is None else f"{_describe(interruption)}\n\n{turn.prompt}"


def _describe(cut: Interruption) -> str:
    started = f" These tools had started and may have taken effect: {', '.join(cut.tools)}." if cut.tools else ""
    if cut.reason == CLEAN_TURN_LOST:
        return f"[Turn {cut.turn} and what it did to files is not here any more: {cut.message}.]"
    return f"[Turn {cut.turn} was cut off ({cut.reason}: {cut.message}) and is not in this conversation.{started}]"
