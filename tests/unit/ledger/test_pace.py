"""How long a sync may take, and when Litestream is replaced."""

from collections.abc import Iterator

from alineod.errors import AlineoError, Unavailable
from alineod.ledger.control import _MARGIN as MARGIN
from alineod.ledger.pace import BROKEN_LIMIT, LONG, RATE, SHORT, Next, Pace

BROKEN = Unavailable("NotReplicated", "no page")
SLOW, STUCK = Unavailable("BucketSlow", "late"), Unavailable("ReplicatorStuck", "waits")
AWAY = Unavailable("BucketUnreachable", "away")


def try_for(pace: Pace, seconds: float, failure: AlineoError) -> Iterator[tuple[float, float, Next]]:
    """Tries in a row that all use up their time: when each ended, the time it had, and what follows."""
    now = 0.0
    while now < seconds:
        began, had = now, pace.timeout
        now += had + MARGIN
        yield now, had, pace.note_failure(failure, began, now)
        now += 1.0


def settled() -> Pace:
    pace = Pace()
    pace.note_success(0.1)
    return pace


def test_a_try_that_was_too_short_makes_the_next_one_longer_and_the_longest_is_followed_by_a_short_one() -> None:
    tries = [(had, what) for _, had, what in try_for(settled(), 270.0, SLOW)]
    assert [had for had, _ in tries] == [2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]
    assert {what for _, what in tries} == {Next.TRY_AGAIN}


def test_what_a_sync_took_the_next_one_may_take() -> None:
    pace = Pace()
    pace.note_success(3.0)
    assert pace.timeout == 6.0
    pace.note_success(100.0)
    assert pace.timeout == LONG
    pace.note_success(0.01)
    assert pace.timeout == SHORT


def test_a_bucket_that_refuses_is_asked_as_before() -> None:
    pace = settled()
    assert {pace.note_failure(AWAY, float(now), now + 0.5) for now in range(1000)} == {Next.TRY_AGAIN}
    assert pace.timeout == SHORT


def test_litestream_is_replaced_when_it_keeps_syncs_waiting_and_later_each_time_but_not_ever_later() -> None:
    tries = list(try_for(settled(), 600.0, STUCK))
    replaced = [now for now, _, what in tries if what is Next.REPLACE]
    waits = [after - before for before, after in zip([0.0, *replaced], replaced, strict=False)]
    assert 10 <= waits[0] < 15
    assert 20 <= waits[1] < 30
    assert all(60 <= wait < 70 for wait in waits[3:])
    assert max(had for _, had, _ in tries) <= 60


def test_one_that_is_stuck_after_a_success_is_replaced_as_soon_as_at_first() -> None:
    pace = settled()
    list(try_for(pace, 300.0, STUCK))
    pace.note_success(0.1)
    replaced = [now for now, _, what in try_for(pace, 30.0, STUCK) if what is Next.REPLACE]
    assert 10 <= replaced[0] < 15


def test_whatever_comes_between_counts_as_life() -> None:
    for between in (lambda pace: pace.note_success(1.0), lambda pace: pace.note_failure(AWAY, 5.0, 5.5)):
        pace = settled()
        assert pace.note_failure(STUCK, 0.0, 4.0) is Next.TRY_AGAIN
        between(pace)
        assert pace.note_failure(STUCK, 12.0, 16.0) is Next.TRY_AGAIN


def test_the_first_upload_of_a_large_ledger_is_given_time_for_all_of_it_and_never_less() -> None:
    size = 100 << 20
    for failure in (SLOW, STUCK):
        tries = list(try_for(Pace(size), 20_000.0, failure))
        assert min(had for _, had, _ in tries) >= (size / RATE if failure is SLOW else SHORT)
        assert tries[0][1] == SHORT + size / RATE
        assert max(had for _, had, _ in tries) <= LONG + 8 * size / RATE
    [first, *_] = [now for now, _, what in try_for(Pace(size), 5_000.0, STUCK) if what is Next.REPLACE]
    assert size / RATE < first < size / RATE + 60


def test_after_the_first_upload_a_large_ledger_is_as_any_other() -> None:
    pace = Pace(100 << 20)
    pace.note_success(1.0)
    assert [had for _, had, _ in try_for(pace, 15.0, SLOW)] == [2.0, 4.0, 8.0]


def test_a_term_whose_files_cannot_be_read_is_given_up() -> None:
    pace = settled()
    given_up = [now for now in range(40) if pace.note_failure(BROKEN, float(now), float(now)) is Next.GIVE_UP]
    assert given_up[0] == BROKEN_LIMIT == 30.0
