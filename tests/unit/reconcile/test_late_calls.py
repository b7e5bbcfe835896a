"""A leader stalls before any one of its calls and sends it when another leads; the end is as if it had never come.

Only what the servers refuse or take without effect is tried here. That the call cannot come this late at all, by its
deadline and the sockets, is shown against real ones (tests/component/kube).
"""

import asyncio
from dataclasses import replace
from enum import StrEnum

import pytest

from alineod.kube.objects import Ref
from alineod.reconcile.passes import run_pass
from tests.unit.reconcile.simulation import Died, Simulation
from tests.unit.reconcile.stalling import Stall
from tests.unit.reconcile.test_crash_points import check, live, summarise

PARTS = 4  # of the calls, so that they can be tried side by side


class Arrival(StrEnum):
    """When the call arrives: before the next leader has done anything, while it works, when all is done."""

    FIRST = "first"
    AMID = "amid"
    LAST = "last"


class Succession(Simulation):
    """The first process stalls at its call `at`; a second one leads from then on."""

    def __init__(self, at: int, arrival: Arrival) -> None:
        self.stall, self._arrival = Stall(at), arrival
        self._late: list[asyncio.Task[float | None]] = []
        self._rounds = 0
        super().__init__()

    def _start(self) -> None:
        super()._start()
        if self.starts > 1:
            return
        first, drivers, stall = self.world, self.drivers, self.stall
        gateway, bridges = stall.wrap(first.gateway), stall.wrap(first.bridges)
        old = replace(
            first, gateway=gateway, bridges=bridges, ledger=stall.wrap(first.ledger, fenced=True),
            wake=lambda ref: None if stall.reached.is_set() else self.wake(ref),
            drive=lambda key, turn: drivers.ensure(old, key, turn),
        )  # fmt: skip
        self.world, self._old_drivers = old, drivers

    async def _look(self, ref: Ref) -> float | None:
        """A pass; one that stalls is left behind."""
        task = asyncio.create_task(run_pass(self.world, ref))
        stalled = asyncio.create_task(self.stall.reached.wait())
        await asyncio.wait({task, stalled} if self.starts == 1 else {task}, return_when=asyncio.FIRST_COMPLETED)
        stalled.cancel()
        if task.done():
            return task.result()
        self._late.append(task)
        raise Died

    async def _round(self) -> None:
        await super()._round()
        if not self.stall.reached.is_set():
            return
        if self.starts == 1:
            self._start()
        self._rounds += 1
        if self._arrival is Arrival.FIRST or (self._arrival is Arrival.AMID and self._rounds == 2):
            await self.arrive()

    async def arrive(self) -> None:
        """The call goes out, and the process that sent it goes on for as long as it can."""
        self.stall.free.set()
        for _ in range(30):
            await asyncio.sleep(0)

    async def end(self) -> None:
        """What was still under way arrives, and the cluster comes to rest."""
        await self.arrive()
        await self.settle()
        await asyncio.gather(*self._late, return_exceptions=True)
        await self._old_drivers.close()


async def _live(at: int, arrival: Arrival) -> Succession:
    simulation = Succession(at, arrival)
    await live(simulation)
    await simulation.end()
    return simulation


@pytest.mark.behaviour("9.1")
@pytest.mark.parametrize("arrival", Arrival)
@pytest.mark.parametrize("part", range(PARTS))
def test_a_call_of_a_leader_of_before_leaves_no_trace(part: int, arrival: Arrival) -> None:
    whole = asyncio.run(_live(0, arrival))
    expected = summarise(whole)
    assert whole.starts == 1
    assert whole.stall.calls > 50
    failures = []
    for call in range(1 + part, whole.stall.calls + 1, PARTS):
        simulation = asyncio.run(_live(call, arrival))
        try:
            assert simulation.starts == 2 or simulation.stall.calls < call  # that life was over before
            check(simulation)
            assert summarise(simulation) == expected
        except AssertionError as error:
            failures.append(f"call {call} ({simulation.stall.sent}): {error}")
    if failures:
        pytest.fail(f"{len(failures)} calls left traces:\n" + "\n".join(failures[:5]))
