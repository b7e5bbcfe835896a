"""What a sandbox journals → what of it becomes an event."""

from collections.abc import Sequence

import pytest

from alineod.crd.swarm import SupervisionSpec
from alineod.domain import events as ev
from alineod.domain.events import Entry
from alineod.domain.journal import Heard, compute_batch
from alineod.ledger.records import prepare_entries
from alineod.wire.turns import JournalRecord
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


def test_a_journal_that_is_read_again_gives_the_same_events() -> None:
    """As after an outage: whatever was not acknowledged is read again, and has the same ids."""
    records = [record(name, seq) for seq, name in enumerate(NAMES, 1)]
    first, again = (compute_batch(running(), Heard(), records, POLICY).entries for _ in range(2))
    assert first == again
