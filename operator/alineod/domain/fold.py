"""The fold of the ledger: one pure function from a state and events to the next state.

What decides is this state and what is observed now. Nothing is in it that is not in the events.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import singledispatch
from typing import Any

from alineod.domain import events as ev
from alineod.domain.events import LedgerState, Outcome, Row, Rung
from alineod.domain.kept import add_checkpoint, explain_loss, leave_behind, note_unclean, note_upload
from alineod.domain.state import (
    AgentState,
    Checkpoint,
    Handle,
    InboxMessage,
    Interruption,
    Pod,
    Restored,
    RunState,
    State,
    Turn,
)  # fmt: skip
from alineod.wire.turns import TurnState
from alineod.wire.usage import add_usage

CLEAN_TURN_LOST, FAILED_TURN_LOST = "CleanTurnLost", "FailedTurnLost"
LOST_TURNS = (CLEAN_TURN_LOST, FAILED_TURN_LOST)
"""Reasons of turns that had ended, and are not in the conversation any more."""
MAX_SETBACKS = 8  # that an agent is told of at the head of its next prompt, the newest of them


def fold(state: State, rows: Iterable[Row]) -> State:
    """Apply events in order. The given state is not changed."""
    runs, agents, seq = dict(state.runs), dict(state.agents), state.seq
    newest: dict[str, int] = {}
    for row in rows:
        _apply_row(row, runs, agents)
        newest[row.run] = seq = row.seq
    for run in newest.keys() & runs.keys():
        runs[run] = replace(runs[run], seq=newest[run])
    return State(runs, agents, seq)


def _apply_row(row: Row, runs: dict[str, RunState], agents: dict[str, AgentState]) -> None:
    match row.body:
        case ev.RunStarted() as body:
            runs[row.run] = _start_run(row, body, runs.get(row.run))
        case ev.RunDeleted():
            if row.run in runs:
                runs[row.run] = replace(runs[row.run], deleted=True)
        case ev.AgentSpawned() as body if row.agent is not None:
            agents[row.agent] = _spawn(row, row.agent, body, agents.get(row.agent))
        case _ if row.agent is not None and row.agent in agents:
            agents[row.agent] = _step(row.body, agents[row.agent], row.time)


def _start_run(row: Row, body: ev.RunStarted, before: RunState | None) -> RunState:
    at, seq = (before.started_at, before.started_seq) if before and body.adopted else (row.time, row.seq)
    return RunState(
        row.run, body.uid, body.cluster_uid, body.instance, at, seq, row.seq, row.time, body.deletion_policy
    )


def _spawn(row: Row, key: str, body: ev.AgentSpawned, before: AgentState | None) -> AgentState:
    if before and body.adopted:
        return replace(before, uid=body.uid, spec=body.spec, claimed_at=row.time, claimed_seq=row.seq)
    fresh = AgentState(key, row.run, body.uid, body.alias, body.parent, body.spec, row.time, row.seq, row.time, row.seq)
    # Incarnations go on counting, so that no pod name and no object key of the former agent is ever used again.
    if before is None:
        return fresh
    return replace(fresh, incarnation=before.incarnation, first_incarnation=before.incarnation + 1)


@singledispatch
def _step(body: Any, agent: AgentState, time: float) -> AgentState:
    """Events that change nothing an agent decides by."""
    return agent


@_step.register
def _(body: ev.AgentProvisioned, agent: AgentState, time: float) -> AgentState:
    return replace(
        agent,
        pod=Pod(body.pod, body.uid, body.incarnation, body.rung, time, body.cause),
        incarnation=body.incarnation,
        sandbox_faults=agent.sandbox_faults + body.own_fault,
        journal_seq=agent.journal_seq if body.incarnation == agent.incarnation else 0,
        released=False,
    )


@_step.register
def _(body: ev.AgentStateChanged, agent: AgentState, time: float) -> AgentState:
    closed = agent.closed and agent.state is not LedgerState.LOST  # one that was lost is tried again
    blocked = body.state is LedgerState.BLOCKED
    return replace(
        agent, state=body.state, reason=body.reason, message=body.message, state_since=time, closed=closed,
        inbox=tuple(replace(message, waited=True) for message in agent.inbox) if blocked else agent.inbox,
    )  # fmt: skip


@_step.register
def _(body: ev.AgentTurnStarted, agent: AgentState, time: float) -> AgentState:
    if agent.closed:  # a pass that had looked before its run was ended; nothing is handed to a sandbox any more
        return agent
    turn = Turn(body.turn, body.turn_id, body.prompt, body.incarnation, time, attempt=body.attempt)
    return replace(
        agent, turn=turn, state=LedgerState.RUNNING, reason="TurnStarted", message="", state_since=time,
        handle=Handle(), outcome=None,
    )  # fmt: skip


def _end_turn(agent: AgentState, number: int, time: float, **change: Any) -> Turn | None:
    if agent.turn is None or agent.turn.number != number:
        return agent.turn
    return replace(agent.turn, ended_at=time, **change)


@_step.register
def _(body: ev.AgentTurnEnded, agent: AgentState, time: float) -> AgentState:
    return replace(
        agent,
        turn=_end_turn(agent, body.turn, time, state=TurnState.CLEAN, text=body.text),
        last_clean_turn=body.turn,
        interruption=None,
        failures=0,
        sandbox_faults=0,
        usage=add_usage(agent.usage, body.usage),
    )


@_step.register
def _(body: ev.AgentTurnFailed, agent: AgentState, time: float) -> AgentState:
    state = TurnState.ABORTED if body.error.kind == "aborted" else TurnState.FAILED
    return replace(
        agent,
        turn=_end_turn(agent, body.turn, time, state=state, text=body.text, error=body.error),
        unclean=note_unclean(agent, body.turn),
        failures=agent.failures + 1,
        usage=add_usage(agent.usage, body.usage),
    )


@_step.register
def _(body: ev.AgentTurnInterrupted, agent: AgentState, time: float) -> AgentState:
    return replace(
        agent,
        turn=_end_turn(agent, body.turn, time, state=TurnState.INTERRUPTED, text=body.text),
        unclean=note_unclean(agent, body.turn),
        interruption=Interruption(
            body.turn, body.reason, body.message, tuple(body.tools), len(body.text), _keep_newest(agent.interruption)
        ),
        failures=agent.failures + body.own_fault,
        given_up=agent.incarnation if body.outside else agent.given_up,
        usage=add_usage(agent.usage, body.usage),
    )


def _keep_newest(cut: Interruption | None, left: int = MAX_SETBACKS - 1) -> Interruption | None:
    return replace(cut, before=_keep_newest(cut.before, left - 1)) if cut is not None and left else None


@_step.register
def _(body: ev.AgentCheckpointed, agent: AgentState, time: float) -> AgentState:
    new = Checkpoint(
        body.turn, body.incarnation, body.snapshot_ref, body.sha256, body.bytes, time,
        body.remote_ref, body.upload_error, body.session,
    )  # fmt: skip
    return add_checkpoint(agent, new)


@_step.register
def _(body: ev.AgentCheckpointUploaded, agent: AgentState, time: float) -> AgentState:
    return note_upload(agent, body)


@_step.register
def _(body: ev.AgentRestored, agent: AgentState, time: float) -> AgentState:
    pod = replace(agent.pod, restarts=body.restarts) if agent.pod else None
    restored = Restored(body.rung, body.incarnation, body.reason, time, body.checkpoint_turn)
    back = replace(agent, restored=restored, pod=pod)
    if body.rung is not Rung.RESTORE:
        return back
    back = leave_behind(back, body, time)
    kept, last = body.checkpoint_turn or 0, agent.last_clean_turn or 0
    if kept < last:
        came = f"with turn {kept}" if kept else "blank, with none of its turns"
        why = f"it had ended cleanly, but {explain_loss(agent, last, body)}: it came back {came}"
        back = _note_lost(back, Interruption(last, CLEAN_TURN_LOST, why))
        back = replace(back, last_clean_turn=body.checkpoint_turn)
    turn = agent.turn
    if turn is not None and turn.state is TurnState.FAILED and turn.error is not None:
        back = _note_lost(back, Interruption(turn.number, FAILED_TURN_LOST, f"it had failed: {turn.error.message}"))
    return back


def _note_lost(agent: AgentState, lost: Interruption) -> AgentState:
    return replace(agent, interruption=replace(lost, before=_keep_newest(agent.interruption)))


@_step.register
def _(body: ev.AgentEnded, agent: AgentState, time: float) -> AgentState:
    state = {Outcome.ABORTED: LedgerState.ABORTED, Outcome.LOST: LedgerState.LOST}.get(body.outcome, LedgerState.FAILED)
    return replace(
        agent, state=state, reason=body.reason, message=body.message, outcome=body.outcome, state_since=time,
        closed=True, ended_epoch=body.epoch,
    )  # fmt: skip


@_step.register
def _(body: ev.AgentReleased, agent: AgentState, time: float) -> AgentState:
    return replace(agent, released=True, pod=None, reason=body.reason, message=body.message)


@_step.register
def _(body: ev.HandleSettled, agent: AgentState, time: float) -> AgentState:
    handle = Handle(True, body.outcome, body.turn, body.result, body.error, body.error_kind or "")
    return replace(agent, handle=handle, outcome=body.outcome)


@_step.register
def _(body: ev.WaitResolved, agent: AgentState, time: float) -> AgentState:
    return replace(agent, wait_resolved=body)


@_step.register
def _(body: ev.InboxQueued, agent: AgentState, time: float) -> AgentState:
    queued = replace(agent, inbox=(*agent.inbox, InboxMessage(body.id, body.kind, body.text)))
    if body.kind != "prompt" or agent.turn_running:
        return queued
    # Somebody wants it to go on: what failed before is not held against it any more.
    return replace(queued, sandbox_faults=0, failures=0 if agent.state is LedgerState.BLOCKED else agent.failures)


@_step.register(ev.InboxDelivered)
@_step.register(ev.InboxDropped)
def _(body: ev.InboxDelivered | ev.InboxDropped, agent: AgentState, time: float) -> AgentState:
    return replace(agent, inbox=tuple(m for m in agent.inbox if m.id not in body.ids))


@_step.register
def _(body: ev.HarnessEvent, agent: AgentState, time: float) -> AgentState:
    if body.incarnation != agent.incarnation or body.seq <= agent.journal_seq:
        return agent
    # As `replace` does, without passing every field to the initialiser: most events of a ledger come this way.
    after = object.__new__(AgentState)
    after.__dict__.update(agent.__dict__, journal_seq=body.seq)
    return after
