"""What the ledger records when a turn ends, however it ended: one batch, under one identity per turn."""

from alineod.crd.swarm import OnInterruption, SupervisionSpec
from alineod.domain import events as ev
from alineod.domain.causes import End, EndKind
from alineod.domain.events import Entry, LedgerState, Outcome
from alineod.domain.state import AgentState, Turn
from alineod.wire.heard import NOTHING, Remains
from alineod.wire.turns import ErrorKind, TurnError, TurnResult, TurnState

INTERRUPTED = "TurnInterrupted"
TOO_MANY_FAILURES = "TooManyFailures"
MAX_TEXT = 128 * 1024  # bytes of a text that was cut off; it stands in two records and may need escapes
EMPTY = "the answer of the last turn is empty"
MAX_MESSAGE = 4096  # characters of somebody else's words


def cut_tail(text: str) -> str:
    """The end of what survived, as much of it as one record holds besides everything else."""
    whole = text.encode("utf-8", "replace")
    return text if len(whole) <= MAX_TEXT else whole[-MAX_TEXT:].decode("utf-8", "ignore")


def entry(agent: AgentState, what: str, body: ev.AnyBody) -> Entry:
    """An entry about `agent`; `what` makes its identity, under the UID of the agent's object."""
    return Entry(id=f"{agent.uid}/{what}", run=agent.run, agent=agent.key, body=body)


def build_turn_end(
    agent: AgentState, result: TurnResult, policy: SupervisionSpec, container_end: End | None = None
) -> tuple[Entry, ...]:
    """The entries for a turn whose bridge said how it ended; none when that turn is not the running one.

    `container_end` is how the agent's container ended last: why, if the bridge can only say that it was cut off.
    """
    turn = agent.turn
    if turn is None or turn.state is not TurnState.RUNNING or turn.number != result.turn:
        return ()
    match result.state:
        case TurnState.CLEAN:
            return _clean(agent, turn, result)
        case TurnState.INTERRUPTED:
            end = _find_end(result.error, container_end)
            return build_interruption(agent, policy, end, Remains(result.text, tuple(result.tools), result.usage))
        case TurnState.FAILED | TurnState.ABORTED | TurnState.RUNNING:
            return _failed(agent, turn, result)


def _find_end(error: TurnError | None, container_end: End | None) -> End:
    """Why the harness ended in the middle of a turn: by itself, with its container, or because somebody ended it."""
    if error is not None and error.kind is ErrorKind.HARNESS:
        return End(EndKind.OWN_FAULT, "HarnessFailed", error.message)
    message = error.message if error else "the harness was stopped in the middle of the turn"
    return container_end or End(EndKind.DISRUPTION, "HarnessStopped", message)


def _clean(agent: AgentState, turn: Turn, result: TurnResult) -> tuple[Entry, ...]:
    at = f"turn/{turn.number}"
    ended = ev.AgentTurnEnded(
        turn=turn.number, turn_id=turn.id, text=result.text, usage=result.usage, session=result.session
    )
    settled = ev.HandleSettled(outcome=Outcome.SUCCESS, turn=turn.number, result=result.text)
    return (
        entry(agent, f"{at}/end", ended),
        entry(agent, f"{at}/settled", settled),
        entry(
            agent,
            f"{at}/state",
            ev.AgentStateChanged(state=LedgerState.DONE, reason="TurnEnded", message="" if result.text else EMPTY),
        ),
    )


def _failed(agent: AgentState, turn: Turn, result: TurnResult) -> tuple[Entry, ...]:
    at = f"turn/{turn.number}"
    error = result.error or TurnError(kind=ErrorKind.HARNESS, message="the harness gave no reason")
    outcome = Outcome.ABORTED if error.kind is ErrorKind.ABORTED else Outcome.FAILED
    failed = ev.AgentTurnFailed(turn=turn.number, turn_id=turn.id, error=error, text=result.text, usage=result.usage)
    settled = ev.HandleSettled(
        outcome=outcome, turn=turn.number, result=result.text, error_kind=error.kind, error=error.message
    )
    state = ev.AgentStateChanged(state=LedgerState.FAILED, reason="TurnFailed", message=error.message)
    return (
        entry(agent, f"{at}/end", failed),
        entry(agent, f"{at}/settled", settled),
        entry(agent, f"{at}/state", state),
    )


def build_interruption(
    agent: AgentState,
    policy: SupervisionSpec,
    end: End,
    remains: Remains = NOTHING,
    *,
    outside: bool = False,
) -> tuple[Entry, ...]:
    """The entries for a running turn that was cut off by `end`. Nothing when no turn runs.

    `outside`: the sandbox has not said so itself; it is given up with the turn.
    """
    turn = agent.turn
    if turn is None or turn.state is not TurnState.RUNNING:
        return ()
    at = f"turn/{turn.number}"
    cut = ev.AgentTurnInterrupted(
        turn=turn.number, turn_id=turn.id, reason=end.reason, message=end.message[:MAX_MESSAGE],
        text=cut_tail(remains.text), tools=list(remains.tools), usage=remains.usage,
        own_fault=end.own_fault, outside=outside,
    )  # fmt: skip
    return (entry(agent, f"{at}/end", cut), *_after_interruption(agent, turn, policy, end, cut.text))


def _after_interruption(
    agent: AgentState, turn: Turn, policy: SupervisionSpec, end: End, text: str
) -> tuple[Entry, ...]:
    at = f"turn/{turn.number}"
    message = f"turn {turn.number} was cut off: {end.message}"[:MAX_MESSAGE]
    if end.own_fault and (failures := agent.failures + 1) >= policy.max_consecutive_failures:
        return build_breaker(agent, at, end, failures)
    if policy.on_interruption is OnInterruption.RETRY and turn.attempt <= policy.max_retries:
        retry = ev.AgentStateChanged(state=LedgerState.RUNNING, reason="RetryingTurn", message=message)
        return (entry(agent, f"{at}/state", retry),)
    if policy.on_interruption is OnInterruption.ASK:
        return _block(agent, at, INTERRUPTED, f"{message}; give it a prompt, and it goes on from its last clean turn")
    settled = ev.HandleSettled(
        outcome=Outcome.FAILED, turn=turn.number, result=text, error_kind=ErrorKind.INTERRUPTED, error=message
    )
    failed = ev.AgentStateChanged(state=LedgerState.FAILED, reason=INTERRUPTED, message=message)
    return (entry(agent, f"{at}/settled", settled), entry(agent, f"{at}/state", failed))


def build_breaker(agent: AgentState, at: str, end: End, failures: int) -> tuple[Entry, ...]:
    """The entries that hold an agent which failed `failures` times in a row by its own fault; `at` names the cause."""
    message = f"{failures} failures in a row by its own fault, the last: {end.message}; mend that and give it a prompt"
    return _block(agent, at, TOO_MANY_FAILURES, message)


def _block(agent: AgentState, at: str, reason: str, message: str) -> tuple[Entry, ...]:
    number = agent.turn.number if agent.turn else 0
    asked = ev.AgentSupervisionNeeded(turn=number, reason=reason, message=message)
    blocked = ev.AgentStateChanged(state=LedgerState.BLOCKED, reason=reason, message=message)
    return (entry(agent, f"{at}/asked", asked), entry(agent, f"{at}/state", blocked))


def build_end(
    agent: AgentState, outcome: Outcome, reason: str, message: str, remains: Remains = NOTHING, *, epoch: int = 0
) -> tuple[Entry, ...]:
    """The entries that close an agent for good: a running turn is cut, a pending handle settles.

    An agent that is lost is closed until a leader of an epoch after `epoch`
    tries again.
    """
    cut = build_interruption(agent, SupervisionSpec(), End(EndKind.DISRUPTION, reason, message), remains)[:1]
    ended = ev.AgentEnded(outcome=outcome, reason=reason, message=message, epoch=epoch)
    at = f"ended/{epoch}" if epoch else "ended"
    entries = (*cut, entry(agent, at, ended), *drop_inbox(agent, f"{at}/dropped", reason))
    if agent.handle.settled:
        return entries
    number = agent.turn.number if agent.turn else None
    text = next((e.body.text for e in cut if isinstance(e.body, ev.AgentTurnInterrupted)), "")
    settled = ev.HandleSettled(outcome=outcome, turn=number, result=text, error=message)
    return (*entries, entry(agent, f"{at}/settled", settled))


def drop_inbox(agent: AgentState, at: str, reason: str) -> tuple[Entry, ...]:
    """What was accepted and will never be delivered is recorded as dropped."""
    ids = [message.id for message in agent.inbox]
    return (entry(agent, at, ev.InboxDropped(ids=ids, reason=reason)),) if ids else ()


def build_parent_lost(agent: AgentState, parent: str, epoch: int) -> tuple[Entry, ...]:
    """The entries for a child that has not begun, and whose parent's files nobody has any more."""
    return build_end(agent, Outcome.LOST, "ParentLost", f"the parent {parent} cannot come back", epoch=epoch)
