"""Which checkpoints count after an agent came back from one of them, and what is said of a turn that is lost."""

import pytest

from alineod.domain import events as ev
from alineod.domain.events import AnyBody, Rung
from alineod.domain.kept import KEPT_CHECKPOINTS, MAX_ASIDE, Verdict, judge_report
from alineod.domain.state import AgentState
from alineod.wire.archives import Tried
from tests.unit.domain.test_fold import ENDED, FAILED, INTERRUPTED, PROVISIONED, STARTED, build_checkpoint, fold_agent


def build_saved(turn: int, incarnation: int = 1) -> AnyBody:
    return build_checkpoint(turn, incarnation, remote_ref=f"k{turn}-{incarnation}")


def build_restored(turn: int | None, incarnation: int = 2, rung: Rung = Rung.RESTORE, **more: object) -> AnyBody:
    return ev.AgentRestored(rung=rung, incarnation=incarnation, reason="gone", checkpoint_turn=turn, **more)  # type: ignore[arg-type]


def read_turns(agent: AgentState) -> tuple[list[int], list[int]]:
    """The turns of those that count, and of those set aside."""
    return [c.turn for c in agent.checkpoints], [one.checkpoint.turn for one in agent.set_aside]


THREE = (build_saved(1), build_saved(2), build_saved(3))


@pytest.mark.behaviour("4.16")
@pytest.mark.parametrize(
    ("why", "events", "kept", "aside"),
    [
        ("the newest served", [build_restored(3)], [1, 2, 3], []),
        ("an older one served", [build_restored(1)], [1], [2, 3]),
        ("none served", [build_restored(None)], [], [1, 2, 3]),
        ("nothing was restored", [build_restored(None, 1, Rung.REATTACH)], [1, 2, 3], []),
        ("the container was restarted", [build_restored(None, 1, Rung.RESUME)], [1, 2, 3], []),
        ("one not uploaded went with its pod", [build_checkpoint(4), build_restored(3)], [1, 2, 3], []),
        ("later ones count", [build_restored(1), build_saved(4, 2)], [1, 4], [2, 3]),
        ("again, from the later one", [build_restored(1), build_saved(4, 2), build_restored(4, 3)], [1, 4], [2, 3]),
        ("one of the pod itself is its own", [build_saved(4, 2), build_restored(1)], [1, 4], [2, 3]),
        ("one set aside served after all", [build_restored(None), build_restored(2, 3)], [2], [1, 3]),
    ],
)
def test_what_an_agent_leaves_behind(why: str, events: list[AnyBody], kept: list[int], aside: list[int]) -> None:
    assert read_turns(fold_agent(*THREE, *events)) == (kept, aside), why


def test_what_was_left_behind_has_the_time_of_the_restore() -> None:
    agent = fold_agent(*THREE, build_restored(2), build_restored(1, 3))
    assert [(one.checkpoint.turn, one.since) for one in agent.set_aside] == [(2, 6.0), (3, 5.0)]


def test_uploads_that_fail_push_none_out_that_is_in_the_bucket() -> None:
    waiting = [build_checkpoint(turn, upload_error="away") for turn in range(4, 40)]
    agent = fold_agent(*THREE, *waiting)
    assert [c.turn for c in agent.checkpoints if c.remote_ref] == [1, 2, 3]
    assert len(agent.checkpoints) == 3 + KEPT_CHECKPOINTS
    uploaded = ev.AgentCheckpointUploaded(turn=39, incarnation=1, remote_ref="k39")
    assert [c.turn for c in fold_agent(*THREE, *waiting, uploaded).checkpoints if c.remote_ref] == [1, 2, 3, 39]


def test_those_set_aside_have_a_limit() -> None:
    events: list[AnyBody] = []
    for turn in range(1, 3 * MAX_ASIDE):
        events += [build_saved(turn, turn), build_restored(None, turn + 1)]
    assert len(fold_agent(*events).set_aside) == MAX_ASIDE


TRIED = Tried(turn=1, where="remote", error="the archive's sha256 is not a")


@pytest.mark.behaviour("2.14")
@pytest.mark.parametrize(
    ("spec", "events", "restored", "words"),
    [
        (True, [build_saved(1)], build_restored(None, tried=[TRIED]), "could not be used (the archive's sha256"),
        (True, [build_checkpoint(1, upload_error="away")], build_restored(None), "before it was in the bucket (away)"),
        (True, [], build_restored(None), "its sandbox went before a checkpoint of it was reported"),
        (False, [], build_restored(None), "its spec asks for no checkpoints"),
    ],
)
def test_a_lost_turn_is_said_to_be_lost_and_why(
    spec: bool, events: list[AnyBody], restored: AnyBody, words: str
) -> None:
    asked = ev.AgentSpawned(uid="u1", alias="lead", spec={"checkpoint": spec})
    agent = fold_agent(asked, PROVISIONED, STARTED, ENDED, *events, restored)
    assert agent.interruption is not None
    assert (agent.interruption.turn, agent.interruption.reason) == (1, "CleanTurnLost")
    assert words in agent.interruption.message
    assert agent.interruption.message.endswith("it came back blank, with none of its turns")


def test_what_a_pod_reports_too_late_does_not_count() -> None:
    """Whoever records it saw an older state: the order of the ledger decides."""
    second = ev.AgentProvisioned(pod="survey-lead-2", uid="p2", incarnation=2, rung=Rung.RESTORE)
    waiting = build_checkpoint(1, upload_error="away")
    uploaded = ev.AgentCheckpointUploaded(turn=1, incarnation=1, remote_ref="k1")
    assert fold_agent(PROVISIONED, second, build_saved(1)).checkpoints == ()
    (checkpoint,) = fold_agent(PROVISIONED, waiting, second, uploaded).checkpoints
    assert checkpoint.remote_ref is None
    assert fold_agent(PROVISIONED, STARTED, INTERRUPTED, build_saved(1)).checkpoints == ()


RUNNING, CUT, CLEAN = (PROVISIONED, STARTED), (PROVISIONED, STARTED, INTERRUPTED), (PROVISIONED, STARTED, ENDED)


@pytest.mark.parametrize(
    ("events", "turn", "incarnation", "verdict"),
    [
        (CLEAN, 1, 1, Verdict.TAKE),
        (RUNNING, 1, 1, Verdict.LATER),
        (CUT, 1, 1, Verdict.NEVER),
        ((PROVISIONED, STARTED, FAILED), 1, 1, Verdict.NEVER),
        (CLEAN, 2, 1, Verdict.NEVER),
        (CLEAN, 0, 1, Verdict.NEVER),
        (CLEAN, 1, 2, Verdict.NEVER),
        ((PROVISIONED,), 1, 1, Verdict.NEVER),
        ((*CLEAN, ev.AgentEnded(outcome=ev.Outcome.ABORTED, reason="Stopped")), 1, 1, Verdict.NEVER),
        ((*CLEAN, ev.AgentReleased(reason="SandboxGone")), 1, 1, Verdict.NEVER),
    ],
)
def test_which_reports_count(events: list[AnyBody], turn: int, incarnation: int, verdict: Verdict) -> None:
    found, why = judge_report(fold_agent(*events), turn, incarnation)
    assert found is verdict
    assert bool(why) is (verdict is not Verdict.TAKE)
