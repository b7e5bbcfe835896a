"""What a bridge knows of its turns: a fold of the journal, and the decisions that rest on it. Pure."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import msgspec

from alineod.wire.heard import Heard, hear
from alineod.wire.turns import (
    BridgeReason,
    ErrorKind,
    JournalEvent,
    JournalRecord,
    Session,
    TurnAccepted,
    TurnError,
    TurnRequest,
    TurnResult,
    TurnState,
)


@dataclass(frozen=True)
class KnownTurn:
    """One turn as the journal has it.

    `saved`: nothing is to be done for its checkpoint: it was cut, or failed, or none was asked for. `halfway`: the
    harness did not settle, so that half a turn may stand in the stored conversation. `lost`: its records are gone, so
    that nobody can say whether it ran.
    """

    turn: int
    turn_id: str
    digest: str
    checkpoint: bool
    seq: int  # of its start in the journal
    state: TurnState = TurnState.RUNNING
    session: Session | None = None
    saved: bool = False
    halfway: bool = False
    ended: int = 0  # the number of its end in the journal
    lost: bool = False

    @property
    def accepted(self) -> TurnAccepted:
        return TurnAccepted(turn=self.turn, turn_id=self.turn_id, state=self.state)


@dataclass(frozen=True)
class Memory:
    """Every turn of this pod by number, and where the conversation stood after the last clean one.

    `anchor` is the journal number that clean turn began with: its segment must outlive the others.
    """

    turns: dict[int, KnownTurn] = field(default_factory=dict)
    latest: KnownTurn | None = None
    session: Session | None = None
    anchor: int = 0

    def find(self, turn_id: str) -> KnownTurn | None:
        """The latest attempt under a turn id."""
        return next((known for known in reversed(self.turns.values()) if known.turn_id == turn_id), None)


def compute_digest(prompt: str) -> str:
    return hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()


def build_start(request: TurnRequest) -> dict[str, Any]:
    """The data of `turn.started`. The prompt itself stands in the ledger already."""
    return {"promptSha256": compute_digest(request.prompt), "checkpoint": request.checkpoint}


def build_end(result: TurnResult, settled: bool) -> dict[str, Any]:
    """The data of `turn.ended`; beside the result, whether the harness had settled."""
    return {**msgspec.to_builtins(result), "settled": settled}


def recall(records: Iterable[JournalRecord]) -> Memory:
    """Fold a whole journal."""
    memory = Memory()
    for record in records:
        memory = remember(memory, record)
    return memory


def remember(memory: Memory, record: JournalRecord) -> Memory:
    """Fold in one record; those that are no turn's start or end change nothing."""
    known = memory.turns.get(record.turn)
    match record.event:
        case JournalEvent.TURN_STARTED:
            digest = str(record.data.get("promptSha256", ""))
            known = KnownTurn(record.turn, record.turn_id, digest, bool(record.data.get("checkpoint")), record.seq or 0)
        case JournalEvent.TURN_ENDED:
            known = known or KnownTurn(record.turn, record.turn_id, "", False, record.seq or 0)
            result = _parse_result(record)
            clean = result.state is TurnState.CLEAN
            known = replace(
                known,
                state=result.state,
                session=result.session,
                saved=not (clean and known.checkpoint),
                halfway=record.data.get("settled") is False,
                ended=record.seq or 0,
            )
            if clean:
                memory = replace(memory, session=result.session, anchor=known.seq)
        case JournalEvent.CHECKPOINT_CUT | JournalEvent.CHECKPOINT_FAILED if known is not None:
            known = replace(known, saved=True)
        case JournalEvent.LOST:
            known = KnownTurn(
                record.turn, record.turn_id, "", False, record.seq or 0, TurnState.INTERRUPTED,
                saved=True, halfway=record.data.get("halfway") is True, lost=True,
            )  # fmt: skip
            memory = replace(memory, session=_parse_session(record), anchor=known.seq)
        case _:
            return memory
    return replace(memory, turns={**memory.turns, record.turn: known}, latest=known)


def _parse_result(record: JournalRecord) -> TurnResult:
    try:
        return msgspec.convert(record.data, TurnResult)
    except msgspec.ValidationError as error:
        why = TurnError(kind=ErrorKind.HARNESS, message=f"the record of its end cannot be read: {error}")
        return TurnResult(turn=record.turn, turn_id=record.turn_id, state=TurnState.FAILED, error=why)


def _parse_session(record: JournalRecord) -> Session | None:
    try:
        return msgspec.convert(record.data.get("session"), Session | None)
    except msgspec.ValidationError:
        return None


class Answer(StrEnum):
    """What a request for a turn is answered with."""

    KNOWN = "Known"
    START = "Start"
    OTHER_PROMPT = BridgeReason.OTHER_PROMPT
    OTHER_TURN = BridgeReason.OTHER_TURN
    STALE = BridgeReason.STALE_TURN
    JOURNAL_RESET = BridgeReason.JOURNAL_RESET
    DRAINING = "Draining"
    NOT_READY = "NotReady"
    BUSY = "Busy"
    GATE_SHUT = "GateShut"


@dataclass(frozen=True)
class Situation:
    """How things stand when a request comes."""

    draining: bool = False
    ready: bool = True
    running: bool = False
    gate_shut: bool = False
    journal_seq: int = 0


def decide_answer(memory: Memory, request: TurnRequest, now: Situation) -> Answer:
    """A turn that is known is answered whatever else is so; a number is never given to a second turn."""
    known = memory.turns.get(request.turn)
    if known is not None:
        if known.turn_id != request.turn_id:
            return Answer.OTHER_TURN
        if is_reset(known, request, now.journal_seq):
            return Answer.JOURNAL_RESET
        same = known.digest in ("", compute_digest(request.prompt))
        return Answer.KNOWN if same else Answer.OTHER_PROMPT
    if memory.latest is not None and request.turn < memory.latest.turn:
        return Answer.STALE
    refusals = (
        (now.draining, Answer.DRAINING),
        (now.running, Answer.BUSY),
        (request.heard > now.journal_seq, Answer.JOURNAL_RESET),
        (now.gate_shut, Answer.GATE_SHUT),
        (not now.ready, Answer.NOT_READY),
    )
    return next((answer for applies, answer in refusals if applies), Answer.START)


def is_reset(known: KnownTurn, request: TurnRequest, journal_seq: int) -> bool:
    """Whether this journal is not the one that was heard.

    It is behind that; or who asks has read on past the number under which the turn ended here, and knows no end.
    """
    return known.lost or request.heard > journal_seq or 0 < known.ended <= request.heard


def needs_rewind(memory: Memory) -> bool:
    """Whether the stored conversation must go back to the last clean turn: it may hold half a turn."""
    latest = memory.latest
    if latest is None:
        return False
    # The record of a lost turn says itself whether the conversation must go back.
    return latest.halfway or (latest.state is TurnState.INTERRUPTED and not latest.lost)


def is_untouched(memory: Memory) -> bool:
    """Whether the conversation must be exactly where the last clean turn left it."""
    return memory.latest is None or memory.latest.state is TurnState.CLEAN or needs_rewind(memory)


def build_interruption(known: KnownTurn, records: Iterable[JournalRecord], partial: str, why: str) -> TurnResult:
    """The end of a turn that had none; `partial` is what there was of the message that was being written."""
    heard = Heard()
    for record in records:
        if record.turn == known.turn:
            heard = hear(heard, record)
    return TurnResult(
        turn=known.turn,
        turn_id=known.turn_id,
        state=TurnState.INTERRUPTED,
        text=partial or heard.text,
        error=TurnError(kind=ErrorKind.INTERRUPTED, message=why),
        usage=heard.usage,
        tools=list(heard.tools),
    )
