"""From a bridge's journal to the ledger: which records are events, and what is heard of a turn meanwhile."""

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from alineod.crd.swarm import SupervisionSpec
from alineod.domain import events as ev
from alineod.domain.causes import End, EndKind
from alineod.domain.events import Entry
from alineod.domain.state import AgentState
from alineod.domain.turn_ends import build_interruption, build_turn_end, entry
from alineod.wire.heard import LONGEST_NAME, MOST_TOOLS, Heard, hear
from alineod.wire.turns import (
    ErrorKind,
    JournalEvent,
    JournalRecord,
    TurnError,
    TurnResult,
    TurnState,
    Usage,
)
from alineod.wire.usage import MOST_TOKENS

GAPS = (JournalEvent.DAMAGED, JournalEvent.LOST)  # records that say by themselves which numbers stand for nothing
LOST = End(
    EndKind.DISRUPTION,
    "JournalLost",
    "its journal in the sandbox is gone: what it did beyond what was heard is not known",
)


@dataclass(frozen=True)
class Batch:
    """`torn`: records are missing, and the end of the running turn may be one of them."""

    entries: tuple[Entry, ...]
    heard: Heard
    torn: bool = False


def compute_batch(
    agent: AgentState,
    heard: Heard,
    records: Iterable[JournalRecord],
    policy: SupervisionSpec,
    container_end: End | None = None,
) -> Batch:
    """The entries for these records. Records that the ledger holds already give none.

    `container_end`: how the container ended that the turn was begun in, if it did.
    """
    entries: list[Entry] = []
    end: tuple[Entry, ...] = ()
    last, torn = agent.journal_seq, False
    for record in records:
        if agent.turn is not None and record.turn == agent.turn.number:
            heard = hear(heard, record)
        if record.seq is None or record.seq <= last:
            continue
        if record.seq > last + 1 and record.event not in GAPS:
            entries.append(_build_gap(agent, last + 1, record.seq - 1))
            torn = True
        entries.append(_forward(agent, record, record.seq))
        last, torn = record.seq, torn or record.event == JournalEvent.DAMAGED
        if not end:
            end = _build_turn_end(agent, heard, record, policy, container_end)
            entries += end
    return Batch(tuple(entries), heard, torn and not end)


def _build_turn_end(
    agent: AgentState, heard: Heard, record: JournalRecord, policy: SupervisionSpec, container_end: End | None
) -> tuple[Entry, ...]:
    """The entries that end the running turn, if this record does."""
    if record.event == JournalEvent.TURN_ENDED:
        return build_turn_end(agent, _parse_result(record, heard), policy, container_end)
    if record.event == JournalEvent.LOST and agent.turn is not None and record.turn == agent.turn.number:
        return build_interruption(agent, policy, LOST, heard.remains)
    return ()


def _build_gap(agent: AgentState, first: int, last: int) -> Entry:
    """Numbers that the sandbox left out."""
    number = agent.turn.number if agent.turn else 0
    body = ev.HarnessEvent(
        type=JournalEvent.LOST, turn=number, incarnation=agent.incarnation, seq=last, data={"from": first, "to": last}
    )
    return entry(agent, f"journal/{agent.incarnation}/{last}", body)


def _parse_result(record: JournalRecord, heard: Heard) -> TurnResult:
    """How the turn ended; a word that cannot be read still ends it, as failed.

    What was used is what was heard, if that is more: killed attempts and lost records do not make it less.
    """
    try:
        result = msgspec.convert(record.data, TurnResult)
    except msgspec.ValidationError as error:
        message = f"the sandbox's word on the turn's end cannot be read: {error}"
        said = TurnError(kind=ErrorKind.HARNESS, message=message)
        result = TurnResult(turn=record.turn, turn_id=record.turn_id, state=TurnState.FAILED, error=said)
    text, tools = result.text, [name[:LONGEST_NAME] for name in result.tools[-MOST_TOOLS:]]
    if result.state is TurnState.INTERRUPTED:
        text, tools = text or heard.text, tools or list(heard.tools)
    usage = result.usage if _count(heard.usage) <= _count(result.usage) <= 2 * MOST_TOKENS else heard.usage
    return msgspec.structs.replace(result, turn=record.turn, text=text, tools=tools, usage=usage)


def _count(usage: Usage) -> int:
    return usage.input_tokens + usage.output_tokens


def _forward(agent: AgentState, record: JournalRecord, seq: int) -> Entry:
    # The end of a turn becomes an event of its own, text and all: its journal record need not hold them twice.
    data = {} if record.event == JournalEvent.TURN_ENDED else record.data
    body = ev.HarnessEvent(type=record.event, turn=record.turn, incarnation=agent.incarnation, seq=seq, data=data)
    return entry(agent, f"journal/{agent.incarnation}/{seq}", body)
