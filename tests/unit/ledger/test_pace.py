"""How long a sync may take, and when Litestream is replaced."""

from alineod.errors import Unavailable
from alineod.ledger.pace import BROKEN_LIMIT, LONG, RATE, SHORT, STUCK_LIMIT, Next, Pace

BROKEN = Unavailable("NotReplicated", "no page")
SLOW, STUCK = Unavailable("BucketSlow", "late"), Unavailable("ReplicatorStuck", "waits")
AWAY = Unavailable("BucketUnreachable", "away")


def test_a_try_that_was_too_short_makes_the_next_one_longer() -> None:
    pace, timeouts = Pace(), list[float]()
    for _ in range(5):
        timeouts.append(pace.timeout)
        assert pace.note_failure(SLOW, 0.0) is Next.TRY_AGAIN
    assert timeouts == [2.0, 4.0, 8.0, 16.0, 32.0]


def test_the_longest_try_is_followed_by_a_short_one_that_sees_a_bucket_that_is_back() -> None:
    pace, timeouts = Pace(), list[float]()
    for _ in range(8):
        timeouts.append(pace.timeout)
        pace.note_failure(SLOW, 0.0)
    assert timeouts[4:] == [32.0, 64.0, 2.0, 4.0]


def test_the_first_upload_of_a_large_ledger_is_given_time_for_all_of_it() -> None:
    large = Pace(500 * RATE)
    assert large.timeout == 502.0
    assert large.note_failure(STUCK, 0.0) is large.note_failure(STUCK, 509.0) is Next.TRY_AGAIN
    assert large.note_failure(STUCK, 510.0) is Next.REPLACE
    large.note_success(400.0)
    assert large.timeout == LONG
    assert large.note_failure(STUCK, 600.0) is Next.TRY_AGAIN
    assert large.note_failure(STUCK, 610.0) is Next.REPLACE


def test_what_a_sync_took_the_next_one_may_take() -> None:
    pace = Pace()
    pace.note_success(3.0)
    assert pace.timeout == 6.0
    pace.note_success(100.0)
    assert pace.timeout == LONG
    pace.note_success(0.01)
    assert pace.timeout == SHORT


def test_a_bucket_that_refuses_is_asked_as_before() -> None:
    pace = Pace()
    assert {pace.note_failure(AWAY, float(now)) for now in range(1000)} == {Next.TRY_AGAIN}
    assert pace.timeout == SHORT


def test_litestream_is_replaced_when_it_keeps_syncs_waiting_and_again_later_and_later_if_the_next_one_does() -> None:
    pace = Pace()
    replaced = [now for now in range(160) if pace.note_failure(STUCK, float(now)) is Next.REPLACE]
    assert replaced == [10, 31, 72, 153]
    assert STUCK_LIMIT == 10.0


def test_whatever_comes_between_counts_as_life() -> None:
    for between in (lambda pace: pace.note_success(1.0), lambda pace: pace.note_failure(AWAY, 5.0)):
        pace = Pace()
        assert pace.note_failure(STUCK, 0.0) is Next.TRY_AGAIN
        between(pace)
        assert pace.note_failure(STUCK, 12.0) is Next.TRY_AGAIN


def test_a_term_whose_files_cannot_be_read_is_given_up() -> None:
    pace = Pace()
    given_up = [now for now in range(40) if pace.note_failure(BROKEN, float(now)) is Next.GIVE_UP]
    assert given_up[0] == BROKEN_LIMIT == 30.0
