"""The object that says which term counts."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from alineod.clock import SystemClock
from alineod.errors import Damaged, Fenced, Unavailable
from alineod.ledger import tidy
from alineod.ledger.fence import Current, Fence, Seen
from alineod.ledger.replica import delete_former_terms, read_terms
from alineod.ledger.replicate import Remote
from alineod.wire.base import encode
from tests.support.memory_bucket import MemoryBucket
from tests.unit.ledger.contenders import CopyingReplicator, Gate

PREFIX = "i/ledger/"
FIRST = Current(epoch=1, data=0, owner="a")


@pytest.fixture
def bucket() -> MemoryBucket:
    return MemoryBucket()


@pytest.fixture
def fence(bucket: MemoryBucket) -> Fence:
    return Fence(bucket, PREFIX)


def test_claimed_published_and_asked(fence: Fence) -> None:
    assert fence.read() is None
    claimed = fence.swap(None, FIRST)
    published = fence.swap(claimed, Current(epoch=1, data=1, owner="a"))
    assert fence.read() == published
    fence.check(published)


def test_only_over_what_was_read(fence: Fence) -> None:
    first = fence.swap(None, FIRST)
    fence.swap(first, Current(epoch=2, data=0, owner="b"))
    for over in (None, first):
        with pytest.raises(Unavailable) as caught:
            fence.swap(over, Current(epoch=2, data=0, owner="a"))
        assert caught.value.reason == "TermTaken"
        assert caught.value.message == "b began term 2 of the ledger in i/ledger/CURRENT before this process could."


@pytest.mark.behaviour("9.2")
def test_who_was_replaced_is_told_by_whom(fence: Fence) -> None:
    mine = fence.swap(None, FIRST)
    fence.swap(mine, Current(epoch=2, data=0, owner="alineod-xyz"))
    with pytest.raises(Fenced) as caught:
        fence.check(mine)
    assert caught.value.message == (
        "alineod-xyz began term 2 of the ledger in i/ledger/CURRENT; this process has term 1."
    )  # fmt: skip


def test_a_write_whose_answer_was_lost_is_recognised(bucket: MemoryBucket, fence: Fence) -> None:
    """The client sends it again, and the store refuses the second one."""
    fence.swap(None, FIRST)
    assert fence.swap(None, FIRST) == fence.read()


def test_what_nobody_wrote_there_is_not_guessed_at(bucket: MemoryBucket, fence: Fence) -> None:
    bucket.put(f"{PREFIX}CURRENT", b"{")
    with pytest.raises(Damaged) as caught:
        fence.read()
    assert caught.value.reason == "FenceDamaged"
    assert "Put its newest version back, or delete it to go on from the newest term" in caught.value.message


def test_an_object_that_was_put_back_to_what_it_had_been_is_not_believed(bucket: MemoryBucket, fence: Fence) -> None:
    claimed = fence.swap(None, FIRST)
    old = fence.swap(claimed, Current(epoch=1, data=1, owner="a"))
    bucket.put(PREFIX + "e000000001/0000/a.ltx", b"1")
    assert fence.look().published == 1
    fence.swap(old, Current(epoch=2, data=1, owner="b"))
    bucket.put(PREFIX + "e000000002/0000/a.ltx", b"2")
    assert (fence.look().published, fence.look().begun) == (1, 2)
    bucket.put(PREFIX + "CURRENT", encode(old.current))
    with pytest.raises(Damaged) as caught:
        fence.look()
    assert caught.value.reason == "FenceOutdated"
    assert "speaks of term 1, and there is a term 2" in caught.value.message
    bucket.delete(PREFIX + "CURRENT")  # as the sentence says
    assert (fence.look().published, fence.look().begun) == (2, 2)


def test_a_term_that_is_claimed_while_terms_are_looked_at_is_no_contradiction(
    bucket: MemoryBucket, fence: Fence, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, read = fence.swap(None, FIRST), fence.read

    def claim_first() -> Seen | None:
        fence.swap(seen, Current(epoch=2, data=0, owner="b"))
        bucket.put(PREFIX + "e000000002/0000/a.ltx", b"2")
        return read()

    monkeypatch.setattr(fence, "read", claim_first)
    assert fence.look().begun == 2


def test_former_terms_go_when_they_are_old(bucket: MemoryBucket) -> None:
    for key in ("CURRENT", "e000000001/0000/a", "e000000001/0001/b", "e000000002/0000/a", "e000000003/0000/a", "other"):
        bucket.put(PREFIX + key, b"x")
    now = SystemClock().now()

    def left() -> list[Any]:
        return [found.key[len(PREFIX) :] for found in bucket.list(PREFIX)]

    assert delete_former_terms(bucket, PREFIX, 2, now - timedelta(hours=1)) == 0
    assert len(left()) == 6
    assert sorted(read_terms(bucket, PREFIX)) == [1, 2, 3]
    assert delete_former_terms(bucket, PREFIX, 2, now + timedelta(hours=1)) == 2
    assert left() == ["CURRENT", "e000000002/0000/a", "e000000003/0000/a", "other"]


async def test_tidying_goes_on_when_the_bucket_was_away(
    bucket: MemoryBucket, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tidy, "FIRST", 0.0)
    monkeypatch.setattr(tidy, "EVERY", 0.0)
    monkeypatch.setattr(tidy, "AGE", timedelta(hours=-1))
    bucket.put(f"{PREFIX}e000000001/0000/a", b"x")
    bucket.failure = Unavailable("BucketUnreachable", "No answer.")
    remote = Remote(bucket, PREFIX, CopyingReplicator(bucket, Gate()))
    task = asyncio.create_task(tidy.tidy_former_terms(remote, 2, SystemClock()))
    while "could not be removed: No answer." not in caplog.text:  # noqa: ASYNC110  (it waits for another thread)
        await asyncio.sleep(0.01)
    bucket.failure = None
    while list(bucket.list(PREFIX)):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    task.cancel()
