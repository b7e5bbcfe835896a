"""Take-over and write loop with two contenders: whatever is cut off or held up, what was acknowledged stands once."""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alineod.clock import SystemClock
from alineod.ledger.fence import Fence
from alineod.ledger.open import open_ledger
from alineod.ledger.start import Opening
from tests.support.memory_bucket import MemoryBucket
from tests.unit.ledger.contenders import PREFIX, Contender, build_remote_in_memory

CALLS = 24
"""More than a take-over and a few acknowledgements take."""


class Pair:
    """Two pods and their bucket."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.bucket = directory, MemoryBucket()
        self.a = Contender("a", self.bucket, directory / "a")
        self.b = Contender("b", self.bucket, directory / "b")

    def serve(self, contender: Contender, acknowledged: int = 2) -> None:
        """Until it was told that so many more of its events are safe."""
        enough = len(contender.acknowledged) + acknowledged
        for _ in range(20 * CALLS):
            contender.turn()
            if len(contender.acknowledged) >= enough:
                return
        raise AssertionError(f"{contender.name} does not come to serve: {contender.ends}")

    async def check(self) -> None:
        """The bucket alone brings back every acknowledged row as it was acknowledged, and none twice."""
        self.a.kill()
        self.b.kill()
        opening = Opening(self.directory / "check", "i", 1, owner="check")
        ledger = await open_ledger(opening, SystemClock(), build_remote_in_memory(self.bucket))
        rows = {row.seq: row for row in await ledger.read(limit=100_000)}
        await ledger.close()
        lost = [row for row in self.a.acknowledged + self.b.acknowledged if rows.get(row.seq) != row]
        assert not lost, f"lost: {lost}"
        assert len({row.id for row in rows.values()}) == len(rows)


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path)


@pytest.mark.parametrize("calls", range(1, CALLS))
@pytest.mark.behaviour("9.1", "9.2", "9.4")
async def test_one_is_held_up_at_any_call_while_the_other_takes_over(pair: Pair, calls: int) -> None:
    for _ in range(calls):
        pair.a.turn()
    pair.serve(pair.b)
    for _ in range(CALLS):  # the first one goes on as if nothing had been
        if not pair.a.gate.turn():
            break
    pair.serve(pair.b)
    await pair.check()


@pytest.mark.parametrize("wipe", [False, True], ids=["volume kept", "volume gone"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("calls", range(1, CALLS))
@pytest.mark.behaviour("9.4", "9.6")
async def test_one_dies_at_any_call(pair: Pair, calls: int, after: bool, wipe: bool) -> None:
    pair.serve(pair.b)
    pair.b.kill()
    for _ in range(calls):
        pair.a.turn()
    pair.a.kill(after=after, wipe=wipe)
    pair.serve(pair.a if calls % 2 else pair.b)
    await pair.check()


TURN, KILL, KILL_AFTER, WIPE = "turn", "kill", "kill after", "wipe"
MOVES = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from([*[TURN] * 12, KILL, KILL_AFTER, WIPE]), st.integers(1, 8)),
    max_size=30,
)


@given(MOVES)
@settings(max_examples=40)
async def test_any_interleaving_of_two(moves: list[tuple[str, str, int]]) -> None:
    with TemporaryDirectory() as directory:
        pair = Pair(Path(directory))
        for name, move, times in moves:
            contender = pair.a if name == "a" else pair.b
            if move == TURN:
                for _ in range(times):
                    contender.turn()
            else:
                contender.kill(after=move == KILL_AFTER, wipe=move == WIPE)
        await pair.check()


async def test_without_the_question_before_it_an_acknowledged_event_is_lost(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: these tests can fail."""
    monkeypatch.setattr(Fence, "check", lambda self, published: None)
    pair.serve(pair.a)
    pair.serve(pair.b)
    pair.serve(pair.a)
    with pytest.raises(AssertionError, match="lost"):
        await pair.check()


async def test_a_term_that_was_never_published_is_not_begun_from(pair: Pair) -> None:
    """Its upload may be cut off; whoever comes next takes the published one, or an empty ledger at first."""
    while not list(pair.bucket.list(f"{PREFIX}e000000001/")):
        pair.a.turn()
    pair.a.kill(wipe=True)
    pair.bucket.put(f"{PREFIX}e000000001/db", b"")
    pair.serve(pair.b)
    await pair.check()


async def test_the_object_was_deleted(pair: Pair) -> None:
    """Who leads ends, and the next one goes on from the newest term in the bucket."""
    pair.serve(pair.a)
    pair.bucket.delete(f"{PREFIX}CURRENT")
    while pair.a.gate.turn():
        pass
    assert pair.a.ends == ["LaterTerm"]
    pair.a.kill(wipe=True)
    shutil.rmtree(pair.directory / "a", ignore_errors=True)
    pair.serve(pair.a)
    await pair.check()
