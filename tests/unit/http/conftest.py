"""A swarm in memory that has come to rest, with one person whom the guard knows."""

import pytest

from alineod.kube.gateway import Identity
from alineod.kube.objects import SWARMS
from tests.unit.reconcile.simulation import Simulation
from tests.unit.reconcile.test_crash_points import SWARM


@pytest.fixture
async def simulation() -> Simulation:
    simulation = Simulation()
    simulation.gateway.tokens["ada"] = Identity("ada", audiences=("alineod",))
    simulation.gateway.write(SWARMS, SWARM)
    await simulation.settle()
    return simulation
