"""Every example is what the API server takes."""

import pytest

from hack.demo.target import ROOT
from tests.support.e2e_world import World

pytestmark = pytest.mark.api_door

EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_taken_at_the_door(world: World, space: str, example: object) -> None:
    namespace = f"--namespace={space}"
    ran = world.target.kubectl("apply", "--dry-run=server", namespace, "-f", str(example), check=False)
    assert ran.code == 0, ran.words
    assert "server dry run" in ran.out


def test_there_are_examples() -> None:
    assert EXAMPLES
