"""A flaw in a spec, as data: the reason, the field, and the sentence."""

from dataclasses import dataclass
from enum import StrEnum


class Flaw(StrEnum):
    """Why a spec cannot be followed."""

    INVALID_NAME = "InvalidName"
    NAME_TOO_LONG = "NameTooLong"
    DUPLICATE_NAME = "DuplicateName"
    AGENT_NOT_FOUND = "AgentNotFound"
    WAIT_CYCLE = "WaitCycle"
    PARENT_CYCLE = "ParentCycle"
    TOO_DEEP = "TooDeep"
    INVALID_QUORUM = "InvalidQuorum"
    INVALID_HARNESS = "InvalidHarness"
    INVALID_POD_TEMPLATE = "InvalidPodTemplate"


@dataclass(frozen=True)
class Problem:
    """One flaw, the field it is in, and a sentence that says what to change."""

    flaw: Flaw
    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"
