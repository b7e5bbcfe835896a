"""What a take-over took, by step."""

from alineod.app.takeover import Takeover
from tests.support.manual_clock import ManualClock


def test_steps_in_a_row_and_beside_each_other_are_told_and_the_slow_ones_named() -> None:
    clock, told = ManualClock(), dict[str, float]()
    takeover = Takeover(clock, told.__setitem__)
    step = takeover.build_chain()
    with takeover.timing("crds"):
        step("look")
        clock.advance(0.5)
        step("build")
        clock.advance(0.01)
    step("")
    clock.advance(1)
    assert takeover.finish() == "1.51 s after the lease (look 0.50, crds 0.51)"
    assert {name: round(seconds, 6) for name, seconds in told.items()} == {
        "look": 0.5, "crds": 0.51, "build": 0.01, "total": 1.51,
    }  # fmt: skip


def test_a_step_that_failed_is_told_too() -> None:
    clock, told = ManualClock(), dict[str, float]()
    takeover = Takeover(clock, told.__setitem__)
    try:
        with takeover.timing("probe"):
            clock.advance(2)
            raise ValueError
    except ValueError:
        pass
    assert told == {"probe": 2}
    assert Takeover(clock, told.__setitem__).finish() == "0.00 s after the lease"
