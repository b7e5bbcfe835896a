"""What was seen from outside before a fault and after it: all that the judge looks at. Pure; kept as JSON."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Look:
    """One moment. Objects by name; `rows` are this run's, `head` is the last of the whole ledger (seq, hash)."""

    agents: Mapping[str, Json] = field(default_factory=dict)
    pods: Mapping[str, Json] = field(default_factory=dict)
    rows: Sequence[Json] = ()
    head: tuple[int, str] = (0, "")


@dataclass(frozen=True)
class Chain:
    """The whole ledger at the end. `links` are (seq, prev, hash) of every row; `words` are the verify command's."""

    intact: bool
    words: str
    links: Sequence[tuple[int, str, str]] = ()


@dataclass(frozen=True)
class Answer:
    """What came of the question afterwards. `status` is HTTP's: 202 is no answer yet."""

    turn: int = 0
    status: int = 0
    outcome: str = ""
    result: str = ""
    late: str = ""  # why it was not asked, or not answered


@dataclass(frozen=True)
class Evidence:
    """One row. `agents` are names by column; `said` has each agent's prompts by turn, without their scripts.

    `readable` are the turns whose checkpoints were whole in the bucket when the fault had struck.
    `unsettled` says of each agent that did not come to rest what it was instead.
    """

    row: str
    agents: Mapping[str, str]
    namespace: str
    said: Mapping[str, Mapping[int, str]]
    before: Look
    settled: Look
    after: Look
    chain: Chain
    asked: Sequence[Json]
    readable: Mapping[str, Sequence[int]]
    answers: Mapping[str, Answer]
    unsettled: Mapping[str, str] = field(default_factory=dict)


def render(evidence: Evidence) -> str:
    return json.dumps(asdict(evidence), indent=1)


def parse(text: str) -> Evidence:
    """What `render` wrote."""
    raw = json.loads(text)
    looks = {name: _parse_look(raw[name]) for name in ("before", "settled", "after")}
    chain = Chain(raw["chain"]["intact"], raw["chain"]["words"], [tuple(link) for link in raw["chain"]["links"]])
    said = {agent: {int(turn): say for turn, say in turns.items()} for agent, turns in raw["said"].items()}
    answers = {agent: Answer(**answer) for agent, answer in raw["answers"].items()}
    return Evidence(**{**raw, **looks, "chain": chain, "said": said, "answers": answers})


def _parse_look(raw: Json) -> Look:
    return Look(raw["agents"], raw["pods"], raw["rows"], tuple(raw["head"]))
