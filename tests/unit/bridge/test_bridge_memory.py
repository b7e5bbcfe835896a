"""What the bridge makes of its journal, and what it decides from that."""

from typing import Any

import pytest

from alineod.bridge.memory import (
    Answer,
    KnownTurn,
    Memory,
    Situation,
    build_end,
    build_interruption,
    build_start,
    compute_digest,
    decide_answer,
    is_untouched,
    needs_rewind,
    recall,
)
from alineod.wire.turns import (
    ErrorKind,
    JournalRecord,
    Session,
    TurnError,
    TurnRequest,
    TurnResult,
    TurnState,
    Usage,
)

SESSION = Session(id="s", leaf="l1", file="x.jsonl", bytes=10)


def record(seq: int, event: str, turn: int = 1, data: dict[str, Any] | None = None) -> JournalRecord:
    return JournalRecord(seq=seq, time=0.0, turn=turn, turn_id=f"id-{turn}", event=event, data=data or {})


def request(turn: int = 1, prompt: str = "do it", checkpoint: bool = False, heard: int = 0) -> TurnRequest:
    return TurnRequest(turn=turn, turn_id=f"id-{turn}", prompt=prompt, checkpoint=checkpoint, heard=heard)


def started(seq: int, turn: int = 1, checkpoint: bool = False) -> JournalRecord:
    return record(seq, "turn.started", turn, build_start(request(turn, checkpoint=checkpoint)))


def ended(
    seq: int, state: TurnState, turn: int = 1, kind: ErrorKind | None = None, settled: bool = True
) -> JournalRecord:
    error = TurnError(kind=kind, message="why") if kind else None
    session = SESSION if state is TurnState.CLEAN else None
    result = TurnResult(turn=turn, turn_id=f"id-{turn}", state=state, error=error, session=session)
    return record(seq, "turn.ended", turn, build_end(result, settled))


CLEAN = [started(1), ended(2, TurnState.CLEAN)]


def test_a_journal_is_recalled() -> None:
    memory = recall(
        [*CLEAN, started(3, turn=2, checkpoint=True), record(4, "message", 2, {"role": "assistant", "text": "hm"})]
    )
    assert memory.turns[1].state is TurnState.CLEAN
    assert memory.latest == KnownTurn(2, "id-2", compute_digest("do it"), True, seq=3)
    assert (memory.session, memory.anchor) == (SESSION, 1)
    assert memory.find("id-1") is memory.turns[1]
    assert memory.find("nobody") is None


def test_a_later_attempt_under_the_same_id_is_the_one_found() -> None:
    first = record(1, "turn.started", 1)
    second = JournalRecord(seq=2, time=0.0, turn=2, turn_id="id-1", event="turn.started")
    found = recall([first, second]).find("id-1")
    assert found is not None
    assert found.turn == 2


@pytest.mark.parametrize(
    ("events", "saved"),
    [
        ([started(1), ended(2, TurnState.CLEAN)], True),
        ([started(1, checkpoint=True), ended(2, TurnState.CLEAN)], False),
        ([started(1, checkpoint=True), ended(2, TurnState.FAILED, kind=ErrorKind.PROVIDER)], True),
        ([started(1, checkpoint=True), ended(2, TurnState.CLEAN), record(3, "checkpoint.cut")], True),
        ([started(1, checkpoint=True), ended(2, TurnState.CLEAN), record(3, "checkpoint.failed")], True),
    ],
)
def test_what_is_still_to_be_cut(events: list[JournalRecord], saved: bool) -> None:
    latest = recall(events).latest
    assert latest is not None
    assert latest.saved is saved


@pytest.mark.parametrize(
    ("last", "rewind", "untouched"),
    [
        (None, False, True),
        (ended(4, TurnState.CLEAN, 2), False, True),
        (ended(4, TurnState.FAILED, 2, ErrorKind.PROVIDER), False, False),
        (ended(4, TurnState.FAILED, 2, ErrorKind.TIMEOUT), False, False),
        (ended(4, TurnState.FAILED, 2, ErrorKind.TIMEOUT, settled=False), True, True),
        (ended(4, TurnState.FAILED, 2, ErrorKind.HARNESS, settled=False), True, True),
        (ended(4, TurnState.ABORTED, 2, ErrorKind.ABORTED), False, False),
        (ended(4, TurnState.INTERRUPTED, 2, ErrorKind.INTERRUPTED), True, True),
    ],
)
def test_when_the_conversation_goes_back(last: JournalRecord | None, rewind: bool, untouched: bool) -> None:
    memory = recall([*CLEAN, started(3, turn=2), last] if last else [])
    assert needs_rewind(memory) is rewind
    assert is_untouched(memory) is untouched


def test_an_end_that_cannot_be_read_is_a_failure() -> None:
    memory = recall([started(1), record(2, "turn.ended", 1, {"cut": "everything"})])
    assert memory.turns[1].state is TurnState.FAILED


RUNNING = recall([*CLEAN, started(3, turn=2)])
IDLE = recall(CLEAN)
LOST = recall([*CLEAN, record(9, "journal.lost", 2, {"session": {"id": "s", "leaf": "l1"}, "halfway": True})])
HERE, HERE_LOST = Situation(journal_seq=2), Situation(journal_seq=9)


@pytest.mark.parametrize(
    ("memory", "wanted", "now", "answer"),
    [
        (Memory(), request(1), Situation(), Answer.START),
        (IDLE, request(2), Situation(), Answer.START),
        (IDLE, request(7), Situation(), Answer.START),
        (RUNNING, request(2), Situation(running=True), Answer.KNOWN),
        (IDLE, request(1), Situation(draining=True, ready=False, gate_shut=True), Answer.KNOWN),
        (IDLE, request(1, prompt="other"), Situation(), Answer.OTHER_PROMPT),
        (IDLE, TurnRequest(turn=1, turn_id="x", prompt="do it"), Situation(), Answer.OTHER_TURN),
        (recall([started(1, turn=5)]), request(4), Situation(), Answer.STALE),
        (IDLE, request(2), Situation(draining=True, running=True), Answer.DRAINING),
        (RUNNING, request(3), Situation(running=True), Answer.BUSY),
        (IDLE, request(2), Situation(gate_shut=True), Answer.GATE_SHUT),
        (IDLE, request(2), Situation(ready=False), Answer.NOT_READY),
        (Memory(), request(1, heard=1), Situation(), Answer.JOURNAL_RESET),
        (Memory(), request(1, heard=1), Situation(ready=False), Answer.JOURNAL_RESET),
        (IDLE, request(2, heard=2), HERE, Answer.START),
        (IDLE, request(2, heard=3), HERE, Answer.JOURNAL_RESET),
        (IDLE, request(1, heard=1), HERE, Answer.KNOWN),
        (IDLE, request(1, heard=2), HERE, Answer.JOURNAL_RESET),
        (RUNNING, request(3, heard=9), Situation(running=True, journal_seq=3), Answer.BUSY),
        (RUNNING, request(2, heard=3), Situation(running=True, journal_seq=3), Answer.KNOWN),
        (LOST, request(2), HERE_LOST, Answer.JOURNAL_RESET),
        (LOST, request(2, prompt="other", heard=9), HERE_LOST, Answer.JOURNAL_RESET),
        (LOST, request(3, heard=9), HERE_LOST, Answer.START),
        (recall(CLEAN[1:]), request(1), HERE, Answer.KNOWN),
    ],
)
def test_answers(memory: Memory, wanted: TurnRequest, now: Situation, answer: Answer) -> None:
    assert decide_answer(memory, wanted, now) is answer


@pytest.mark.parametrize("halfway", [True, False])
def test_a_lost_turn_goes_back_where_its_record_says(halfway: bool) -> None:
    told = {"session": {"id": "s", "leaf": "l0"}, "halfway": halfway}
    memory = recall([*CLEAN, record(9, "journal.lost", 2, told)])
    assert memory.session == Session(id="s", leaf="l0")
    assert needs_rewind(memory) is halfway
    assert memory.anchor == 9


def test_an_interruption_says_what_survived() -> None:
    said = {"inputTokens": 10, "outputTokens": 2, "usd": "0.5"}
    events = [
        *CLEAN,
        started(3, turn=2),
        record(4, "message", 2, {"role": "assistant", "text": "let me see", "usage": said}),
        record(5, "tool.started", 2, {"name": "bash"}),
        record(6, "message", 2, {"role": "assistant", "text": "broken", "error": "500", "usage": said}),
        record(7, "message", 2, {"role": "assistant", "text": "", "usage": {"inputTokens": 1}}),
    ]
    known = recall(events).turns[2]
    result = build_interruption(known, events, "", "gone")
    assert result.state is TurnState.INTERRUPTED
    assert result.text == "let me see"
    assert result.tools == ["bash"]
    assert result.usage == Usage(input_tokens=21, output_tokens=4, usd=None)
    assert result.error == TurnError(kind=ErrorKind.INTERRUPTED, message="gone")
    assert build_interruption(known, events, "half a sen", "gone").text == "half a sen"


@pytest.mark.parametrize("usage", [{"inputTokens": "x"}, {"inputTokens": 1, "usd": "much"}, 7])
def test_a_usage_that_is_none_keeps_no_bridge_from_its_last_word(usage: object) -> None:
    events = [
        *CLEAN,
        started(3, turn=2),
        record(4, "message", 2, {"role": "assistant", "text": "so far", "usage": usage}),
    ]
    result = build_interruption(recall(events).turns[2], events, "", "gone")
    assert (result.text, result.usage.usd) == ("so far", None)
