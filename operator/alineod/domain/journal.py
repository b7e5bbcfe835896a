"""From a bridge's journal to the ledger: which records are events, and what text is heard meanwhile."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from alineod.crd.swarm import SupervisionSpec
from alineod.domain import events as ev
from alineod.domain.events import Entry
from alineod.domain.state import AgentState
from alineod.domain.turn_ends import build_turn_end, entry
from alineod.wire.turns import ErrorKind, JournalRecord, TurnError, TurnResult, TurnState

MAX_LIVE = 1 << 20  # characters of a running message that are kept in case it is cut off
ENDED = "turn.ended"


@dataclass(frozen=True)
class Heard:
    """What a follower has heard of the running turn: its text so far, should it be cut off."""

    text: str = ""


@dataclass(frozen=True)
class Batch:
    entries: tuple[Entry, ...]
    heard: Heard


def compute_batch(agent: AgentState, heard: Heard, records: Iterable[JournalRecord], policy: SupervisionSpec) -> Batch:
    """The entries for these records. Records that the ledger holds already give none."""
    entries: list[Entry] = []
    for record in records:
        heard = _hear(heard, record)
        if record.seq is None or record.seq <= agent.journal_seq:
            continue
        entries.append(_forward(agent, record, record.seq))
        if record.event == ENDED:
            entries += build_turn_end(agent, _parse_result(record), policy)
    return Batch(tuple(entries), heard)


def _parse_result(record: JournalRecord) -> TurnResult:
    """How the turn ended; a word that cannot be read still ends it, as failed."""
    try:
        return msgspec.convert(record.data, TurnResult)
    except msgspec.ValidationError as error:
        message = f"the sandbox's word on the turn's end cannot be read: {error}"
        said = TurnError(kind=ErrorKind.HARNESS, message=message)
        return TurnResult(turn=record.turn, turn_id=record.turn_id, state=TurnState.FAILED, error=said)


def _forward(agent: AgentState, record: JournalRecord, seq: int) -> Entry:
    # The end of a turn becomes an event of its own, text and all: its journal record need not hold them twice.
    data = {} if record.event == ENDED else record.data
    body = ev.HarnessEvent(type=record.event, turn=record.turn, incarnation=agent.incarnation, seq=seq, data=data)
    return entry(agent, f"journal/{agent.incarnation}/{seq}", body)


def _hear(heard: Heard, record: JournalRecord) -> Heard:
    match record.event:
        case "text.delta":
            return Heard((heard.text + _text(record.data))[-MAX_LIVE:])
        case "text.reset" | "turn.started":
            return Heard()
        case "message" if record.data.get("role") == "assistant":
            return replace(heard, text=_text(record.data) or heard.text)
        case _:
            return heard


def _text(data: Mapping[str, Any]) -> str:
    text = data.get("text")
    return text if isinstance(text, str) else ""
