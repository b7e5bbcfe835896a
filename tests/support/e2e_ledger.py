"""Reading rows of the ledger as `alineod ledger dump` prints them. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

Row = Mapping[str, Any]


def select(rows: Iterable[Row], event: str, *, agent: str = "", **payload: Any) -> list[Row]:
    """The rows of this event, of this agent where one is named, whose payload has these values."""
    return [
        row
        for row in rows
        if row["event"] == event
        and agent in ("", row["agent"])
        and all(row["payload"].get(name) == value for name, value in payload.items())
    ]


def the_one(rows: Iterable[Row], event: str, *, agent: str = "", **payload: Any) -> Row:
    """The only such row."""
    found = select(rows, event, agent=agent, **payload)
    assert len(found) == 1, (
        f"one {event} of {agent or 'the run'} with {payload} was expected, found {len(found)}: {found}"
    )
    return found[0]


def names_of(rows: Iterable[Row], agent: str) -> list[str]:
    """The events of an agent in order, the harness's own left out."""
    return [row["event"] for row in rows if row["agent"] == agent and not row["event"].startswith("harness.")]


def check_unbroken(rows: Sequence[Row]) -> None:
    """The whole ledger has no gap, and each row the hash of the one before it."""
    assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))
    broken = [after["seq"] for before, after in pairwise(rows) if after["prev"] != before["hash"]]
    assert not broken, f"the chain is broken at {broken}"


def count_turns(rows: Iterable[Row], event: str) -> Counter[tuple[str, int]]:
    """How often this event tells of each turn, by agent and number."""
    return Counter((row["agent"], row["payload"]["turn"]) for row in rows if row["event"] == event)
