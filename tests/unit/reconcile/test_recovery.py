"""Every way back leads to where it should, and to the same place whenever the operator dies on it.

The process dies after each call that changed something outside: what it dies between two of these changes nothing
that the next one could find.
"""

import os
from functools import cache
from typing import Any

import pytest

from tests.unit.reconcile.invariants import check_model, check_rest, check_rows, summarise
from tests.unit.reconcile.scenarios import SCENARIOS, ZOMBIE, begin, end, recover
from tests.unit.reconcile.simulation import Simulation
from tests.unit.reconcile.virtual_time import FakeClock, play

DEEP = "ALINEO_EXAMPLES" in os.environ
MANY = 45  # changes; of more, as those of a way that is gone several times, one in two is died after


@cache
def build_base() -> Simulation:
    return play(begin)


def _live(name: str, die_after: int = 0) -> tuple[Simulation, int]:
    """One life, in which the process dies once after that many changes; returns how many there were to die after."""
    base = build_base()

    async def life(clock: FakeClock) -> tuple[Simulation, int]:
        simulation = base.copy(clock)
        await simulation.settle()
        before = simulation.effects
        simulation.die_after = before + die_after if die_after else 0
        await SCENARIOS[name](simulation)
        await recover(simulation)
        effects = simulation.effects - before
        await end(simulation)
        return simulation, effects

    return play(life)


def _check(simulation: Simulation) -> None:
    check_rows(simulation.stored.rows)
    check_model(simulation)
    check_rest(simulation)
    assert ZOMBIE not in str(simulation.stored.rows)


def _summarise(simulation: Simulation, name: str) -> dict[str, Any]:
    """One that was lost is tried again by the next leader, so that a death costs it further sandboxes."""
    summary = summarise(simulation)
    left_out = ("incarnations", "rungs", "pods") if name == "never up again" else ()
    return {what: told for what, told in summary.items() if what not in left_out}


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_way_back_ends_the_same_whenever_the_operator_dies(name: str) -> None:
    whole, effects = _live(name)
    _check(whole)
    expected = _summarise(whole, name)
    assert effects > 15
    failures = []
    for number in range(1, effects + 1, 1 if DEEP else 1 + effects // MANY):
        simulation, _ = _live(name, number)
        try:
            assert simulation.starts > whole.starts, "the process did not die"
            _check(simulation)
            assert _summarise(simulation, name) == expected
        except AssertionError as error:
            failures.append(f"after change {number}: {error}")
    if failures:
        pytest.fail(f"{len(failures)} of {effects} deaths left traces:\n" + "\n".join(failures[:5]))
