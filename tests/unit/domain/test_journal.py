"""What a sandbox journals → what of it becomes an event."""

from collections.abc import Sequence

import pytest

from alineod.crd.swarm import SupervisionSpec
from alineod.domain import events as ev
from alineod.domain.events import Entry
from alineod.domain.journal import Heard, compute_batch
from alineod.ledger.records import prepare_entries
from alineod.wire.turns import JournalRecord, Usage
from tests.unit.domain.builders import running

POLICY = SupervisionSpec()
NAMES = (
    "turn.started", "tool.started", "tool.ended", "compaction.started", "compaction.ended", "retry.started",
    "retry.ended", "permission.refused", "message",
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
        ([record("text.delta", None, text="void"), record("text.reset", None)], ""),
        ([record("message", 1, role="assistant", text=7)], ""),
    ],
)
def test_what_survives_is_the_text_being_written_or_else_the_last(records: list[JournalRecord], text: str) -> None:
    assert compute_batch(running(), Heard(), records, POLICY).heard.text == text


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


def test_a_journal_that_is_read_again_gives_the_same_events() -> None:
    """As after an outage: whatever was not acknowledged is read again, and has the same ids."""
    records = [record(name, seq) for seq, name in enumerate(NAMES, 1)]
    first, again = (compute_batch(running(), Heard(), records, POLICY).entries for _ in range(2))
    assert first == again
