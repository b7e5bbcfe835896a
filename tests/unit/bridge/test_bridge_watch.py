"""A turn's limits, and the ways it is ended from outside."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from alineod.bridge.harness import Outcome
from alineod.bridge.journal import Journal
from alineod.bridge.watch import Stop, TurnWatch, apply_stop
from alineod.wire.turns import ErrorKind, TurnLimits, TurnRequest, TurnState

CLEAN = Outcome(TurnState.CLEAN, "done")


class ManualRun:
    """A run that ends when told."""

    def __init__(self) -> None:
        self.outcome: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self.aborted = False

    async def finish(self) -> Outcome:
        return await self.outcome

    async def abort(self) -> None:
        self.aborted = True
        if not self.outcome.done():
            self.outcome.set_result(Outcome(TurnState.ABORTED, "so far"))


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[Journal]:
    journal = Journal(tmp_path, lambda: 0.0)
    yield journal
    journal.close()


def watch(journal: Journal, limits: TurnLimits | None = None) -> TurnWatch:
    limits = limits or TurnLimits(turn_max=1e6, prompt_inactivity=1e6)
    request = TurnRequest(turn=1, turn_id="id", prompt="p", limits=limits)
    return TurnWatch(request, journal, time.monotonic)


async def test_a_turn_that_ends_by_itself(journal: Journal) -> None:
    run = ManualRun()
    run.outcome.set_result(CLEAN)
    assert await watch(journal).see_out(run) == CLEAN
    assert not run.aborted


async def test_the_first_stop_counts(journal: Journal) -> None:
    watching = watch(journal)
    watching.stop(Stop(ErrorKind.ABORTED, "first"))
    watching.stop(Stop(ErrorKind.INTERRUPTED, "second"))
    run = ManualRun()
    outcome = await watching.see_out(run)
    assert run.aborted
    assert (outcome.state, outcome.text) == (TurnState.ABORTED, "so far")
    assert outcome.error is not None
    assert outcome.error.message == "first"


async def test_its_time_runs_out(journal: Journal) -> None:
    outcome = await watch(journal, TurnLimits(turn_max=0.1, prompt_inactivity=1e6)).see_out(ManualRun())
    assert outcome.state is TurnState.FAILED
    assert outcome.error is not None
    assert outcome.error.kind is ErrorKind.TIMEOUT
    assert "turnMax, 0.1 s" in outcome.error.message


async def test_silence_is_noted_once(journal: Journal) -> None:
    watching = watch(journal, TurnLimits(turn_max=0.5, prompt_inactivity=0.05))
    watching.event("tool.started", {"name": "bash"})
    await watching.see_out(ManualRun())
    assert [record.event for record in journal.records()] == ["tool.started", "silence"]


async def test_a_journal_that_cannot_be_written_ends_the_turn(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(journal, "append", full)
    watching = watch(journal)
    watching.event("message", {})
    outcome = await watching.see_out(ManualRun())
    assert outcome.error is not None
    assert "No space left" in outcome.error.message


@pytest.mark.parametrize(
    ("kind", "state"),
    [
        (ErrorKind.ABORTED, TurnState.ABORTED),
        (ErrorKind.INTERRUPTED, TurnState.INTERRUPTED),
        (ErrorKind.TIMEOUT, TurnState.FAILED),
        (ErrorKind.HARNESS, TurnState.FAILED),
    ],
)
def test_what_a_stop_makes_of_an_outcome(kind: ErrorKind, state: TurnState) -> None:
    assert apply_stop(Outcome(TurnState.FAILED, "text"), Stop(kind, "why")).state is state
    assert apply_stop(CLEAN, Stop(kind, "too late")) == CLEAN
