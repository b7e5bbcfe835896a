"""The clients' own records against the rows of the ledger. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

EVENT = "inbox.queued"
SHOWN = 5  # keys that are named of each kind of loss


@dataclass(frozen=True)
class Record:
    """One prompt as its client saw it. Times are the client's monotonic seconds, None where there was no answer.

    `refusal` is what the API said where it did not take the prompt at all.
    """

    key: str
    agent: str
    sent: float
    tries: int = 0
    answered: float | None = None
    address: str = ""
    refusal: str = ""

    @property
    def acknowledged(self) -> bool:
        return self.answered is not None


@dataclass(frozen=True)
class Verdict:
    """Keys; `lost` were acknowledged and are absent, `doubled` stand in more than one row."""

    tried: int
    acknowledged: int
    retried: int
    lost: Sequence[str]
    doubled: Sequence[str]
    refused: Sequence[str]

    @property
    def good(self) -> bool:
        return self.acknowledged > 0 and not (self.lost or self.doubled or self.refused)


def judge(records: Iterable[Record], rows: Iterable[Mapping[str, Any]]) -> Verdict:
    """Count what the rows, as `alineod ledger dump` prints them, have of what the clients were promised."""
    records = list(records)
    rows = [row for row in rows if row["event"] == EVENT]
    stands = {(row["agent"], row["payload"]["id"]) for row in rows}
    counts = Counter(row["payload"]["id"] for row in rows)
    return Verdict(
        tried=len(records),
        acknowledged=sum(record.acknowledged for record in records),
        retried=sum(record.tries > 1 for record in records),
        lost=[r.key for r in records if r.acknowledged and (r.agent, r.key) not in stands],
        doubled=sorted(key for key, count in counts.items() if count > 1),
        refused=[f"{r.key} ({r.refusal})" for r in records if r.refusal],
    )


def describe(verdict: Verdict) -> list[str]:
    """Lines for a person: the counts, then the first keys of everything that should not be."""
    lines = [
        f"tried         {verdict.tried:>8,}",
        f"acknowledged  {verdict.acknowledged:>8,}  ({verdict.retried:,} prompts were sent more than once)",
        f"lost          {len(verdict.lost):>8,}",
        f"doubled       {len(verdict.doubled):>8,}",
    ]
    for name in ("lost", "doubled", "refused"):
        keys = getattr(verdict, name)
        lines += [f"{name}: {', '.join(keys[:SHOWN])}{' ...' if len(keys) > SHOWN else ''}"] if keys else []
    return lines
