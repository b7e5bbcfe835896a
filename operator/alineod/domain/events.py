"""The events of the ledger: never changed, never deleted; a new meaning is a new event; old ones are read for ever.

A body says what happened; the entry around it says to which run and agent, and under which identity. The identity is
derived from what happened (object UID, incarnation, turn), never random, so that an append which is tried again is
the same event and stands once.
"""

from enum import StrEnum
from typing import Any

import msgspec

from alineod.wire.archives import Tried
from alineod.wire.turns import ErrorKind, Session, TurnError, Usage


class LedgerState(StrEnum):
    """States of an agent. The last four are ends; `done` and `failed` agents keep a sandbox that can be prompted."""

    SPAWNING = "spawning"
    PROVISIONING = "provisioning"
    RUNNING = "running"
    PAUSED = "paused"
    BLOCKED = "blocked"
    DONE = "done"
    FAILED = "failed"
    ABORTED = "aborted"
    LOST = "lost"


class Outcome(StrEnum):
    SUCCESS = "success"
    FAILED = "failed"
    ABORTED = "aborted"
    LOST = "lost"
    BUDGET_EXCEEDED = "budget-exceeded"


class Rung(StrEnum):
    """The rungs of the restore ladder, from the cheapest down."""

    REATTACH = "Reattach"
    RESUME = "Resume"
    RESTORE = "Restore"


class Body(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, tag_field="event"):
    """Base of the payloads."""


class RunStarted(Body, tag="run.started", frozen=True):
    """A run begins; or, with `adopted`, the same run goes on under an object with another UID."""

    uid: str
    cluster_uid: str
    instance: str
    deletion_policy: str = "Retain"
    adopted: bool = False


class RunDeleted(Body, tag="run.deleted", frozen=True):
    uid: str
    reason: str
    deletion_policy: str = "Retain"


class RunQuiescent(Body, tag="run.quiescent", frozen=True):
    pass


class AgentSpawned(Body, tag="agent.spawned", frozen=True):
    """The agent was accepted into its run. `spec` is its effective spec as JSON, enough to spawn it again.

    `adopted`: the same agent under an object with another UID; nothing of its history is reset.
    """

    uid: str
    alias: str
    parent: str | None = None  # key of the parent agent
    spec: dict[str, Any] = {}
    adopted: bool = False


class AgentProvisioned(Body, tag="agent.provisioned", frozen=True):
    """A pod was made for the agent; nothing builds on a pod before this stands in the ledger.

    `cause` says why the one before it went, `own_fault` whether that counts against the agent.
    """

    pod: str
    uid: str
    incarnation: int
    rung: Rung | None = None  # None: the first pod
    cause: str = ""
    own_fault: bool = False


class AgentStateChanged(Body, tag="agent.state_changed", frozen=True):
    state: LedgerState
    reason: str
    message: str = ""


class AgentTurnStarted(Body, tag="agent.turn_started", frozen=True):
    """The prompt is about to be handed to the sandbox. From here on the turn may have happened."""

    turn: int
    turn_id: str
    prompt: str
    incarnation: int
    attempt: int = 1


class AgentTurnEnded(Body, tag="agent.turn_ended", frozen=True):
    turn: int
    turn_id: str
    text: str
    usage: Usage = Usage()
    session: Session | None = None


class AgentTurnFailed(Body, tag="agent.turn_failed", frozen=True):
    turn: int
    turn_id: str
    error: TurnError
    text: str = ""
    usage: Usage = Usage()


class AgentTurnInterrupted(Body, tag="agent.turn_interrupted", frozen=True):
    """The turn was cut off. `text` is what survived of it, `tools` those that had started.

    `own_fault`: it counts against the agent. `outside`: the sandbox itself has not said so; it was given up, and
    whatever it still does is of no account.
    """

    turn: int
    turn_id: str
    reason: str
    message: str
    text: str = ""
    tools: list[str] = []
    usage: Usage = Usage()
    own_fault: bool = False
    outside: bool = False


class AgentCheckpointed(Body, tag="agent.checkpointed", frozen=True):
    """`remote_ref` is the object's key once the operator saw it in the bucket; else `upload_error` says why not."""

    turn: int
    incarnation: int
    snapshot_ref: str
    sha256: str
    bytes: int
    remote_ref: str | None = None
    upload_error: str | None = None
    session: Session | None = None


class AgentCheckpointUploaded(Body, tag="agent.checkpoint_uploaded", frozen=True):
    turn: int
    incarnation: int
    remote_ref: str


class AgentRestored(Body, tag="agent.restored", frozen=True):
    """The rung that held. `checkpoint_turn` None: it came back blank. `restarts` of the container there have been."""

    rung: Rung
    incarnation: int
    reason: str
    restarts: int = 0
    checkpoint_turn: int | None = None
    where: str = ""
    tried: list[Tried] = []


class AgentSteered(Body, tag="agent.steered", frozen=True):
    turn: int
    text: str


class AgentSupervisionNeeded(Body, tag="agent.supervision_needed", frozen=True):
    turn: int
    reason: str
    message: str


class AgentEnded(Body, tag="agent.ended", frozen=True):
    """The agent reached an end: no sandbox is kept for it. One that is lost is tried again in a later epoch."""

    outcome: Outcome
    reason: str
    message: str = ""
    epoch: int = 0


class AgentReleased(Body, tag="agent.released", frozen=True):
    """A finished agent's sandbox is gone for good; its outcome stays."""

    reason: str
    message: str = ""


class HandleSettled(Body, tag="handle.settled", frozen=True):
    """What waits on the agent may go on. `result` is the last assistant text of `turn`."""

    outcome: Outcome
    turn: int | None = None
    result: str = ""
    error_kind: ErrorKind | None = None
    error: str = ""


class BudgetDenied(Body, tag="budget.denied", frozen=True):
    budget: str
    message: str


class WaitResolved(Body, tag="wait.resolved", frozen=True):
    """The agent's wait is over. `outcomes` holds the settled ones by short name, `pending` the others.

    `turns` says which turn of each settled one the agent is given to read; `plain` that the wait was a bare list.
    """

    mode: str
    outcome: str  # satisfied, deadline or failed
    outcomes: dict[str, Outcome] = {}
    pending: list[str] = []
    turns: dict[str, int] = {}
    plain: bool = False


class WaitBlocked(Body, tag="wait.blocked", frozen=True):
    on: str
    message: str


class NotifyRegistered(Body, tag="notify.registered", frozen=True):
    on: str
    wake: bool = False


class InboxQueued(Body, tag="inbox.queued", frozen=True):
    """A message waits for the agent. `kind`: `prompt` (becomes a turn of its own) or `notice`."""

    id: str
    kind: str
    text: str
    sender: str = ""


class InboxDelivered(Body, tag="inbox.delivered", frozen=True):
    ids: list[str]
    turn: int


class InboxDropped(Body, tag="inbox.dropped", frozen=True):
    ids: list[str]
    reason: str


class HarnessEvent(Body, tag="harness.event", frozen=True):
    """An event of the harness, forwarded from the journal. `seq` is the journal's, per incarnation."""

    type: str
    turn: int
    incarnation: int
    seq: int
    data: dict[str, Any] = {}


AnyBody = (
    RunStarted | RunDeleted | RunQuiescent
    | AgentSpawned | AgentProvisioned | AgentStateChanged
    | AgentTurnStarted | AgentTurnEnded | AgentTurnFailed | AgentTurnInterrupted
    | AgentCheckpointed | AgentCheckpointUploaded | AgentRestored | AgentSteered | AgentSupervisionNeeded
    | AgentEnded | AgentReleased | HandleSettled | BudgetDenied
    | WaitResolved | WaitBlocked | NotifyRegistered
    | InboxQueued | InboxDelivered | InboxDropped | HarnessEvent
)  # fmt: skip


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """An event to append. `id` is its identity within the ledger; `run` and `agent` are `namespace/name`."""

    id: str
    run: str
    agent: str | None
    body: AnyBody


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """An event as the ledger holds it. `seq` has no gaps; `prev` is the hash of the row before (hex)."""

    seq: int
    time: float  # Unix seconds
    id: str
    run: str
    agent: str | None
    body: AnyBody
    prev: str
    hash: str


def event_name(body: AnyBody) -> str:
    """The name the event has outside: `agent.spawned`, or the harness's own as `harness.<type>`."""
    return f"harness.{body.type}" if isinstance(body, HarnessEvent) else str(body.__struct_config__.tag)
