"""What an installed release has the API server refuse, in the words that kubectl prints."""

import pytest

from tests.support.door_cases import CASES, Case
from tests.support.e2e_world import World

pytestmark = pytest.mark.api_door


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.kind}: {case.label}")
@pytest.mark.behaviour("6.4", "10.10")
def test_what_cannot_work_is_refused_with_what_to_write_instead(world: World, space: str, case: Case) -> None:
    # kubectl itself finds a missing field before it asks, and says so in words of its own.
    ask = ["--validate=false"] if any("Required value" in words for words in case.words) else []
    told = world.refuse(space, case.build(), words=["--dry-run=server", *ask])
    for words in case.words:
        assert words in told
