"""What a person reads: summaries and pointers. Transcripts, results and events live in the ledger."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from alineod.crd.base import Observed, Schema

MAX_MESSAGE = 4096
UNSEEN = -1  # observedGeneration of an object nobody has looked at


class Phase(StrEnum):
    WAITING = "Waiting"
    PROVISIONING = "Provisioning"
    RUNNING = "Running"
    PAUSED = "Paused"
    BLOCKED = "Blocked"
    DONE = "Done"
    FAILED = "Failed"
    ABORTED = "Aborted"
    LOST = "Lost"


class ConditionType(StrEnum):
    READY = "Ready"
    RECONCILING = "Reconciling"
    STALLED = "Stalled"
    RUNNING = "Running"
    INTERRUPTED = "Interrupted"
    LOST = "Lost"
    CHECKPOINTED = "Checkpointed"
    UP_TO_DATE = "UpToDate"
    LEDGER_REPLICATED = "LedgerReplicated"


class ConditionStatus(StrEnum):
    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class TurnPhase(StrEnum):
    RUNNING = "Running"
    CLEAN = "Clean"
    FAILED = "Failed"
    ABORTED = "Aborted"
    INTERRUPTED = "Interrupted"


class OutcomeWord(StrEnum):
    SUCCESS = "Success"
    FAILED = "Failed"
    ABORTED = "Aborted"
    LOST = "Lost"
    BUDGET_EXCEEDED = "BudgetExceeded"


class RungWord(StrEnum):
    REATTACH = "Reattach"
    RESUME = "Resume"
    RESTORE = "Restore"


Time = Annotated[str, Field(max_length=64), Schema({"format": "date-time"})]
"""RFC 3339 in UTC, to the second."""

Text = Annotated[str, Field(max_length=MAX_MESSAGE)]
Word = Annotated[str, Field(max_length=1024)]


class Condition(Observed):
    """One thing that is so or not, since when and why."""

    type: ConditionType = Field(description="What is meant.")
    status: ConditionStatus = Field(description="Whether it is so.")
    observed_generation: int = Field(default=0, description="The generation of the spec this was said about.")
    last_transition_time: Time = Field(description="When `status` last changed.")
    reason: Annotated[str, Field(max_length=256)] = Field(description="Why, in one CamelCase word.")
    message: Text = Field(default="", description="Why, in a sentence for people.")


Conditions = Annotated[
    tuple[Condition, ...], Schema({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]})
]


class TurnStatus(Observed):
    """The latest turn."""

    number: int = Field(ge=1, description="Counts the agent's turns from 1.")
    id: Word = Field(description="The turn's id, ALINEO_TURN_ID in the sandbox.")
    state: TurnPhase = Field(description="How far it is or how it ended.")
    started_at: Time = Field(description="When it started.")


class SandboxStatus(Observed):
    """The pod the agent runs in, or last ran in."""

    pod: Word = Field(description="Name of the pod.")
    node: Word = Field(default="", description="Name of its node.")
    incarnation: int = Field(ge=1, description="Counts the agent's pods from 1.")
    restarts: int = Field(default=0, ge=0, description="How often the agent's container was restarted in this pod.")


class CheckpointStatus(Observed):
    """The newest checkpoint."""

    turn: int = Field(ge=0, description="The turn it was taken after.")
    time: Time = Field(description="When it was recorded.")
    bytes: int = Field(default=0, ge=0, description="Size of the archive.")
    remote_ref: Word = Field(default="", description="Its key in the bucket, once it was seen there.")
    upload_error: Text = Field(default="", description="Why it is not in the bucket.")


class RestoreStatus(Observed):
    """How the agent last came back."""

    rung: RungWord = Field(description="The rung of the restore ladder that held.")
    turn: int | None = Field(
        default=None, ge=0, description="The turn of the checkpoint it came back with. None: blank."
    )
    time: Time = Field(description="When it was back.")
    reason: Text = Field(default="", description="Why the rungs above did not hold.")


class UsageStatus(Observed):
    """Tokens and money used so far."""

    input_tokens: int = Field(default=0, ge=0, description="Tokens read by the model.")
    output_tokens: int = Field(default=0, ge=0, description="Tokens written by the model.")
    usd: Annotated[str, Field(max_length=32)] | None = Field(
        default=None, description="US dollars. None: the price is unknown."
    )


class AgentStatus(Observed):
    """What the operator knows of an agent."""

    observed_generation: int = Field(default=UNSEEN, description="The generation of the spec this status is about.")
    phase: Phase | None = Field(default=None, description="Where the agent is.")
    conditions: Conditions = Field(default=(), max_length=16, description="What is so and what is not.")
    turn: TurnStatus | None = Field(default=None, description="The latest turn.")
    sandbox: SandboxStatus | None = Field(default=None, description="The pod.")
    checkpoint: CheckpointStatus | None = Field(default=None, description="The newest checkpoint.")
    restore: RestoreStatus | None = Field(default=None, description="How the agent last came back.")
    outcome: OutcomeWord | None = Field(default=None, description="What came of the agent's last turn.")
    usage: UsageStatus | None = Field(default=None, description="Tokens and money used.")


class AgentCounts(Observed):
    """How many agents are where."""

    progress: Annotated[str, Field(max_length=32)] = Field(default="", description="Done and total, such as 3/4.")
    total: int = Field(default=0, ge=0, description="All agents of the swarm.")
    waiting: int = Field(default=0, ge=0, description="Agents in phase Waiting.")
    provisioning: int = Field(default=0, ge=0, description="Agents in phase Provisioning.")
    running: int = Field(default=0, ge=0, description="Agents in phase Running.")
    paused: int = Field(default=0, ge=0, description="Agents in phase Paused.")
    blocked: int = Field(default=0, ge=0, description="Agents in phase Blocked.")
    done: int = Field(default=0, ge=0, description="Agents in phase Done.")
    failed: int = Field(default=0, ge=0, description="Agents in phase Failed.")
    aborted: int = Field(default=0, ge=0, description="Agents in phase Aborted.")
    lost: int = Field(default=0, ge=0, description="Agents in phase Lost.")


class LedgerStatus(Observed):
    """How far the swarm's events are recorded and replicated."""

    seq: int = Field(default=0, ge=0, description="The newest event of the swarm.")
    replicated_seq: int = Field(default=0, ge=0, description="The newest event of the swarm that is in the bucket.")


class SwarmStatus(Observed):
    """What the operator knows of a swarm."""

    observed_generation: int = Field(default=UNSEEN, description="The generation of the spec this status is about.")
    instance: Word = Field(default="", description="The release the swarm belongs to. Another one leaves it alone.")
    agents: AgentCounts | None = Field(default=None, description="How many agents are where.")
    conditions: Conditions = Field(default=(), max_length=16, description="What is so and what is not.")
    usage: UsageStatus | None = Field(default=None, description="Tokens and money used by all agents.")
    ledger: LedgerStatus | None = Field(
        default=None, description="How far the swarm's events are recorded and replicated."
    )


MEANINGS = {
    ConditionType.READY: "It is where it should be: up, waiting its turn, paused as asked, or finished. On a Swarm: "
    "this generation was seen and no agent is stuck.",
    ConditionType.RECONCILING: "Something is being done about it right now.",
    ConditionType.STALLED: "It cannot go on without somebody's help; the message says what to do.",
    ConditionType.RUNNING: "A turn is in progress.",
    ConditionType.INTERRUPTED: "The last turn was cut off: which one, why, and what survived. The next clean turn "
    "clears it. On a Swarm: true of one of its agents.",
    ConditionType.LOST: "No rung of the restore ladder held; the message has the last error. On a Swarm: true of one "
    "of its agents.",
    ConditionType.CHECKPOINTED: "The newest clean turn is in the bucket. False with UploadFailed or Pending.",
    ConditionType.UP_TO_DATE: "The sandbox was made from the spec as it is now. False: a change waits for the next.",
    ConditionType.LEDGER_REPLICATED: "What the ledger holds of the swarm is in the bucket.",
}
CONDITIONS_OF = {
    "Swarm": (
        ConditionType.READY,
        ConditionType.RECONCILING,
        ConditionType.STALLED,
        ConditionType.INTERRUPTED,
        ConditionType.LOST,
        ConditionType.LEDGER_REPLICATED,
    ),
    "Agent": (
        ConditionType.READY,
        ConditionType.RECONCILING,
        ConditionType.STALLED,
        ConditionType.RUNNING,
        ConditionType.INTERRUPTED,
        ConditionType.LOST,
        ConditionType.CHECKPOINTED,
        ConditionType.UP_TO_DATE,
    ),
}
