"""A swarm as a person writes it."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from alineod.crd.agent import AgentEntry, AgentTemplate
from alineod.crd.base import Record, Rule, Schema
from alineod.crd.types import Money

MAX_DEPTH = 16
MAX_AGENTS = 5000


class OnFailure(StrEnum):
    FAIL = "Fail"
    ASK = "Ask"
    RETRY = "Retry"


class OnInterruption(StrEnum):
    SETTLE = "Settle"
    ASK = "Ask"
    RETRY = "Retry"


class DeletionPolicy(StrEnum):
    RETAIN = "Retain"
    DELETE = "Delete"


SpawnDepth = Annotated[
    int,
    Field(ge=0, le=MAX_DEPTH),
    Rule(f"self >= 0 && self <= {MAX_DEPTH}", f"spawnDepth is from 0 (nobody spawns) to {MAX_DEPTH}"),
]


class BudgetSpec(Record):
    """What the swarm may use at most."""

    spawn_depth: SpawnDepth = Field(
        default=0, description="How many levels agents may spawn below the root. 0: nobody spawns."
    )
    max_agents: int | None = Field(
        default=None, ge=1, le=100_000, description="How many agents there may be. None: no limit."
    )
    tokens: int | None = Field(default=None, ge=1, description="How many tokens all turns may use. None: no limit.")
    usd: Money | None = Field(default=None, description="How many US dollars all turns may cost. None: no limit.")


class SupervisionSpec(Record):
    """What follows a turn that failed or was cut off."""

    on_failure: OnFailure = Field(
        default=OnFailure.FAIL,
        description="Fail: the agent fails. Ask: it is Blocked until somebody decides. Retry: it gets a new turn. "
        "Only Fail is acted upon yet.",
    )
    on_interruption: OnInterruption = Field(
        default=OnInterruption.SETTLE,
        description="Settle: the turn counts as failed and the agent can be prompted. Ask: it is Blocked until "
        "somebody decides. Retry: it gets a new turn, told what was cut off.",
    )
    max_retries: int = Field(default=2, ge=0, le=100, description="How often one turn is tried again.")
    max_consecutive_failures: int = Field(
        default=3,
        ge=1,
        le=100,
        description="After so many failed turns in a row the agent is Blocked whatever the policy. Not acted upon yet.",
    )


class SwarmSpec(Record):
    """One run: a tree of agents."""

    budget: BudgetSpec = Field(
        default=BudgetSpec(), description="What the swarm may use at most. Kept, and not acted upon yet."
    )
    supervision: SupervisionSpec = Field(
        default=SupervisionSpec(), description="What follows a turn that failed or was cut off."
    )
    deletion_policy: DeletionPolicy = Field(
        default=DeletionPolicy.RETAIN, description="What happens to the bucket's checkpoints when the swarm is deleted."
    )
    paused: bool = Field(default=False, description="Whether all agents are to stand still. Kept, not acted upon yet.")
    defaults: AgentTemplate = Field(
        default=AgentTemplate(), description="Holds for every agent that does not say otherwise; maps merge by key."
    )
    agents: Annotated[
        tuple[AgentEntry, ...], Schema({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]})
    ] = Field(
        default=(),
        max_length=MAX_AGENTS,
        description="The agents. An entry may name only entries that stand before it. Adding one spawns it; removing "
        "one stops it and keeps its record.",
    )
