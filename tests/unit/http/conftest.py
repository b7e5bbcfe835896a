"""A swarm in memory that has come to rest, with one person whom the guard knows, and a leader's health."""

from types import SimpleNamespace

import pytest

from alineod.kube.gateway import Identity
from alineod.kube.health import Health
from alineod.kube.objects import SWARMS
from tests.support.manual_clock import ManualClock
from tests.unit.reconcile.simulation import Simulation
from tests.unit.reconcile.test_crash_points import SWARM


@pytest.fixture
async def simulation() -> Simulation:
    simulation = Simulation()
    simulation.gateway.tokens["ada"] = Identity("ada", audiences=("alineod",))
    simulation.gateway.write(SWARMS, SWARM)
    await simulation.settle()
    return simulation


def build_health(*, leads: bool = True) -> Health:
    """The health of a process that has the lease, or has not."""
    elector = SimpleNamespace(is_alive=True, is_leader=leads, problem="", compute_read_age=lambda: 0.0)
    return Health(elector, ManualClock())


@pytest.fixture
def health() -> Health:
    """Of a leader that serves."""
    health = build_health()
    health.set_serving()
    return health
