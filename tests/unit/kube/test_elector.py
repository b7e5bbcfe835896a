"""The elector's threads around a Lease that a test can lose, take away and hang. Figures are small, not asserted."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime

import pytest

from alineod.errors import AlineoError, Conflict, Unavailable
from alineod.kube.elector import Elector, read_uptime
from alineod.kube.lease import LeaseRecord, LeaseTiming

# A machine that is busy for a second must not look like a lost lease.
FAST = LeaseTiming(duration=3.0, renew_deadline=2.0, retry=0.02)
# A standby with these looks again when the test is long over.
SLOW = LeaseTiming(duration=9000.0, renew_deadline=8000.0, retry=1000.0)


class Lease:
    """One Lease under optimistic locking, shared by every contender; `failure` is raised, `hang` is waited for."""

    def __init__(self) -> None:
        self.record: LeaseRecord | None = None
        self.failure: AlineoError | None = None
        self.hang: threading.Event | None = None
        self.lose_answer = False
        self.writes = 0
        self.deaf = False
        self._lock, self._changed = threading.Lock(), threading.Condition()

    def read(self, seconds: float) -> LeaseRecord | None:
        self._obstruct()
        return self.record

    def write(self, record: LeaseRecord, acquired: datetime, seconds: float) -> LeaseRecord:
        self._obstruct()
        with self._lock:
            if record.version != (self.record.version if self.record else ""):
                raise Conflict("Conflict", "another version")
            self.writes += 1
            self.record = replace(record, version=str(self.writes), uid="uid")
        self.tell()
        if self.lose_answer:
            self.lose_answer = False
            raise Unavailable("Unreachable", "no answer")
        return self.record

    def tell(self) -> None:
        """Let those who watch look."""
        with self._changed:
            self._changed.notify_all()

    def _obstruct(self) -> None:
        if self.hang is not None:
            self.hang.wait(20)
        if self.failure is not None:
            raise self.failure


class Watch:
    """A contender's watch over that Lease: told of every change, or broken where the Lease is `deaf`."""

    def __init__(self, lease: Lease) -> None:
        self._lease = lease
        self.waits, self.closed, self._stopped = list[str](), False, False

    def wait(self, known: LeaseRecord, seconds: float) -> None:
        self.waits.append(known.version)
        if self._lease.deaf:
            raise Unavailable("Unreachable", "the watch is broken")
        with self._lease._changed:
            self._lease._changed.wait_for(lambda: self._stopped or self._lease.record != known, seconds)

    def close(self) -> None:
        self.closed = True

    def stop(self) -> None:
        self._stopped = True
        self._lease.tell()


class Contender:
    """An elector and what became of it."""

    def __init__(self, lease: Lease, name: str = "me", timing: LeaseTiming = FAST) -> None:
        self.died, self.acquired = threading.Event(), threading.Event()
        self.why, self.epochs = "", list[int]()
        self.watch = Watch(lease)
        self.elector = Elector(
            lease, self.watch, name, die=self._die, on_acquired=self._acquire, timing=timing, chance=lambda: 0.5
        )

    def _die(self, why: str) -> None:
        self.why = self.why or why
        self.died.set()

    def _acquire(self, epoch: int) -> None:
        self.epochs.append(epoch)
        self.acquired.set()


@contextmanager
def contending(lease: Lease, *names: str, timing: LeaseTiming = FAST) -> Iterator[list[Contender]]:
    contenders = [Contender(lease, name, timing) for name in names or ("me",)]
    try:
        for contender in contenders:
            contender.elector.start()
        yield contenders
    finally:
        lease.failure, hang = None, lease.hang
        lease.hang = None
        if hang is not None:
            hang.set()
        for contender in contenders:
            contender.elector.release()


def wait(event: threading.Event) -> None:
    assert event.wait(20)


def until(condition: Callable[[], bool]) -> None:
    deadline = read_uptime() + 20
    while not condition():
        assert read_uptime() < deadline
        threading.Event().wait(0.005)


def test_one_leads_in_the_first_epoch_and_renews() -> None:
    lease = Lease()
    with contending(lease) as [me]:
        wait(me.acquired)
        until(lambda: lease.writes > 3)
        assert (me.elector.is_leader, me.elector.epoch, me.epochs) == (True, 1, [1])
        assert 0 < me.elector.compute_remaining() <= FAST.renew_deadline
        assert (me.elector.is_alive, me.elector.problem) == (True, "")
    assert lease.record is not None
    assert (lease.record.holder, lease.record.duration, lease.record.epoch) == ("", 1.0, 1)
    assert not me.died.is_set()
    assert me.elector.epoch == 0


def test_a_released_lease_is_taken_at_once_in_the_next_epoch() -> None:
    lease = Lease()
    with contending(lease):
        until(lambda: lease.writes > 0)
    with contending(lease, "next") as [other]:
        wait(other.acquired)
    assert other.epochs == [2]


def test_who_gives_the_lease_back_may_not_act_from_then_on() -> None:
    lease, led = Lease(), list[bool]()
    with contending(lease) as [me]:
        wait(me.acquired)
        write = lease.write

        def write_and_look(record: LeaseRecord, acquired: datetime, seconds: float) -> LeaseRecord:
            led.append(me.elector.is_leader)
            assert seconds > 0
            return write(record, acquired, seconds)

        lease.write = write_and_look  # type: ignore[method-assign]
        until(lambda: bool(led))
        assert set(led) == {True}
        led.clear()
        me.elector.release()
    assert led[-1] is False
    assert lease.record is not None
    assert lease.record.holder == ""


def test_a_renewal_that_is_under_way_when_the_lease_is_given_back_does_not_take_it_again() -> None:
    lease, asked, go = Lease(), threading.Event(), threading.Event()
    with contending(lease) as [me]:
        wait(me.acquired)
        write = lease.write

        def write_late(record: LeaseRecord, acquired: datetime, seconds: float) -> LeaseRecord:
            asked.set()
            wait(go)
            return write(record, acquired, seconds)

        lease.write = write_late  # type: ignore[method-assign]
        wait(asked)
        releasing = threading.Thread(target=me.elector.release)
        releasing.start()
        until(lambda: not me.elector.is_leader)
        go.set()
        releasing.join(20)
        assert not me.elector.is_leader
    assert lease.record is not None
    assert (lease.record.holder, me.why) == ("", "")


def test_a_standby_takes_a_released_lease_when_its_watch_tells() -> None:
    lease = Lease()
    with contending(lease, "leader", timing=SLOW) as [leader]:
        wait(leader.acquired)
        with contending(lease, "standby", timing=SLOW) as [standby]:
            until(lambda: len(standby.watch.waits) > 0)
            assert not standby.elector.is_leader
            leader.elector.release()
            wait(standby.acquired)
            assert standby.epochs == [2]
            assert standby.watch.closed
        assert leader.watch.waits == []


def test_a_standby_whose_watch_is_broken_looks_once_in_a_while() -> None:
    lease = Lease()
    lease.deaf = True
    with contending(lease, "leader") as [leader]:
        wait(leader.acquired)
        with contending(lease, "standby") as [standby]:
            until(lambda: len(standby.watch.waits) > 3)
            leader.elector.release()
            wait(standby.acquired)


def test_a_watch_that_is_silent_is_not_believed_for_long() -> None:
    lease, patient = Lease(), replace(SLOW, retry=0.02)
    with contending(lease, "leader", timing=SLOW) as [leader]:
        wait(leader.acquired)
        with contending(lease, "standby", timing=patient) as [standby]:
            until(lambda: len(standby.watch.waits) > 0)
            lease.tell = lambda: None  # type: ignore[method-assign]
            leader.elector.release()
            wait(standby.acquired)


def test_a_standby_that_is_told_to_stop_does_not_wait_for_news() -> None:
    lease = Lease()
    lease.record = LeaseRecord("other", 9000.0, 7, "0")
    with contending(lease, timing=SLOW) as [me]:
        until(lambda: len(me.watch.waits) > 0)
        me.elector.release()
        assert not me.elector.is_alive
    assert (lease.record.holder, me.epochs, me.why) == ("other", [], "")


def test_a_restarted_container_does_not_wait_for_its_own_lease() -> None:
    lease = Lease()
    lease.record = LeaseRecord("pod_uid_1", 9000.0, 7, "0")
    with contending(lease, "pod_uid_2", timing=SLOW) as [me]:
        wait(me.acquired)
    assert (me.epochs, me.watch.waits) == ([8], [])


def test_a_standby_waits_and_takes_over_from_the_silent() -> None:
    lease = Lease()
    lease.record = LeaseRecord("dead", 0.3, 7, "0")
    lease.writes = 0
    with contending(lease) as [me]:
        until(lambda: me.elector.compute_read_age() < 20)
        assert me.elector.is_leader is bool(me.epochs)
        wait(me.acquired)
    assert me.epochs == [8]


def test_of_two_one_leads() -> None:
    lease = Lease()
    with contending(lease, "a", "b") as both:
        until(lambda: any(contender.acquired.is_set() for contender in both))
        until(lambda: lease.writes > 5)
        assert sorted(contender.elector.is_leader for contender in both) == [False, True]


def test_a_leader_that_cannot_renew_ends_by_itself() -> None:
    lease = Lease()
    with contending(lease) as [me]:
        wait(me.acquired)
        lease.failure = Unavailable("Unreachable", "the wire is cut")
        wait(me.died)
    assert "could not be renewed" in me.why


def test_a_leader_whose_request_hangs_ends_in_spite_of_it() -> None:
    lease = Lease()
    with contending(lease) as [me]:
        wait(me.acquired)
        lease.hang = threading.Event()
        wait(me.died)
        assert not me.elector.is_leader
    assert "could not be renewed" in me.why


def test_a_leader_that_was_replaced_ends() -> None:
    lease = Lease()
    with contending(lease) as [me]:
        wait(me.acquired)
        lease.record = LeaseRecord("usurper", 15.0, 2, "other")
        wait(me.died)
    assert "usurper holds the lease in epoch 2" in me.why
    assert lease.record.holder == "usurper"


def test_a_write_whose_answer_was_lost_costs_no_leadership() -> None:
    lease = Lease()
    with contending(lease) as [me]:
        wait(me.acquired)
        lease.lose_answer = True
        until(lambda: not lease.lose_answer)
        before = lease.writes
        until(lambda: lease.writes > before + 3)
        assert me.elector.is_leader
    assert me.epochs == [1]


def test_an_acquisition_whose_answer_was_lost_is_made_again_in_a_later_epoch() -> None:
    lease = Lease()
    lease.lose_answer = True
    with contending(lease) as [me]:
        wait(me.acquired)
    assert me.epochs == [2]


def test_a_new_lease_beside_an_old_ledger_moves_on_to_its_epoch() -> None:
    lease = Lease()
    with contending(lease) as [me]:
        wait(me.acquired)
        assert me.elector.raise_epoch(38, 20.0) == 38
        assert me.elector.raise_epoch(5, 20.0) == 38
        assert me.elector.is_leader
    assert lease.record is not None
    assert lease.record.epoch == 38


def test_an_epoch_that_cannot_be_written_is_said() -> None:
    with pytest.raises(Unavailable, match="could not be moved on to epoch 38"):
        Contender(Lease()).elector.raise_epoch(38, 0.01)


def test_a_standby_that_cannot_read_the_lease_says_why_and_lives() -> None:
    lease = Lease()
    lease.failure = Unavailable("Unreachable", "the wire is cut")
    with contending(lease) as [me]:
        until(lambda: "the wire is cut" in me.elector.problem)
        assert me.elector.compute_read_age() == float("inf")
        assert not me.died.is_set()
        lease.failure = None
        wait(me.acquired)


def test_an_elector_that_breaks_is_not_believed() -> None:
    class Broken(Lease):
        def read(self, seconds: float) -> LeaseRecord | None:
            raise ValueError("a bug")

    with contending(Broken()) as [me]:
        wait(me.died)
    assert "a bug" in me.why
