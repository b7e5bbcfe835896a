"""Four rows of `make fault-matrix`: an agent in every state at once, a fault, and everyone back with what was saved."""

from pathlib import Path

import pytest

from hack.demo.forward import Forward
from hack.demo.install import Images
from hack.demo.target import Kind
from hack.faults.report import Result
from hack.faults.run import Site, run_row
from hack.faults.table import Column, Row
from tests.support.e2e_parts import Bucket, ScriptedModel
from tests.support.e2e_world import World

pytestmark = pytest.mark.disruptive

# By row, who is on the stage: every state is struck once, and the whole of it by `make fault-matrix`.
ROWS = {
    Row.OPERATOR_KILLED: (Column.DONE, Column.WITH_TEXT, Column.UPLOADING, Column.PROVISIONING, Column.HELD),
    Row.BRIDGE_KILLED: (Column.DONE, Column.IN_TOOL, Column.CUTTING),
    Row.POD_DELETED: (Column.DONE, Column.BEFORE_OUTPUT, Column.IDLE),
    Row.NEWEST_DAMAGED: (Column.DONE, Column.IDLE),
}


@pytest.fixture
def site(
    world: World, images: Images, bucket: Bucket, model: ScriptedModel, forward: Forward, tmp_path: Path
) -> Site:  # fmt: skip
    if world.target.kind is not Kind.DEV:
        pytest.skip("processes are stopped and killed in the development cluster alone")
    return Site(world, images, bucket, model, forward, tmp_path)


@pytest.mark.parametrize("row", ROWS)
def test_every_state_outlives_the_fault(site: Site, row: Row) -> None:
    cells = run_row(site, row, ROWS[row])
    failed = [f"{column}: {'; '.join(cell.words)}" for column, cell in cells.items() if cell.result is not Result.HELD]
    assert set(cells) == set(ROWS[row])
    assert not failed, "\n".join([f"{row}:", *failed, site.world.report("")])
