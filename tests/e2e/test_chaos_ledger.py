"""The short form of `make chaos-ledger`: leaders die and are outlived while clients write; nothing promised may go.

It installs a release of its own, whose bucket is on this machine, and pauses the others meanwhile.
"""

from pathlib import Path

import pytest

from hack.chaos.both import run_both
from hack.chaos.log import Log
from hack.chaos.plan import plan_control, plan_short
from hack.demo.install import Images
from hack.demo.target import Kind, Target

pytestmark = pytest.mark.disruptive

SEED = 1


@pytest.mark.behaviour("9.1", "9.2", "9.3", "9.4")
def test_what_was_acknowledged_outlives_its_leaders_and_a_build_that_does_not_wait_loses_some(
    target: Target, images: Images, tmp_path: Path
) -> None:
    if target.kind is not Kind.DEV:
        pytest.skip("processes are stopped and killed in the development cluster alone")
    log = Log(tmp_path)
    assert run_both(target, images, plan_short(SEED), plan_control(1, SEED), log), log.path.read_text()
