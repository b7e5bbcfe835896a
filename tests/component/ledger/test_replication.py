"""The ledger with the real Litestream and a real bucket."""

import shutil
from collections.abc import Callable

import pytest

from alineod.clock import SystemClock
from alineod.domain.state import State, fold
from alineod.errors import Unavailable
from alineod.ledger.open import open_ledger
from tests.component.ledger.conftest import Program, World
from tests.unit.ledger.entries import build_entry

Sidecars = Callable[..., Program]
CLOCK = SystemClock()


@pytest.mark.behaviour("9.3", "9.4", "9.6")
async def test_what_was_acknowledged_comes_back_from_the_bucket_alone(world: World, start_sidecar: Sidecars) -> None:
    sidecar = start_sidecar()
    first = await open_ledger(world.build_opening(), CLOCK, world.build_index())
    rows = await first.append([build_entry(n) for n in range(1, 50)])
    rows += await first.append([build_entry(50)])
    sidecar.kill()
    shutil.rmtree(world.directory / "volume")

    start_sidecar("run2")
    again = await open_ledger(world.build_opening("volume2", epoch=2, run="run2"), CLOCK, world.build_index())
    assert await again.read() == rows
    assert again.state == fold(State(), rows)
    assert (again.secret, again.epoch) == (first.secret, 2)
    assert [row.seq for row in await again.append([build_entry(50), build_entry(51)])] == [50, 51]
    await again.close()
    await first.close()
