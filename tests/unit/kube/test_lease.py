"""Who leads: the table of decisions, and contenders with clocks, delays and losses of their own."""

import heapq
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alineod.kube.lease import (
    Acquire,
    Decision,
    Held,
    LeaseRecord,
    LeaseTiming,
    Lost,
    Observed,
    Renew,
    Wait,
    build_identity,
    build_lease,
    compute_observed,
    decide_lease,
    is_predecessor,
    parse_lease,
)

TIMING = LeaseTiming()


def build_record(holder: str = "other", epoch: int = 4, duration: float = 15.0, version: str = "7") -> LeaseRecord:
    return LeaseRecord(holder, duration, epoch, version, "uid")


OTHERS, MINE, FREE = build_record(), build_record("me"), build_record("", duration=1.0)


@pytest.mark.parametrize(
    ("record", "since", "held", "now", "floor", "decision"),
    [
        (None, 0.0, None, 0.0, 1, Acquire(1, None)),
        (None, 0.0, None, 0.0, 38, Acquire(38, None)),
        (FREE, 0.0, None, 0.0, 1, Acquire(5, FREE)),
        (OTHERS, 0.0, None, 1.0, 1, Wait(14.0, OTHERS)),
        (OTHERS, 0.0, None, 14.5, 1, Wait(0.5, OTHERS)),
        (OTHERS, 0.0, None, 15.0, 1, Acquire(5, OTHERS)),
        (OTHERS, 0.0, None, 15.0, 9, Acquire(9, OTHERS)),
        (MINE, 0.0, None, 0.0, 1, Acquire(5, MINE)),
        (MINE, 0.0, Held(4, 0.0), 2.0, 1, Renew(4, MINE)),
        (MINE, 0.0, Held(4, 0.0), 2.0, 9, Renew(9, MINE)),
        (MINE, 0.0, Held(3, 0.0), 2.0, 1, Renew(4, MINE)),
        (MINE, 0.0, Held(4, 0.0), 9.9, 1, Renew(4, MINE)),
    ],
    ids=[
        "no lease",
        "no lease beside an old ledger",
        "free",
        "held by another",
        "nearly silent for long enough",
        "silent for long enough",
        "silent, beside an older ledger",
        "a write of ours whose answer was lost",
        "ours",
        "ours, beside an older ledger",
        "ours, the answer to a higher epoch was lost",
        "ours, just in time",
    ],
)
def test_what_a_contender_does(
    record: LeaseRecord | None, since: float, held: Held | None, now: float, floor: int, decision: Decision
) -> None:
    assert decide_lease(Observed(record, since), "me", held, now, TIMING, floor) == decision


@pytest.mark.parametrize(
    ("holder", "decision"),
    [
        ("pod_uid_1", Acquire),
        ("pod_uid_2", Acquire),
        ("pod_other_1", Wait),
        ("pod-a_uid_1", Wait),
        ("pod_uid_1_2", Wait),
        ("pod_uid", Wait),
        ("pod__1", Wait),
        ("somebody", Wait),
    ],
    ids=[
        "an earlier process of this pod",
        "this process",
        "a former pod of this name",
        "another pod",
        "no name of ours",
        "no name of ours either",
        "nobody knows which pod",
        "another elector's",
    ],
)
def test_a_restarted_container_takes_back_the_lease_of_its_pod(holder: str, decision: type[Decision]) -> None:
    record = build_record(holder)
    decided = decide_lease(Observed(record, 0.0), "pod_uid_2", None, 0.0, TIMING)
    assert type(decided) is decision
    if isinstance(decided, Acquire):
        assert decided == Acquire(5, record)


def test_a_process_that_does_not_know_its_pod_takes_nothing_back() -> None:
    assert not is_predecessor("pod__1", "pod__2")
    assert not is_predecessor("_uid_1", "_uid_2")
    record = build_record("pod__1")
    assert decide_lease(Observed(record, 0.0), "pod__2", None, 0.0, TIMING) == Wait(15.0, record)


def test_a_leader_that_finds_another_process_of_its_pod_has_lost() -> None:
    decision = decide_lease(Observed(build_record("pod_uid_2"), 0.0), "pod_uid_1", Held(4, 0.0), 1.0, TIMING)
    assert isinstance(decision, Lost)


@pytest.mark.parametrize(
    ("record", "now", "why"),
    [
        (MINE, 10.0, "could not be renewed for 10 s"),
        (OTHERS, 1.0, "other holds the lease in epoch 4"),
        (FREE, 1.0, "nobody holds the lease in epoch 4"),
        (None, 1.0, "was deleted"),
    ],
)
def test_when_a_leader_has_lost(record: LeaseRecord | None, now: float, why: str) -> None:
    decision = decide_lease(Observed(record, 0.0), "me", Held(4, 0.0), now, TIMING)
    assert isinstance(decision, Lost)
    assert why in decision.why


def test_any_change_of_the_lease_starts_its_time_anew() -> None:
    first = compute_observed(None, OTHERS, 1.0)
    assert compute_observed(first, OTHERS, 9.0) == first
    touched = replace(OTHERS, version="8")
    assert compute_observed(first, touched, 9.0) == Observed(touched, 9.0)


def test_a_lease_is_written_and_read_back() -> None:
    now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    body = build_lease("ns", "alineod", OTHERS, now)
    assert body["spec"]["renewTime"] == "2026-01-02T03:04:05.000000Z"
    assert parse_lease(body) == OTHERS
    made = build_lease("ns", "alineod", LeaseRecord("me", 15.0, 1, ""), now)
    assert set(made["metadata"]) == {"name", "namespace"}
    assert parse_lease({"metadata": {}}) == LeaseRecord("", 0.0, 0, "")


def test_no_two_processes_share_a_name() -> None:
    names = {build_identity("pod", "uid", lambda number=number: str(number)) for number in range(2)}
    assert names == {"pod_uid_0", "pod_uid_1"}


@pytest.mark.parametrize(("chance", "pause"), [(0.0, 1.8), (0.5, 2.0), (1.0, 2.2)])
def test_pauses_are_spread(chance: float, pause: float) -> None:
    assert TIMING.compute_retry(chance) == pytest.approx(pause)


@dataclass
class Server:
    """One lease under optimistic locking, and every write that was taken."""

    record: LeaseRecord | None = None
    versions: int = 0
    epochs: list[tuple[int, str]] = field(default_factory=list)

    def write(self, wanted: LeaseRecord) -> LeaseRecord | None:
        known = self.record.version if self.record else ""
        if known != wanted.version:
            return None
        self.versions += 1
        before = self.record
        self.record = replace(wanted, version=str(self.versions))
        if before is None or (before.holder, before.epoch) != (wanted.holder, wanted.epoch):
            self.epochs.append((wanted.epoch, wanted.holder))
        return self.record


@dataclass(frozen=True)
class Luck:
    """How one look at the lease goes: pauses in seconds, and what is lost."""

    pause: float
    there: float
    back: float
    request_lost: bool
    answer_lost: bool


lucks = st.builds(
    Luck,
    pause=st.floats(0.1, 12.0),
    there=st.floats(0.0, 5.0),
    back=st.floats(0.0, 5.0),
    request_lost=st.integers(0, 5).map(lambda number: number == 0),
    answer_lost=st.integers(0, 5).map(lambda number: number == 0),
)


def contend_again(
    server: Server, pod: str, offset: float, lives: list[list[Luck]], reigns: list[tuple[str, int, float, float]]
) -> Generator[float, float, None]:
    """A pod whose container is started again whenever it has ended, which it does in the middle of anything."""
    for number, luck in enumerate(lives):
        me = f"{pod}_uid_{number}"
        end = yield from contend(server, me, offset, luck, reigns)
        reigns[:] = [(who, epoch, begin, min(to, end) if who == me else to) for who, epoch, begin, to in reigns]


def contend(
    server: Server, me: str, offset: float, luck: list[Luck], reigns: list[tuple[str, int, float, float]]
) -> Generator[float, float, float]:
    """A process that lives until it loses; yields pauses, is sent the true time, sees it shifted by `offset`.

    Returns when it ended.
    """
    observed: Observed | None = None
    held: Held | None = None
    now = (yield 0.0) + offset
    for look in luck:
        now = (yield look.pause) + offset
        if held is None or look.request_lost:
            observed = compute_observed(observed, server.record, now)
        assert observed is not None
        began = now
        match decide_lease(observed, me, held, now, TIMING):
            case Lost():
                return now - offset
            case Wait():
                continue
            case Acquire(epoch, over):
                wanted = LeaseRecord(me, TIMING.duration, epoch, over.version if over else "")
            case Renew(epoch, over):
                wanted = LeaseRecord(me, TIMING.duration, epoch, over.version)
        yield look.there
        answer = None if look.request_lost else server.write(wanted)
        now = (yield look.back) + offset
        if held is not None and now >= held.renewed + TIMING.renew_deadline:
            return now - offset  # the guard has ended the process meanwhile
        if answer is None or look.answer_lost:
            observed = compute_observed(observed, server.record, now)
            continue
        observed, held = compute_observed(observed, answer, now), Held(epoch, began)
        reigns.append((me, epoch, now - offset, began - offset + TIMING.renew_deadline))
    return now - offset


def run_contenders(contenders: Sequence[Generator[float, float, object]]) -> None:
    agenda = [(0.0, number) for number, _ in enumerate(contenders)]
    for contender in contenders:
        next(contender)
    heapq.heapify(agenda)
    while agenda:
        now, number = heapq.heappop(agenda)
        try:
            heapq.heappush(agenda, (now + contenders[number].send(now), number))
        except StopIteration:
            continue


@pytest.mark.behaviour("9.1")
@settings(max_examples=300)
@given(
    st.lists(
        st.tuples(
            st.floats(-1e6, 1e6),
            st.lists(st.lists(lucks, min_size=1, max_size=20), min_size=1, max_size=4),
        ),
        min_size=2,
        max_size=3,
    )
)
def test_there_are_never_two_leaders_and_no_epoch_is_used_twice(runs: list[tuple[float, list[list[Luck]]]]) -> None:
    server, reigns = Server(), list[tuple[str, int, float, float]]()
    run_contenders([contend_again(server, f"p{n}", offset, lives, reigns) for n, (offset, lives) in enumerate(runs)])
    for holder, _, begin, end in reigns:
        for other, _, other_begin, other_end in reigns:
            # A float as large as an offset leaves a microsecond of doubt.
            assert holder == other or end <= other_begin + 1e-6 or other_end <= begin + 1e-6
    epochs = [epoch for epoch, _ in server.epochs]
    assert epochs == sorted(set(epochs))


def test_a_lone_contender_comes_to_lead() -> None:
    server, reigns = Server(build_record()), list[tuple[str, int, float, float]]()
    calm = [Luck(2.0, 0.1, 0.1, request_lost=False, answer_lost=False)] * 20
    run_contenders([contend(server, "me", 0.0, calm, reigns)])
    assert {(holder, epoch) for holder, epoch, _, _ in reigns} == {("me", 5)}
