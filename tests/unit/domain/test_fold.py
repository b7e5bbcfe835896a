"""The fold: what each event makes of an agent, and that any history folds, in any portions."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alineod.domain import events as ev
from alineod.domain.events import AnyBody, LedgerState, Outcome, Row, Rung
from alineod.domain.fold import MAX_SETBACKS, fold
from alineod.domain.kept import KEPT_CHECKPOINTS
from alineod.domain.state import AgentState, Handle, State
from alineod.domain.turn_starts import build_preface
from alineod.wire.turns import ErrorKind, Session, TurnError, TurnState, Usage
from alineod.wire.usage import add_usage
from tests.unit.domain.rows import ROWS

RUN, AGENT = "default/survey", "default/survey-lead"
SPAWNED = ev.AgentSpawned(uid="u1", alias="lead", spec={"prompt": "Plan."})
PROVISIONED = ev.AgentProvisioned(pod="survey-lead-1", uid="p1", incarnation=1)
STARTED = ev.AgentTurnStarted(turn=1, turn_id="t1", prompt="Plan.", incarnation=1)
ENDED = ev.AgentTurnEnded(turn=1, turn_id="t1", text="Done.", usage=Usage(input_tokens=5, output_tokens=2, usd="0.10"))
FAILED = ev.AgentTurnFailed(
    turn=1, turn_id="t1", error=TurnError(kind=ErrorKind.PROVIDER, message="overloaded"), text="So far"
)
INTERRUPTED = ev.AgentTurnInterrupted(turn=1, turn_id="t1", reason="PodGone", message="gone", text="So", tools=["bash"])


def build_rows(*bodies: AnyBody, after: int = 0) -> list[Row]:
    return [
        Row(seq=seq, time=float(seq), id=str(seq), run=RUN, agent=AGENT, body=body, prev="", hash="")
        for seq, body in enumerate(bodies, start=after + 1)
    ]


def fold_agent(*bodies: AnyBody) -> AgentState:
    return fold(State(), build_rows(SPAWNED, *bodies)).agents[AGENT]


def build_checkpoint(turn: int, incarnation: int = 1, **change: object) -> ev.AgentCheckpointed:
    values = {"snapshot_ref": f"{turn}.tar.zst", "sha256": f"{turn}", "bytes": turn, **change}
    return ev.AgentCheckpointed(turn=turn, incarnation=incarnation, **values)  # type: ignore[arg-type]


@given(ROWS, st.integers(0, 25))
def test_a_history_folds_the_same_in_portions(rows: list[Row], cut: int) -> None:
    whole = fold(State(), rows)
    assert fold(fold(State(), rows[:cut]), rows[cut:]) == whole
    step_by_step = State()
    for row in rows:
        step_by_step = fold(step_by_step, [row])
    assert step_by_step == whole
    assert whole.seq == len(rows)


@given(ROWS, ROWS)
def test_a_fold_leaves_the_state_before_it_alone(rows: list[Row], more: list[Row]) -> None:
    before = fold(State(), rows)
    copy = State(dict(before.runs), dict(before.agents), before.seq)
    fold(before, more)
    assert before == copy


@pytest.mark.behaviour("11.10")
@given(ROWS)
def test_usage_never_goes_down(rows: list[Row]) -> None:
    state, tokens, money = State(), dict[str, int](), dict[str, Decimal]()
    for row in rows:
        state = fold(state, [row])
        if isinstance(row.body, ev.AgentSpawned) and not row.body.adopted:
            tokens, money = {}, {}
        for key, agent in state.agents.items():
            total = agent.usage.input_tokens + agent.usage.output_tokens
            assert total >= tokens.get(key, 0)
            tokens[key] = total
            if agent.usage.usd is not None:
                assert Decimal(agent.usage.usd) >= money.get(key, Decimal(0))
                money[key] = Decimal(agent.usage.usd)


@pytest.mark.parametrize(
    ("one", "other", "usd"),
    [
        (Usage(), Usage(input_tokens=1, usd="0.1"), "0.1"),
        (Usage(input_tokens=1, usd="0.1"), Usage(input_tokens=1, usd="0.20"), "0.30"),
        (Usage(input_tokens=1, usd="0.1"), Usage(input_tokens=1), None),
        (Usage(input_tokens=1), Usage(input_tokens=1, usd="0.1"), None),
        (Usage(input_tokens=1), Usage(input_tokens=1), None),
        (Usage(), Usage(), None),
        (Usage(usd="1"), Usage(), "1"),
        *((Usage(usd="1"), Usage(usd=odd), None) for odd in ("", "free", "NaN", "-1", "Infinity", "1e999999")),
    ],
)
def test_money_is_known_only_if_all_of_it_is(one: Usage, other: Usage, usd: str | None) -> None:
    assert add_usage(one, other).usd == usd


def test_a_turn_that_ends_well() -> None:
    agent = fold_agent(PROVISIONED, STARTED)
    assert (agent.state, agent.turn_running, agent.incarnation) == (LedgerState.RUNNING, True, 1)
    agent = fold_agent(PROVISIONED, STARTED, ENDED, ev.HandleSettled(outcome=Outcome.SUCCESS, turn=1, result="Done."))
    assert agent.turn is not None
    assert (agent.turn.state, agent.turn.text, agent.turn.started_at, agent.turn.ended_at) == (
        TurnState.CLEAN, "Done.", 3.0, 4.0,
    )  # fmt: skip
    assert (agent.last_clean_turn, agent.usage.output_tokens, agent.usage.usd) == (1, 2, "0.10")
    assert agent.handle == Handle(True, Outcome.SUCCESS, 1, "Done.")
    assert agent.outcome is Outcome.SUCCESS


def test_a_new_turn_makes_the_handle_pending_again() -> None:
    settled = ev.HandleSettled(outcome=Outcome.SUCCESS, turn=1, result="Done.")
    again = ev.AgentTurnStarted(turn=2, turn_id="t2", prompt="More.", incarnation=1)
    assert fold_agent(PROVISIONED, STARTED, ENDED, settled, again).handle == Handle()


@pytest.mark.parametrize(
    ("end", "state", "failures"),
    [
        (FAILED, TurnState.FAILED, 1),
        (INTERRUPTED, TurnState.INTERRUPTED, 0),
        (
            ev.AgentTurnFailed(turn=1, turn_id="t1", error=TurnError(kind=ErrorKind.ABORTED, message="stopped")),
            TurnState.ABORTED, 1,
        ),
    ],
)  # fmt: skip
def test_a_turn_that_does_not_end_well(end: AnyBody, state: TurnState, failures: int) -> None:
    agent = fold_agent(PROVISIONED, STARTED, end)
    assert agent.turn is not None
    assert (agent.turn.state, agent.failures, agent.last_clean_turn) == (state, failures, None)


def test_an_interruption_stands_until_the_next_clean_turn() -> None:
    agent = fold_agent(PROVISIONED, STARTED, INTERRUPTED)
    assert agent.interruption is not None
    assert (agent.interruption.turn, agent.interruption.tools) == (1, ("bash",))
    second = ev.AgentTurnStarted(turn=2, turn_id="t2", prompt="Again.", incarnation=1)
    assert fold_agent(PROVISIONED, STARTED, INTERRUPTED, second).interruption is not None
    ended = ev.AgentTurnEnded(turn=2, turn_id="t2", text="Done.")
    assert fold_agent(PROVISIONED, STARTED, INTERRUPTED, second, ended).interruption is None


def test_the_end_of_another_turn_leaves_the_running_one_alone() -> None:
    late = ev.AgentTurnEnded(turn=7, turn_id="t7", text="?")
    assert fold_agent(PROVISIONED, STARTED, late).turn_running


def test_the_journal_counts_anew_with_each_incarnation() -> None:
    heard = [ev.HarnessEvent(type="message", turn=1, incarnation=1, seq=seq) for seq in (1, 2, 5, 3)]
    assert fold_agent(PROVISIONED, *heard).journal_seq == 5
    second = ev.AgentProvisioned(pod="survey-lead-2", uid="p2", incarnation=2, rung=Rung.RESTORE)
    agent = fold_agent(PROVISIONED, *heard, second, heard[0])
    assert (agent.journal_seq, agent.incarnation) == (0, 2)


def test_checkpoints_are_kept_in_order_each_once() -> None:
    session = Session(id="s", leaf="l")
    failed = build_checkpoint(2, upload_error="away", session=session)
    agent = fold_agent(build_checkpoint(3), failed, build_checkpoint(1, remote_ref="k1"))
    assert [c.turn for c in agent.checkpoints] == [1, 2, 3]
    assert agent.checkpoints[1].upload_error == "away"
    uploaded = ev.AgentCheckpointUploaded(turn=2, incarnation=1, remote_ref="k2")
    agent = fold_agent(build_checkpoint(3), failed, uploaded)
    assert (agent.checkpoints[0].remote_ref, agent.checkpoints[0].upload_error) == ("k2", None)
    assert agent.checkpoints[0].session == session
    assert fold_agent(build_checkpoint(2), failed).checkpoints[0].upload_error == "away"
    many = [build_checkpoint(turn) for turn in range(1, 30)]
    assert [c.turn for c in fold_agent(*many).checkpoints] == list(range(30 - KEPT_CHECKPOINTS, 30))


@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        (Outcome.ABORTED, LedgerState.ABORTED),
        (Outcome.LOST, LedgerState.LOST),
        (Outcome.FAILED, LedgerState.FAILED),
        (Outcome.BUDGET_EXCEEDED, LedgerState.FAILED),
    ],
)
def test_ends(outcome: Outcome, state: LedgerState) -> None:
    agent = fold_agent(PROVISIONED, ev.AgentEnded(outcome=outcome, reason="Stopped", message="by a person"))
    assert (agent.state, agent.outcome, agent.closed, agent.message) == (state, outcome, True, "by a person")


def test_released() -> None:
    agent = fold_agent(PROVISIONED, ev.AgentReleased(reason="SandboxGone"))
    assert (agent.released, agent.pod, agent.outcome) == (True, None, None)


def test_the_inbox() -> None:
    queued = [ev.InboxQueued(id=name, kind="prompt", text=name) for name in "abc"]
    assert [m.id for m in fold_agent(*queued).inbox] == ["a", "b", "c"]
    taken = [ev.InboxDelivered(ids=["a", "x"], turn=1), ev.InboxDropped(ids=["c"], reason="Gone")]
    assert [m.id for m in fold_agent(*queued, *taken).inbox] == ["b"]


def test_the_same_agent_brought_over_keeps_its_history() -> None:
    adopted = ev.AgentSpawned(uid="u2", alias="lead", spec={"prompt": "Other."}, adopted=True)
    agent = fold_agent(PROVISIONED, STARTED, ENDED, adopted)
    assert (agent.uid, agent.last_clean_turn, agent.spec) == ("u2", 1, {"prompt": "Other."})


def test_another_agent_of_the_same_name_begins_anew_and_counts_on() -> None:
    agent = fold_agent(PROVISIONED, STARTED, ENDED, ev.AgentSpawned(uid="u2", alias="lead"))
    assert (agent.uid, agent.turn, agent.checkpoints, agent.incarnation) == ("u2", None, (), 1)


def test_runs() -> None:
    started = ev.RunStarted(uid="r1", cluster_uid="c1", instance="default", deletion_policy="Delete")
    state = fold(State(), build_rows(started))
    assert (state.runs[RUN].uid, state.runs[RUN].deletion_policy, state.runs[RUN].deleted) == ("r1", "Delete", False)
    state = fold(state, build_rows(ev.RunDeleted(uid="r1", reason="Gone"), after=1))
    assert state.runs[RUN].deleted
    over = ev.RunStarted(uid="r2", cluster_uid="c2", instance="default", adopted=True)
    state = fold(state, build_rows(over, after=2))
    assert (state.runs[RUN].uid, state.runs[RUN].deleted, state.runs[RUN].started_at) == ("r2", False, 1.0)


def test_an_event_of_an_agent_nobody_spawned_is_passed_over() -> None:
    assert fold(State(), build_rows(STARTED, ENDED)) == State(seq=2)


def test_a_run_knows_its_newest_event_and_no_event_before_its_start() -> None:
    started = ev.RunStarted(uid="r1", cluster_uid="c1", instance="default")
    rows = build_rows(SPAWNED, started, PROVISIONED, STARTED)
    assert fold(State(), rows[:1]).runs == {}
    assert [fold(State(), rows[:count]).runs[RUN].seq for count in (2, 3, 4)] == [2, 3, 4]
    other = [Row(seq=5, time=5.0, id="5", run="default/other", agent=None, body=started, prev="", hash="")]
    assert {run.key: run.seq for run in fold(State(), rows + other).runs.values()} == {RUN: 4, "default/other": 5}


def test_what_was_cut_off_before_a_clean_turn_was_lost_is_not_forgotten() -> None:
    second = ev.AgentTurnStarted(turn=2, turn_id="t2", prompt="More.", incarnation=1)
    cut = ev.AgentTurnInterrupted(turn=2, turn_id="t2", reason="PodGone", message="gone", tools=["bash"])
    blank = ev.AgentRestored(rung=Rung.RESTORE, incarnation=2, reason="gone")
    again = ev.AgentProvisioned(pod="survey-lead-2", uid="p2", incarnation=2, rung=Rung.RESTORE)
    agent = fold_agent(PROVISIONED, STARTED, ENDED, second, cut, again, blank)
    assert agent.interruption is not None
    assert (agent.interruption.turn, agent.interruption.reason) == (1, "CleanTurnLost")
    assert agent.interruption.before is not None
    assert (agent.interruption.before.turn, agent.interruption.before.tools) == (2, ("bash",))
    prompt = build_preface(agent.interruption)
    assert "Turn 2 was cut off" in prompt
    assert "bash" in prompt
    assert "Turn 1 and what it did to files is not here any more" in prompt


def test_a_failed_turn_that_is_not_in_what_came_back_is_told_at_the_head_of_the_next_prompt() -> None:
    second = ev.AgentTurnStarted(turn=2, turn_id="t2", prompt="More.", incarnation=1)
    error = TurnError(kind=ErrorKind.TIMEOUT, message="it ran too long")
    failed = ev.AgentTurnFailed(turn=2, turn_id="t2", error=error)
    back = ev.AgentRestored(rung=Rung.RESTORE, incarnation=2, reason="gone", checkpoint_turn=1)
    again = ev.AgentProvisioned(pod="survey-lead-2", uid="p2", incarnation=2, rung=Rung.RESTORE)
    agent = fold_agent(PROVISIONED, STARTED, ENDED, second, failed, again, back)
    assert agent.interruption is not None
    assert (agent.interruption.reason, agent.interruption.before, agent.last_clean_turn) == ("FailedTurnLost", None, 1)
    prompt = build_preface(agent.interruption)
    assert prompt == "[Turn 2 and what it did to files is not here any more: it had failed: it ran too long.]"
    resumed = ev.AgentRestored(rung=Rung.RESUME, incarnation=1, reason="killed")
    assert fold_agent(PROVISIONED, STARTED, ENDED, second, failed, resumed).interruption is None


def test_only_the_newest_setbacks_are_told() -> None:
    bodies: list[AnyBody] = [PROVISIONED]
    for turn in range(1, 30):
        bodies.append(ev.AgentTurnStarted(turn=turn, turn_id=f"t{turn}", prompt="Go.", incarnation=1))
        bodies.append(ev.AgentTurnInterrupted(turn=turn, turn_id=f"t{turn}", reason="PodGone", message="gone"))
    cut, turns = fold_agent(*bodies).interruption, []
    while cut is not None:
        turns.append(cut.turn)
        cut = cut.before
    assert turns == list(range(29, 29 - MAX_SETBACKS, -1))


@pytest.mark.parametrize("kind", ["prompt", "notice"])
def test_a_prompt_ends_the_count_of_what_failed(kind: str) -> None:
    failed = ev.AgentProvisioned(pod="survey-lead-2", uid="p2", incarnation=2, rung=Rung.RESTORE, own_fault=True)
    blocked = ev.AgentStateChanged(state=LedgerState.BLOCKED, reason="TooManyFailures")
    cut = ev.AgentTurnInterrupted(turn=1, turn_id="t1", reason="OOMKilled", message="memory", own_fault=True)
    agent = fold_agent(PROVISIONED, STARTED, cut, failed, blocked, ev.InboxQueued(id="m", kind=kind, text="Go on."))
    assert (agent.failures, agent.sandbox_faults) == ((0, 0) if kind == "prompt" else (1, 1))


def test_no_turn_begins_for_an_agent_that_has_ended() -> None:
    ended = ev.AgentEnded(outcome=Outcome.ABORTED, reason="Deleted")
    agent = fold_agent(PROVISIONED, ended, STARTED)
    assert (agent.closed, agent.turn, agent.state) == (True, None, LedgerState.ABORTED)
