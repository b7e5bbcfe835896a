"""Which news of the ledger are told as Events: under the reason of the condition, and as a warning where it is one."""

import pytest

from alineod.domain import events as ev
from alineod.domain.announce import compute_announcement
from alineod.domain.causes import End, EndKind
from alineod.domain.events import AnyBody, LedgerState, Outcome, Row, Rung
from alineod.domain.fold import fold
from alineod.domain.state import State
from alineod.domain.turn_ends import TOO_MANY_FAILURES, build_breaker, build_end
from alineod.wire.archives import Tried
from tests.unit.domain.builders import KEY, RUN, build_ledger

DAMAGED = Tried(turn=3, where="remote", error="its digest is another one")


def build_row(body: AnyBody) -> Row:
    return Row(seq=1, time=0.0, id="i", run=RUN, agent=KEY, body=body, prev="", hash="")


@pytest.mark.parametrize(
    ("body", "reason", "action", "warning", "words"),
    [
        (ev.AgentRestored(rung=Rung.REATTACH, incarnation=1, reason="the operator was restarted"),
         "Restored", "Reattach", False, "came back by Reattach: the operator was restarted"),
        (ev.AgentRestored(rung=Rung.RESUME, incarnation=1, reason="it was killed"),
         "Restored", "Resume", False, "came back by Resume: it was killed"),
        (ev.AgentRestored(rung=Rung.RESTORE, incarnation=2, reason="r", checkpoint_turn=4),
         "Restored", "Restore", False, "with its conversation up to turn 4"),
        (ev.AgentRestored(rung=Rung.RESTORE, incarnation=2, reason="r", checkpoint_turn=2, tried=[DAMAGED]),
         "Restored", "Restore", True, "the checkpoint of turn 3 could not be used: its digest is another one"),
        (ev.AgentRestored(rung=Rung.RESTORE, incarnation=2, reason="r", tried=[DAMAGED]),
         "Restored", "Restore", True, "came back by Restore, blank"),
        (ev.AgentEnded(outcome=Outcome.LOST, reason="RestoreFailed", message="3 sandboxes"),
         "RestoreFailed", "EndAgent", True, "3 sandboxes"),
        (ev.AgentEnded(outcome=Outcome.FAILED, reason="WaitFailed"), "WaitFailed", "EndAgent", True, "failed"),
        (ev.AgentEnded(outcome=Outcome.ABORTED, reason="Deleted"), "Deleted", "EndAgent", False, "aborted"),
        (ev.AgentReleased(reason="RestoreFailed", message="3 sandboxes"),
         "RestoreFailed", "Release", True, "keeps its outcome and is not brought back: 3 sandboxes"),
        (ev.AgentStateChanged(state=LedgerState.FAILED, reason="TriedAgain", message="it was lost before"),
         "TriedAgain", "TryAgain", False, "it was lost before"),
        (ev.AgentTurnInterrupted(turn=2, turn_id="t", reason="OOMKilled", message="too much"),
         "TurnInterrupted", "RecordTurn", True, "turn 2 was cut off (OOMKilled): too much"),
    ],
)  # fmt: skip
def test_what_is_told(body: AnyBody, reason: str, action: str, warning: bool, words: str) -> None:
    told = compute_announcement(build_row(body))
    assert told is not None
    assert (told.reason, told.action, told.warning) == (reason, action, warning)
    assert words in told.note


def test_who_is_held_or_lost_is_told_once_under_the_reason_in_its_condition() -> None:
    agent, end = build_ledger(), End(EndKind.OWN_FAULT, "OOMKilled", "too much")
    held = build_breaker(agent, "breaker/1", end, 3)
    lost = build_end(agent, Outcome.LOST, "RestoreFailed", "no sandbox came up", epoch=2)
    for entries, reason in ((held, TOO_MANY_FAILURES), (lost, "RestoreFailed")):
        rows = [build_row(entry.body) for entry in entries]
        told = [said for row in rows if (said := compute_announcement(row)) is not None]
        assert [(said.reason, said.warning) for said in told] == [(reason, True)]
        assert fold(State(agents={KEY: agent}), rows).agents[KEY].reason == reason


def test_what_nobody_would_ask_about_is_not_told() -> None:
    assert compute_announcement(build_row(ev.HandleSettled(outcome=Outcome.SUCCESS))) is None
    provisioning = ev.AgentStateChanged(state=LedgerState.PROVISIONING, reason="Provisioning")
    assert compute_announcement(build_row(provisioning)) is None
