"""What the queue decides, with a clock of numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from alineod.kube.schedule import Outcome, QueueOptions, QueueState, TokenBucket

OPTIONS = QueueOptions(first_delay=1.0, longest_delay=8.0)


def build_state(chance: float = 1.0) -> QueueState[str]:
    return QueueState(OPTIONS, lambda: chance)


def take_all(state: QueueState[str], now: float) -> list[str]:
    taken = []
    while (key := state.take(now)) is not None:
        taken.append(key)
    return taken


def test_a_key_is_ready_once_however_often_it_is_added() -> None:
    state = build_state()
    for key in "abab":
        state.add(key, 0.0)
    assert take_all(state, 0.0) == ["a", "b"]


def test_ends_go_first_and_keep_their_place_in_time() -> None:
    state = build_state()
    state.add("a", 0.0)
    state.add("b", 1.0)
    state.add("c", 2.0, urgent=True)
    state.add("b", 3.0, urgent=True)
    state.add("b", 3.0)
    assert state.compute_age(5.0) == 5.0
    assert take_all(state, 5.0) == ["c", "b", "a"]
    assert state.compute_age(5.0) == 0.0


def test_news_during_a_pass_is_looked_at_afterwards_and_once() -> None:
    state = build_state()
    state.add("a", 0.0)
    assert state.take(0.0) == "a"
    state.add("a", 0.0)
    state.add("a", 0.0)
    assert state.take(0.0) is None
    state.finish("a", 1.0, Outcome.DONE)
    assert take_all(state, 1.0) == ["a"]


def test_the_earliest_wish_counts() -> None:
    state = build_state()
    state.add_at("a", 10.0)
    state.add_at("a", 5.0)
    state.add_at("a", 7.0)
    assert state.compute_next_due() == 5.0
    assert take_all(state, 4.9) == []
    assert take_all(state, 5.0) == ["a"]
    assert state.compute_next_due() is None


def test_a_pass_fulfils_every_wish_made_before_it() -> None:
    state = build_state()
    state.add_at("a", 10.0)
    state.add("a", 0.0)
    assert take_all(state, 0.0) == ["a"]
    state.finish("a", 1.0, Outcome.DONE, 30.0)
    assert state.compute_next_due() == 31.0


def test_failures_wait_twice_as_long_each_time_and_a_success_forgets_them() -> None:
    state = build_state()
    waits, now = [], 0.0
    state.add("a", now)
    for _ in range(5):
        assert state.take(now) == "a"
        state.finish("a", now, Outcome.BUG)
        due = state.compute_next_due()
        assert due is not None
        waits.append(due - now)
        now = due
    assert waits == [1.0, 2.0, 4.0, 8.0, 8.0]
    state.take(now)
    state.finish("a", now, Outcome.DONE)
    state.add("a", now)
    state.take(now)
    state.finish("a", now, Outcome.UNAVAILABLE)
    assert state.compute_next_due() == now + 1.0


@pytest.mark.parametrize(("chance", "wait"), [(0.0, 0.5), (0.5, 0.75), (1.0, 1.0)])
def test_waits_are_spread_over_their_upper_half(chance: float, wait: float) -> None:
    state = build_state(chance)
    state.add("a", 0.0)
    state.take(0.0)
    state.finish("a", 0.0, Outcome.BUG)
    assert state.compute_next_due() == wait


def test_a_conflict_is_looked_at_again_at_once_the_first_time_only() -> None:
    state = build_state()
    state.add("a", 0.0)
    state.take(0.0)
    state.finish("a", 0.0, Outcome.CONFLICT)
    assert state.take(0.0) == "a"
    state.finish("a", 0.0, Outcome.CONFLICT)
    assert state.take(0.0) is None
    assert state.compute_next_due() == 2.0


def test_a_server_that_names_a_time_is_given_it() -> None:
    state = build_state()
    state.add("a", 0.0)
    state.take(0.0)
    state.finish("a", 0.0, Outcome.UNAVAILABLE, 20.0)
    assert state.compute_next_due() == 20.0


def test_news_during_a_failed_pass_waits_with_it_and_later_news_does_not() -> None:
    state = build_state()
    state.add("a", 0.0)
    state.take(0.0)
    state.add("a", 0.0)
    state.finish("a", 0.0, Outcome.BUG)
    assert state.take(0.5) is None
    state.add("a", 0.5)
    assert state.take(0.5) == "a"


@given(
    st.floats(0.1, 100),
    st.integers(1, 50),
    st.lists(st.floats(0, 10), min_size=1, max_size=60),
)
def test_a_bucket_never_gives_more_than_its_rate_and_burst(rate: float, burst: int, pauses: list[float]) -> None:
    bucket, now, given_out = TokenBucket(rate, burst, 0.0), 0.0, 0
    for pause in pauses:
        now += pause
        for _ in range(burst + 3):
            wait = bucket.take(now)
            assert wait >= 0.0
            given_out += wait == 0.0
        assert given_out <= burst + rate * now + 1e-6


def test_a_bucket_says_when_the_next_permit_is_there() -> None:
    bucket = TokenBucket(2.0, 1, 0.0)
    assert bucket.take(0.0) == 0.0
    assert bucket.take(0.0) == pytest.approx(0.5)
    assert bucket.take(0.5) == 0.0


class QueueMachine(RuleBasedStateMachine):
    """No key runs twice at once, and no wish for a look is lost."""

    keys = st.sampled_from("abc")

    def __init__(self) -> None:
        super().__init__()
        self.state, self.now = build_state(), 0.0
        self.running: set[str] = set()
        self.wished: set[str] = set()

    @rule(key=keys, urgent=st.booleans())
    def add(self, key: str, urgent: bool) -> None:
        self.state.add(key, self.now, urgent=urgent)
        self.wished.add(key)

    @rule(key=keys, seconds=st.floats(0, 5))
    def add_later(self, key: str, seconds: float) -> None:
        self.state.add_at(key, self.now + seconds)
        self.wished.add(key)

    @rule(seconds=st.floats(0, 5))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def take(self) -> None:
        key = self.state.take(self.now)
        if key is not None:
            assert key not in self.running
            self.running.add(key)
            self.wished.discard(key)

    @rule(outcome=st.sampled_from(Outcome), wish=st.none() | st.floats(0, 5))
    def finish(self, outcome: Outcome, wish: float | None) -> None:
        if self.running:
            key = sorted(self.running)[0]
            self.running.discard(key)
            self.state.finish(key, self.now, outcome, wish)
            if outcome is not Outcome.DONE or wish is not None:
                self.wished.add(key)

    @invariant()
    def counts_agree(self) -> None:
        assert self.state.running == len(self.running)

    def teardown(self) -> None:
        """Everything that was wished for comes to its turn once nothing hinders it."""
        for key in sorted(self.running):
            self.state.finish(key, self.now, Outcome.DONE)
        seen = set(take_all(self.state, self.now + 1000.0))
        assert self.wished <= seen


TestQueueMachine = QueueMachine.TestCase
