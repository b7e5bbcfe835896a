"""How a turn ended → what the ledger records, once per turn."""

import pytest

from alineod.crd.swarm import SupervisionSpec
from alineod.domain import events as ev
from alineod.domain.causes import End, EndKind
from alineod.domain.events import Entry, LedgerState, Outcome
from alineod.domain.journal import compute_batch
from alineod.domain.state import Interruption
from alineod.domain.turn_ends import build_turn_end
from alineod.domain.turn_starts import build_preface
from alineod.wire.heard import Heard
from alineod.wire.turns import ErrorKind, JournalRecord, TurnError, TurnResult, TurnState
from tests.unit.domain.builders import build_ledger, running

POLICY = SupervisionSpec()


def _result(state: TurnState, **change: object) -> TurnResult:
    fields: dict[str, object] = {"turn": 1, "turn_id": "uid-a-1", "state": state, "text": "text"}
    return TurnResult(**(fields | change))  # type: ignore[arg-type]


def _settled(entries: tuple[Entry, ...]) -> ev.HandleSettled:
    (body,) = (entry.body for entry in entries if isinstance(entry.body, ev.HandleSettled))
    return body


@pytest.mark.behaviour("2.6", "3.1")
def test_a_clean_turn_settles_the_handle_with_its_text() -> None:
    entries = build_turn_end(running(), _result(TurnState.CLEAN), POLICY)
    settled = _settled(entries)
    assert (settled.outcome, settled.result, settled.turn) == (Outcome.SUCCESS, "text", 1)
    assert entries[-1].body == ev.AgentStateChanged(state=LedgerState.DONE, reason="TurnEnded")


@pytest.mark.behaviour("11.9")
def test_an_empty_answer_is_a_result_and_is_said_to_be_one() -> None:
    """Not the text of the turn before, and not nothing: the agent's message says what it is."""
    entries = build_turn_end(running(), _result(TurnState.CLEAN, text=""), POLICY)
    settled = _settled(entries)
    assert (settled.outcome, settled.result, settled.turn) == (Outcome.SUCCESS, "", 1)
    state = entries[-1].body
    assert isinstance(state, ev.AgentStateChanged)
    assert state.message == "the answer of the last turn is empty"


@pytest.mark.behaviour("3.14")
def test_the_next_prompt_begins_with_what_was_cut_off_and_which_tools_had_started() -> None:
    cut = Interruption(4, "Evicted", "the node was drained", ("bash", "read", "bash"))
    text = build_preface(cut)
    assert text == (
        "[Turn 4 was cut off (Evicted: the node was drained) and is not in this conversation. These tools had started "
        "and may have taken effect: bash (2 times), read.]"
    )


@pytest.mark.parametrize(
    ("kind", "reason", "own"),
    [(ErrorKind.HARNESS, "HarnessFailed", True), (ErrorKind.KILLED, "HarnessStopped", False)],
    ids=["by itself", "killed"],
)
def test_a_turn_in_which_the_harness_died_is_cut_off_and_by_whose_fault(
    kind: ErrorKind, reason: str, own: bool
) -> None:
    error = TurnError(kind=kind, message="Pi is gone")
    result = _result(TurnState.INTERRUPTED, error=error, tools=["bash"])
    cut = build_turn_end(running(), result, POLICY)[0].body
    assert isinstance(cut, ev.AgentTurnInterrupted)
    assert (cut.reason, cut.message, cut.own_fault, cut.outside) == (reason, "Pi is gone", own, False)
    assert (cut.text, cut.tools) == ("text", ["bash"])
    leaving = End(EndKind.DISRUPTION, "Deleted", "its pod is being deleted")
    cut = build_turn_end(running(), result, POLICY, leaving)[0].body
    assert isinstance(cut, ev.AgentTurnInterrupted)
    assert cut.reason == (reason if own else "Deleted")


@pytest.mark.behaviour("2.7")
@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        (ErrorKind.PROVIDER, Outcome.FAILED),
        (ErrorKind.TRUNCATED, Outcome.FAILED),
        (ErrorKind.TIMEOUT, Outcome.FAILED),
        (ErrorKind.ABORTED, Outcome.ABORTED),
    ],
)
def test_a_failed_turn_keeps_the_error_and_the_text(kind: ErrorKind, outcome: Outcome) -> None:
    error = TurnError(kind=kind, message="401: bad key")
    entries = build_turn_end(running(), _result(TurnState.FAILED, error=error), POLICY)
    settled = _settled(entries)
    assert (settled.outcome, settled.result, settled.error, settled.error_kind) == (
        outcome,
        "text",
        error.message,
        kind,
    )


@pytest.mark.parametrize("agent", [build_ledger(), running(), build_ledger(turn=None)])
def test_a_turn_that_is_not_running_ends_no_second_time(agent: object) -> None:
    assert not build_turn_end(agent, _result(TurnState.CLEAN, turn=7), POLICY)  # type: ignore[arg-type]


def test_however_a_turn_ends_its_end_has_one_identity() -> None:
    ids = {build_turn_end(running(), _result(state), POLICY)[0].id for state in TurnState}
    assert ids == {"uid-a/turn/1/end"}


def test_the_next_prompt_says_what_was_cut_off_and_what_had_started() -> None:
    text = build_preface(Interruption(1, "PodGone", "the pod is gone", ("bash",)))
    assert "Turn 1 was cut off" in text
    assert "bash" in text
    assert build_preface(None) == ""


def _record(seq: int | None, event: str, **data: object) -> JournalRecord:
    return JournalRecord(time=1.0, turn=1, turn_id="uid-a-1", event=event, data=data, seq=seq)


def test_the_journal_becomes_events_and_the_text_so_far_is_heard() -> None:
    records = [
        _record(1, "turn.started"),
        _record(None, "text.delta", text="half "),
        _record(None, "text.delta", text="a line"),
    ]
    batch = compute_batch(running(), Heard(), records, POLICY)
    assert [entry.id for entry in batch.entries] == ["uid-a/journal/1/1"]
    assert batch.heard.text == "half a line"
    assert compute_batch(running(), batch.heard, [_record(None, "text.reset")], POLICY).heard.text == ""


def test_records_that_the_ledger_holds_give_nothing() -> None:
    batch = compute_batch(running(journal_seq=5), Heard(), [_record(5, "message", text="x")], POLICY)
    assert batch.entries == ()


def test_the_end_in_the_journal_ends_the_turn_in_the_ledger() -> None:
    result = {"turn": 1, "turnId": "uid-a-1", "state": "clean", "text": "done"}
    batch = compute_batch(running(), Heard(), [_record(1, "turn.ended", **result)], POLICY)
    names = [ev.event_name(entry.body) for entry in batch.entries]
    assert names == ["harness.turn.ended", "agent.turn_ended", "handle.settled", "agent.state_changed"]
