"""Four rows of `make fault-matrix`: an agent in every state at once, a fault, and everyone back with what was saved."""

from pathlib import Path

import pytest

from hack.demo.forward import Forward
from hack.demo.install import Images
from hack.demo.target import Kind
from hack.faults.report import Result
from hack.faults.run import Site, run_row
from hack.faults.table import Row
from tests.support.e2e_parts import Bucket, ScriptedModel
from tests.support.e2e_world import World

pytestmark = pytest.mark.disruptive

ROWS = (Row.OPERATOR_KILLED, Row.BRIDGE_KILLED, Row.POD_DELETED, Row.NEWEST_DAMAGED)


@pytest.fixture
def site(
    world: World, images: Images, bucket: Bucket, model: ScriptedModel, forward: Forward, tmp_path: Path
) -> Site:  # fmt: skip
    if world.target.kind is not Kind.DEV:
        pytest.skip("processes are stopped and killed in the development cluster alone")
    return Site(world, images, bucket, model, forward, tmp_path)


@pytest.mark.parametrize("row", ROWS)
def test_every_state_outlives_the_fault(site: Site, row: Row) -> None:
    cells = run_row(site, row)
    failed = [f"{column}: {'; '.join(cell.words)}" for column, cell in cells.items() if cell.result is not Result.HELD]
    assert cells
    assert not failed, "\n".join([f"{row}:", *failed, site.world.report("")])
