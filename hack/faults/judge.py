"""The verdict on a cell. Pure: evidence in, sentences out."""

from hack.faults.case import build_case
from hack.faults.evidence import Evidence
from hack.faults.invariants import INVARIANTS
from hack.faults.table import Column


def judge(evidence: Evidence, column: Column) -> list[str]:
    """Sentences about what is wrong with a cell; each begins with its invariant."""
    case = build_case(evidence, column)
    return [f"{name}: {words}" for name, find in INVARIANTS.items() for words in find(case)]


def find_rung(evidence: Evidence, column: Column) -> str:
    """The rung that brought the agent back last; empty where nothing had to."""
    return next(reversed(build_case(evidence, column).rungs), "")
