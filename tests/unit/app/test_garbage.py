"""Collections of garbage stay short: what a long one has found alive is not looked at again."""

import gc
from collections.abc import Iterator

import pytest

from alineod.app.garbage import FULL, LONGEST, YOUNG, Garbage


@pytest.fixture
def _as_before() -> Iterator[None]:
    """Leaves the collector of the test's own process as it was."""
    thresholds, callbacks = gc.get_threshold(), list(gc.callbacks)
    yield
    gc.set_threshold(*thresholds)
    gc.callbacks[:] = callbacks


@pytest.mark.parametrize(
    ("generation", "seconds", "aside"),
    [
        (FULL, LONGEST * 2, 1),
        (FULL, LONGEST / 2, 0),
        (FULL - 1, LONGEST * 2, 0),  # what has not lived long is about to be given up
    ],
)
def test_what_a_long_full_collection_found_alive_is_set_aside(generation: int, seconds: float, aside: int) -> None:
    times, done = iter((10.0, 10.0 + seconds)), list[str]()
    garbage = Garbage(lambda: next(times), lambda: done.append("aside"))
    garbage.hear("start", {"generation": generation})
    garbage.hear("stop", {"generation": generation})
    assert len(done) == aside


@pytest.mark.usefixtures("_as_before")
def test_from_the_start_what_was_imported_is_set_aside_and_every_collection_heard() -> None:
    done = list[str]()
    garbage = Garbage(set_aside=lambda: done.append("aside"))
    garbage.start()
    assert done == ["aside"]
    assert gc.get_threshold()[0] == YOUNG
    assert garbage.hear in gc.callbacks
