"""What is known of all runs, agents and handles by their events alone; `domain.fold` computes it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from alineod.domain import events as ev
from alineod.domain.events import LedgerState, Outcome, Rung
from alineod.wire.turns import Session, TurnError, TurnState, Usage


@dataclass(frozen=True)
class Turn:
    """One turn as far as the ledger knows."""

    number: int
    id: str
    prompt: str
    incarnation: int
    started_at: float
    state: TurnState = TurnState.RUNNING
    attempt: int = 1
    text: str = ""
    error: TurnError | None = None
    ended_at: float | None = None


@dataclass(frozen=True)
class Checkpoint:
    turn: int
    incarnation: int
    snapshot_ref: str
    sha256: str
    bytes: int
    time: float
    remote_ref: str | None = None
    upload_error: str | None = None
    session: Session | None = None


@dataclass(frozen=True)
class SetAside:
    """A checkpoint that the agent did not come back from; `since` in Unix seconds."""

    checkpoint: Checkpoint
    since: float


@dataclass(frozen=True)
class Handle:
    """`pending` until settled. A new turn makes it pending again."""

    settled: bool = False
    outcome: Outcome | None = None
    turn: int | None = None
    result: str = ""
    error: str = ""
    error_kind: str = ""


@dataclass(frozen=True)
class Interruption:
    turn: int
    reason: str
    message: str
    tools: tuple[str, ...] = ()
    survived: int = 0  # characters of its text
    before: "Interruption | None" = None  # one that the agent has not been told of yet either


@dataclass(frozen=True)
class Restored:
    rung: Rung
    incarnation: int
    reason: str
    time: float
    checkpoint_turn: int | None = None


@dataclass(frozen=True)
class Pod:
    """The pod the ledger holds for the agent: whoever is not it has no say."""

    name: str
    uid: str
    incarnation: int
    rung: Rung | None
    made_at: float = 0.0
    cause: str = ""  # why the pod before it went
    restarts: int = 0  # of its container, at the last rung that held


@dataclass(frozen=True)
class InboxMessage:
    id: str
    kind: str
    text: str
    waited: bool = False  # since before the agent was blocked: it is not what somebody decided about that


@dataclass(frozen=True)
class AgentState:
    key: str
    run: str
    uid: str
    alias: str
    parent: str | None
    spec: Mapping[str, Any]
    spawned_at: float
    spawned_seq: int = 0  # its first event
    claimed_at: float = 0.0  # when its present object was taken note of
    claimed_seq: int = 0
    first_incarnation: int = 1  # pods of former agents of the name come before it
    state: LedgerState = LedgerState.SPAWNING
    reason: str = "Spawned"
    message: str = ""
    state_since: float = 0.0
    pod: Pod | None = None
    incarnation: int = 0
    turn: Turn | None = None
    journal_seq: int = 0  # the last journal number recorded, of the current incarnation
    last_clean_turn: int | None = None
    checkpoints: tuple[Checkpoint, ...] = ()  # newest last
    set_aside: tuple[SetAside, ...] = ()  # newest last
    unclean: tuple[int, ...] = ()  # the newest turns that did not end cleanly
    restored: Restored | None = None
    interruption: Interruption | None = None
    inbox: tuple[InboxMessage, ...] = ()
    handle: Handle = field(default_factory=Handle)
    wait_resolved: ev.WaitResolved | None = None
    outcome: Outcome | None = None
    usage: Usage = field(default_factory=Usage)
    released: bool = False
    closed: bool = False  # it reached an end: no sandbox is kept or made for it any more
    ended_epoch: int = 0  # of the leader that said so
    failures: int = 0  # turns in a row that failed, or were cut off by the agent's own fault
    sandbox_faults: int = 0  # sandboxes in a row that ended by the agent's own fault
    given_up: int = 0  # the incarnation whose sandbox has no say any more, though it may still be there

    @property
    def is_back(self) -> bool:
        """Whether a rung held for its present sandbox."""
        return self.restored is not None and self.restored.incarnation == self.incarnation

    @property
    def is_coming_back(self) -> bool:
        """Whether its present sandbox is there to bring it back by Restore, and has not done so yet."""
        return self.pod is not None and self.pod.rung is Rung.RESTORE and not self.is_back

    @property
    def turn_running(self) -> bool:
        return self.turn is not None and self.turn.state is TurnState.RUNNING


@dataclass(frozen=True)
class RunState:
    key: str
    uid: str
    cluster_uid: str
    instance: str
    started_at: float
    started_seq: int  # the event it began with
    resumed_seq: int  # the event it last began with or was brought over with
    claimed_at: float = 0.0  # when its present object was taken note of
    deletion_policy: str = "Retain"
    deleted: bool = False
    seq: int = 0  # its newest event


def is_of_run(agent: AgentState, run: RunState) -> bool:
    """Whether the agent was spawned in this run, and not in a former one of the same name."""
    return agent.run == run.key and agent.spawned_seq > run.started_seq


@dataclass(frozen=True)
class State:
    """All runs and agents by key. `seq` is the last event folded."""

    runs: Mapping[str, RunState] = field(default_factory=dict)
    agents: Mapping[str, AgentState] = field(default_factory=dict)
    seq: int = 0
