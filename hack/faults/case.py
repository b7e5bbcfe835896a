"""One cell of the matrix: an agent as it was before the fault, at rest, and at the end. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hack.faults.evidence import Evidence
from hack.faults.expected import EXPECTED, Expected
from hack.faults.reading import Read, read_agent
from hack.faults.table import Column, Row

Json = Mapping[str, Any]
CLEAN_TURN_LOST = "CleanTurnLost"


@dataclass(frozen=True)
class Case:
    """One cell: the agent of a column, as `read` before, at rest, and at the end."""

    evidence: Evidence
    column: Column
    name: str
    key: str
    before: Read
    settled: Read
    after: Read

    @property
    def expected(self) -> Expected:
        return EXPECTED[Row(self.evidence.row)]

    @property
    def rungs(self) -> Sequence[str]:
        """Those that were used since it was struck, oldest first."""
        since = self.evidence.before.head[0]
        return [rung for seq, rung in self.settled.rungs if seq > since]

    @property
    def said(self) -> Mapping[int, str]:
        return self.evidence.said[self.name]

    @property
    def requests(self) -> Sequence[Json]:
        """What the model was asked with a prompt of this agent as the newest words."""
        says = tuple(self.said.values())
        return [one for one in self.evidence.asked if one["users"] and one["users"][-1].endswith(says)]


def build_case(evidence: Evidence, column: Column) -> Case:
    name = evidence.agents[column]
    key = f"{evidence.namespace}/{name}"
    looks = (evidence.before, evidence.settled, evidence.after)
    return Case(evidence, column, name, key, *(read_agent(look.rows, key) for look in looks))


def find_ask(case: Case) -> Json | None:
    """The request with which the question afterwards came to the model."""
    answer = case.evidence.answers.get(case.name)
    say = case.said.get(answer.turn) if answer else None
    asked = [one for one in case.requests if say and one["users"][-1].endswith(say)]
    return asked[-1] if asked else None


def find_notes(case: Case) -> list[int] | None:
    """The numbers that the agent read from its file."""
    asked = find_ask(case)
    results = asked["tool_results"] if asked else []
    if not results or asked is None or asked["roles"][-1] != "tool":
        return None
    return [int(line) for line in results[-1].splitlines() if line.isdigit()]


def name_turns(case: Case, users: Sequence[str]) -> list[int]:
    """Which turns' prompts these are; -1 for what is none."""
    return [next((turn for turn, say in case.said.items() if text.endswith(say)), -1) for text in users]


def says_lost(case: Case) -> bool:
    agent = case.evidence.settled.agents.get(case.name) or {}
    found = [c for c in (agent.get("status") or {}).get("conditions") or () if c["type"] == "Interrupted"]
    return any(c["status"] == "True" and c["reason"] == CLEAN_TURN_LOST for c in found)


def key_of(case: Case, column: Column) -> str:
    return f"{case.evidence.namespace}/{case.evidence.agents[column]}"
