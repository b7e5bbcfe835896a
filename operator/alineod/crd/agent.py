"""An agent as a person writes it: in a swarm's list, in a swarm's defaults, or as an object of its own."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from alineod.crd.base import Record, Rule, Schema, WithoutRules
from alineod.crd.harness import HarnessSpec
from alineod.crd.sandbox import SandboxSpec
from alineod.crd.types import MAX_OBJECT_NAME, Duration, Name

MAX_WAITS = 256


MAX_PROMPT = 131_072  # characters: with all they may need in JSON, what the ledger takes as one record


class StartFrom(StrEnum):
    PARENT = "Parent"
    FRESH = "Fresh"


class WaitMode(StrEnum):
    SETTLED = "Settled"
    ALL = "All"
    ANY = "Any"
    QUORUM = "Quorum"


class OnDepFailure(StrEnum):
    FAIL = "Fail"
    PROCEED = "Proceed"


class OnDeadline(StrEnum):
    PROCEED = "Proceed"
    FAIL = "Fail"


class Wait(Record):
    """What an agent waits for before its first turn. A plain list is short for `agents` with the defaults below."""

    agents: tuple[Name, ...] = Field(
        min_length=1, max_length=MAX_WAITS, description="Short names of agents of the same swarm that exist already."
    )
    mode: WaitMode = Field(
        default=WaitMode.SETTLED,
        description="Settled: all have an outcome, whatever it is. All: all succeeded. Any: one succeeded. "
        "Quorum: `k` succeeded.",
    )
    k: int | None = Field(default=None, ge=1, le=MAX_WAITS, description="How many must succeed, for mode Quorum.")
    on_dep_failure: OnDepFailure = Field(
        default=OnDepFailure.FAIL,
        description="What happens when `mode` can no longer be met: the agent fails, or it starts all the same. "
        "Not written, mode Settled starts all the same and the others fail.",
    )
    deadline: Duration | None = Field(default=None, description="How long the wait may last at most. None: for ever.")
    on_deadline: OnDeadline = Field(
        default=OnDeadline.PROCEED,
        description="What happens at the deadline: the agent starts with what there is, or fails.",
    )


def _normal_wait(value: object) -> object:
    match value:
        case list() | tuple():
            return {"agents": value}
        case Mapping() | Wait():
            return value
        case _:
            raise ValueError(f"is neither a list of short names, such as [lead], nor an object with agents: {value!r}")


LIST_OR_OBJECT: dict[str, Any] = {
    "type": None,
    "x-kubernetes-preserve-unknown-fields": True,
    "minItems": 1,
    "maxItems": MAX_WAITS,
    "items": {"type": "string", "minLength": 1, "maxLength": MAX_OBJECT_NAME},
}
"""Lays the list over the object's schema: without a type, `items` speaks of lists and `properties` of objects.
CEL in a CRD does not see into such a field; the admission policy does."""

WaitSpec = Annotated[Wait, BeforeValidator(_normal_wait), Schema(LIST_OR_OBJECT), WithoutRules()]


class LimitsSpec(Record):
    """How long a turn may take."""

    turn_max: Duration = Field(
        default=1800.0,
        description="A turn that runs longer than this, pauses not counted, is ended with the text it has. A change "
        "holds for turns that start later.",
    )
    prompt_inactivity: Duration = Field(
        default=180.0, description="After this much silence a turn is shown as inactive; silence never ends a turn."
    )


class AgentTemplate(Record):
    """What may stand in a swarm's `defaults`: everything about an agent but its place and its task."""

    from_: StartFrom = Field(
        default=StartFrom.PARENT,
        description="Parent: the child starts with a copy of its parent's files. Fresh: it starts from the image. "
        "Without a parent there is no difference.",
    )
    checkpoint: bool = Field(
        default=False, description="Whether home and /workspace are kept after every turn that ends cleanly."
    )
    harness: HarnessSpec = Field(default=HarnessSpec(), description="The program that drives the model.")
    sandbox: SandboxSpec = Field(default=SandboxSpec(), description="The pod the agent runs in.")
    limits: LimitsSpec = Field(default=LimitsSpec(), description="How long a turn may take.")


class AgentTask(AgentTemplate):
    """An agent's place in the tree and what it is to do. All but `paused` stay as they were made."""

    prompt: str = Field(min_length=1, max_length=MAX_PROMPT, description="The first turn's prompt.")
    parent: Name | None = Field(default=None, description="Short name of the agent this one is a child of.")
    wait_for: WaitSpec | None = Field(
        default=None,
        description="What the agent waits for before its first turn: a list of short names, or an object.",
    )
    paused: bool = Field(
        default=False, description="Whether the agent is to stand still. Kept, and not acted upon yet."
    )


class AgentEntry(AgentTask):
    """An agent of a swarm's list. The operator makes the Agent `<swarm>-<name>` of it."""

    name: Name = Field(description="Short name within the swarm.")


CHANGE_SENTENCE = "cannot change once the agent is made: use the prompt verb, or add a new agent"


def _immutable(field: str) -> Rule:
    """Keeps a typed field as it was made, present or absent."""
    return Rule(
        f"has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || self.{field} == oldSelf.{field})",
        f"{field} {CHANGE_SENTENCE}",
    )


class AgentSpec(AgentTask):
    """One agent of a swarm."""

    RULES = tuple(_immutable(field) for field in ("swarm", "alias", "parent", "prompt"))

    swarm: Name = Field(description="Name of the Swarm in the same namespace that the agent belongs to.")
    alias: Name | None = Field(default=None, description="Short name within the swarm. None: the object's own name.")
