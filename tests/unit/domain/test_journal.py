"""What a sandbox journals → what of it becomes an event."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from alineod.crd.swarm import SupervisionSpec
from alineod.domain import events as ev
from alineod.domain.events import Entry
from alineod.domain.journal import compute_batch
from alineod.ledger.records import prepare_entries
from alineod.wire.heard import Heard
from alineod.wire.turns import JournalRecord, Usage
from tests.unit.domain.builders import running

POLICY = SupervisionSpec()
NAMES = (
    "turn.started", "tool.started", "tool.ended", "compaction", "retry", "permission.refused", "message",
)  # fmt: skip


def record(event: str, seq: int | None, **data: object) -> JournalRecord:
    return JournalRecord(time=0.0, turn=1, turn_id="uid-a-1", event=event, data=data, seq=seq)


def forwarded(entries: Sequence[Entry]) -> list[str]:
    return [entry.body.type for entry in entries if isinstance(entry.body, ev.HarnessEvent)]


@pytest.mark.behaviour("8.2")
def test_events_of_the_harness_are_kept_under_their_names_and_deltas_are_not() -> None:
    records = [record(name, seq) for seq, name in enumerate(NAMES, 1)]
    deltas = [record("text.delta", None, text="par"), record("text.reset", None), record("text.delta", None, text="t")]
    batch = compute_batch(running(), Heard(), [*records, *deltas], POLICY)
    assert forwarded(batch.entries) == list(NAMES)
    assert [prepared.event for prepared in prepare_entries(batch.entries)] == [f"harness.{name}" for name in NAMES]
    assert batch.heard.text == "t"


def message(seq: int, text: str, **data: object) -> JournalRecord:
    usage = {"inputTokens": 10, "outputTokens": 1, "usd": "0.5"}
    return record("message", seq, role="assistant", text=text, usage=usage, **data)


@pytest.mark.parametrize(
    ("records", "text"),
    [
        ([message(1, "whole")], "whole"),
        ([message(1, "whole"), record("text.delta", None, text="ha"), record("text.delta", None, text="lf")], "half"),
        ([message(1, "whole"), message(2, "")], "whole"),
        ([message(1, "whole"), message(2, "bad", error="overloaded")], "bad"),
        ([message(1, "whole"), message(2, "bad", error="overloaded"), record("text.reset", None)], "whole"),
        # Who reads a journal again hears nothing of a reset, but for the retry's beginning.
        ([message(1, "whole"), message(2, "bad", error="overloaded"), record("retry", 3, phase="started")], "whole"),
        ([message(1, "whole"), message(2, "bad", error="overloaded"), record("retry", 3, phase="ended")], "bad"),
        ([record("text.delta", None, text="void"), record("text.reset", None)], ""),
        ([record("message", 1, role="assistant", text=7)], ""),
    ],
)
def test_what_survives_is_the_text_being_written_or_else_the_last(records: list[JournalRecord], text: str) -> None:
    assert compute_batch(running(), Heard(), records, POLICY).heard.text == text


def test_a_silence_lasts_until_something_is_heard() -> None:
    silence = record("silence", 2, seconds=20.0, since="tool.started")
    heard = compute_batch(running(), Heard(), [message(1, "a"), silence], POLICY).heard
    assert heard.silence == "nothing was heard for 20.0 s, since tool.started"
    for next_one in (record("tool.ended", 3), record("text.delta", None, text="b")):
        assert compute_batch(running(), heard, [next_one], POLICY).heard.silence == ""


def test_tools_and_usage_of_the_turn_are_heard_once_however_often_they_are_read() -> None:
    records = [record("tool.started", 1, name="bash"), message(2, "a"), record("tool.started", 3, name="read")]
    other = [JournalRecord(time=0.0, turn=7, turn_id="x", event="tool.started", data={"name": "rm"}, seq=4)]
    heard = compute_batch(running(), Heard(), [*records, *other], POLICY).heard
    heard = compute_batch(running(), heard, [*records, message(5, "b")], POLICY).heard
    assert heard.tools == ("bash", "read")
    assert heard.usage == Usage(input_tokens=20, output_tokens=2, usd="1.0")


@pytest.mark.parametrize("usage", ["much", {"inputTokens": "7"}, {"outputTokens": 10**30}, {"usd": 1}, [], None])
def test_usage_that_is_none_counts_as_none(usage: object) -> None:
    said = record("message", 1, role="assistant", text="t", usage=usage)
    assert compute_batch(running(), Heard(), [said], POLICY).heard.usage == Usage()


def names(entries: Sequence[Entry]) -> list[str]:
    return [e.body.type if isinstance(e.body, ev.HarnessEvent) else type(e.body).__name__ for e in entries]


def ended(seq: int, state: str = "clean", **data: object) -> JournalRecord:
    return record("turn.ended", seq, turn=1, turnId="uid-a-1", state=state, **data)


CUT = ["AgentTurnInterrupted", "HandleSettled", "AgentStateChanged"]
CLEAN = ["AgentTurnEnded", "HandleSettled", "AgentStateChanged"]


@pytest.mark.behaviour("3.18")
@pytest.mark.parametrize(
    ("records", "events", "torn"),
    [
        ([message(1, "a"), message(2, "b")], ["message", "message"], False),
        ([message(1, "a"), message(5, "b")], ["message", "journal.lost", "message"], True),
        (
            [message(1, "a"), message(5, "b"), message(3, "c"), message(5, "d")],
            ["message", "journal.lost", "message"],
            True,
        ),
        ([record("journal.damaged", 4, **{"from": 1, "to": 4}), message(5, "b")], ["journal.damaged", "message"], True),
        ([record("journal.damaged", 4), ended(5)], ["journal.damaged", "turn.ended", *CLEAN], False),
        ([message(1, "a"), record("journal.lost", 9)], ["message", "journal.lost", *CUT], False),
        ([record("journal.lost", 9), ended(10)], ["journal.lost", *CUT, "turn.ended"], False),
        ([ended(1), ended(2)], ["turn.ended", *CLEAN, "turn.ended"], False),
    ],
)
def test_what_is_missing_in_a_journal_is_said_once(records: list[JournalRecord], events: list[str], torn: bool) -> None:
    batch = compute_batch(running(), Heard(), records, POLICY)
    assert (names(batch.entries), batch.torn) == (events, torn)
    assert len({entry.id for entry in batch.entries}) == len(batch.entries)


@pytest.mark.behaviour("3.18")
def test_a_turn_whose_journal_is_lost_is_cut_with_what_was_heard_of_it() -> None:
    heard = Heard("half a", ("bash",), Usage(input_tokens=7), seq=3)
    lost = record("journal.lost", 9, **{"from": 4, "to": 8})
    cut = compute_batch(replace(running(), journal_seq=3), heard, [lost], POLICY).entries[1].body
    assert isinstance(cut, ev.AgentTurnInterrupted)
    assert (cut.reason, cut.text, cut.tools, cut.usage.input_tokens) == ("JournalLost", "half a", ["bash"], 7)


def test_the_loss_of_another_turn_s_journal_is_only_noted() -> None:
    lost = JournalRecord(time=0.0, turn=7, turn_id="x", event="journal.lost", seq=9)
    assert names(compute_batch(running(), Heard(), [lost], POLICY).entries) == ["journal.lost"]


@pytest.mark.behaviour("11.10")
@pytest.mark.parametrize(
    ("usage", "tokens"),
    [({"inputTokens": 30}, 30), ({"inputTokens": 1}, 11), ({"inputTokens": 10**40}, 11), ({}, 11)],
)
def test_what_a_turn_used_is_at_least_what_was_heard(usage: dict[str, int], tokens: int) -> None:
    end = compute_batch(running(), Heard(), [message(1, "a"), ended(2, usage=usage)], POLICY).entries[2].body
    assert isinstance(end, ev.AgentTurnEnded)
    assert end.usage.input_tokens + end.usage.output_tokens == tokens


@pytest.mark.parametrize(
    "data", [{"turn": 9}, {"state": "weird"}, {"tools": 3}, {"usage": {"inputTokens": 10**40}}, {"text": None}]
)
def test_whatever_a_sandbox_says_at_the_end_ends_its_turn(data: dict[str, object]) -> None:
    said = {"turn": 1, "turnId": "uid-a-1", "state": "clean"} | data
    batch = compute_batch(running(), Heard(), [record("turn.ended", 1, **said)], POLICY)
    assert names(batch.entries)[1] in ("AgentTurnEnded", "AgentTurnFailed")
    prepare_entries(batch.entries)


def test_a_journal_that_is_read_again_gives_the_same_events() -> None:
    """As after an outage: whatever was not acknowledged is read again, and has the same ids."""
    records = [record(name, seq) for seq, name in enumerate(NAMES, 1)]
    first, again = (compute_batch(running(), Heard(), records, POLICY).entries for _ in range(2))
    assert first == again
