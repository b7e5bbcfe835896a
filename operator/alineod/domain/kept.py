"""Which checkpoints an agent has and which it left behind: what the events about them make of its state. Pure.

An agent that came back from one of its checkpoints left the newer ones behind: they were read and found bad, or passed
over. They are set aside: they push nothing out any more, stay in the bucket for a while, and are tried again only when
every other one was read and found bad, because what could not be read once may be readable later.
"""

from dataclasses import replace
from enum import StrEnum

from alineod.domain import events as ev
from alineod.domain.state import AgentState, Checkpoint, SetAside

KEPT_CHECKPOINTS = 8  # of those in the bucket, and as many of those that are not there yet
MAX_ASIDE = 24
MAX_UNCLEAN = 32


class Verdict(StrEnum):
    """What becomes of a sandbox's report of a checkpoint."""

    TAKE = "Take"
    LATER = "Later"  # the turn's end is not in the ledger yet
    NEVER = "Never"


def judge_report(agent: AgentState, turn: int, incarnation: int) -> tuple[Verdict, str]:
    """Whether a checkpoint counts, with a sentence when it does not: only of a turn that the ledger calls clean."""
    if agent.closed or agent.pod is None or agent.pod.incarnation != incarnation:
        return Verdict.NEVER, f"incarnation {incarnation} is not the agent's sandbox any more"
    if agent.turn is None or not 1 <= turn <= agent.turn.number:
        return Verdict.NEVER, f"the agent has had no turn {turn}"
    if turn in agent.unclean:
        return Verdict.NEVER, f"turn {turn} did not end cleanly, as the ledger has it"
    if turn == agent.turn.number and agent.turn_running:
        return Verdict.LATER, f"the end of turn {turn} is not in the ledger yet"
    return Verdict.TAKE, ""


def counts(agent: AgentState, turn: int, incarnation: int) -> bool:
    """Whether a recorded checkpoint is one: what stood in the ledger before it decides, whoever recorded it late."""
    return incarnation >= agent.incarnation and turn not in agent.unclean


def note_unclean(agent: AgentState, turn: int) -> tuple[int, ...]:
    """The newest turns that did not end cleanly, with this one."""
    return (*agent.unclean, turn)[-MAX_UNCLEAN:]


def add_checkpoint(agent: AgentState, new: Checkpoint) -> AgentState:
    """The agent with one more; the same again takes the place of the former."""
    if not counts(agent, new.turn, new.incarnation):
        return agent
    return replace(agent, checkpoints=_keep((*_without(agent.checkpoints, new), new)))


def note_upload(agent: AgentState, body: ev.AgentCheckpointUploaded) -> AgentState:
    """The agent with one of them in the bucket now."""
    if not counts(agent, body.turn, body.incarnation):
        return agent
    uploaded = (
        replace(c, remote_ref=body.remote_ref, upload_error=None)
        if (c.turn, c.incarnation) == (body.turn, body.incarnation) else c
        for c in agent.checkpoints
    )  # fmt: skip
    return replace(agent, checkpoints=_keep(tuple(uploaded)))


def leave_behind(agent: AgentState, body: ev.AgentRestored, now: float) -> AgentState:
    """The agent after it came back from the checkpoint of a turn, or blank, in a fresh pod.

    Those that had not been uploaded went with their pod. One that was set aside and served after all counts again.
    """
    came = body.checkpoint_turn or 0
    own = tuple(c for c in agent.checkpoints if c.incarnation >= body.incarnation)
    former = tuple(c for c in agent.checkpoints if c.incarnation < body.incarnation and c.remote_ref is not None)
    served = tuple(one.checkpoint for one in agent.set_aside if one.checkpoint.turn == came)
    left = tuple(SetAside(c, now) for c in former if c.turn > came)
    aside = (*(one for one in agent.set_aside if one.checkpoint.turn != came), *left)
    return replace(
        agent,
        checkpoints=_keep((*(c for c in former if c.turn <= came), *served, *own)),
        set_aside=tuple(sorted(aside, key=lambda one: _order(one.checkpoint))[-MAX_ASIDE:]),
    )


def explain_loss(agent: AgentState, turn: int, body: ev.AgentRestored) -> str:
    """Why the agent did not come back with this turn, though it had ended cleanly."""
    for tried in reversed(body.tried):
        if tried.turn == turn:
            return f"its checkpoint could not be used ({tried.error})"
    known = next((c for c in reversed(agent.checkpoints) if c.turn == turn), None)
    if known is None and not agent.spec.get("checkpoint"):
        return "its spec asks for no checkpoints"
    if known is None:
        return "its sandbox went before a checkpoint of it was reported"
    if known.remote_ref is None:
        return f"its checkpoint was lost with its sandbox before it was in the bucket{_quote(known.upload_error)}"
    return "its checkpoint was passed over"


def _quote(error: str | None) -> str:
    return f" ({error})" if error else ""


def _without(checkpoints: tuple[Checkpoint, ...], one: Checkpoint) -> tuple[Checkpoint, ...]:
    return tuple(c for c in checkpoints if _order(c) != _order(one))


def _keep(checkpoints: tuple[Checkpoint, ...]) -> tuple[Checkpoint, ...]:
    """The newest of both kinds: however many wait for their upload, those in the bucket are what a restore needs."""
    ordered = sorted(checkpoints, key=_order)
    uploaded = [c for c in ordered if c.remote_ref is not None][-KEPT_CHECKPOINTS:]
    waiting = [c for c in ordered if c.remote_ref is None][-KEPT_CHECKPOINTS:]
    return tuple(sorted((*uploaded, *waiting), key=_order))


def _order(checkpoint: Checkpoint) -> tuple[int, int]:
    return checkpoint.turn, checkpoint.incarnation
