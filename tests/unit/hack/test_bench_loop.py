"""The loop's bench: its sandboxes' clocks, its arithmetic, and how it names what held the loop up."""

import asyncio
import sys

from alineod.wire.base import decode
from alineod.wire.turns import JournalRecord
from hack.bench.loop_report import build_causes, build_table, count_above
from hack.bench.loop_sandboxes import Journal
from hack.bench.loop_watch import Looks, LoopWatch, describe_stack
from tests.unit.reconcile.simulation import Sandbox

STARTED = JournalRecord(time=0.0, turn=1, turn_id="t", event="turn.started", seq=1)


def read(journal: Journal, after: int) -> list[tuple[str, int | None]]:
    records = [decode(JournalRecord, line) for line in journal.read(after)]
    return [(record.event, record.seq) for record in records]


def test_a_sandbox_goes_on_by_its_own_clock_whether_or_not_it_is_read() -> None:
    journal = Journal(Sandbox([STARTED]), begun=100.0)
    journal.write(103.5)
    assert read(journal, 0) == [("turn.started", 1), ("tool.ended", 2), ("tool.ended", 3), ("tool.ended", 4)]
    assert read(journal, 4) == [("text.delta", None)]
    journal.end()
    journal.write(200.0)
    assert read(journal, 4) == [("turn.ended", 5)]


def test_a_look_counts_when_it_is_above_the_limit() -> None:
    assert count_above([0.05, 0.1, 0.101, 2.0]) == 2


def test_the_table_has_a_line_for_each_phase_and_says_what_was_the_loops_own() -> None:
    looks = Looks(seconds=10.0, late=[0.0, 0.2, 0.3], used=[0.0, 0.05, 0.15], collections=([0.004], [], [0.12]))
    looks.causes["fold.fold"] = 3
    head, line = build_table({"reporting": looks}, {"reporting": 40})
    assert head.split()[-1] == "passes/s"
    assert line.split()[:6] == ["reporting", "10.0", "200.0", "298.0", "300.0", "2"]
    assert line.split()[6:] == ["148.0", "150.0", "1", "2%", "120.0", "1", "4"]
    assert list(build_causes({"reporting": looks, "calm": Looks()}))[1] == "     3  fold.fold"


def test_a_stack_is_named_by_the_functions_of_ours_in_it() -> None:
    assert describe_stack(None) == "nothing"
    assert "test_a_stack_is_named_by_the_functions_of_ours_in_it" in describe_stack(sys._getframe())


async def test_what_was_seen_before_the_beginning_is_forgotten() -> None:
    async with LoopWatch() as watch:
        await asyncio.sleep(0.05)
        assert watch.read().late
        watch.begin()
        assert watch.read().late == []
