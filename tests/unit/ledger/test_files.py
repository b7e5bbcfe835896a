"""Which files of a replica a restore gets, and when it must not go on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alineod.errors import Damaged
from alineod.ledger.files import ReplicaFile, choose_files, parse_file


def name(level: int, first: int, last: int) -> str:
    return f"{level:04d}/{first:016x}-{last:016x}.ltx"


@pytest.mark.parametrize(
    ("found", "files"),
    [
        # one upload after another
        ([(0, 1, 1), (0, 2, 2), (0, 3, 3)], [(0, 1, 1), (0, 2, 2), (0, 3, 3)]),
        # joined ones in the place of many
        ([(0, 1, 1), (0, 2, 2), (0, 3, 3), (0, 4, 4), (1, 1, 3)], [(1, 1, 3), (0, 4, 4)]),
        # a snapshot in the place of all before it
        ([(0, 11, 11), (1, 6, 10), (2, 1, 8), (9, 1, 9)], [(9, 1, 9), (1, 6, 10), (0, 11, 11)]),
        ([(0, 11, 11), (1, 9, 10), (2, 5, 8), (9, 1, 8), (9, 1, 4)], [(9, 1, 8), (1, 9, 10), (0, 11, 11)]),
    ],
)
def test_the_fewest_files_that_hold_everything(
    found: list[tuple[int, int, int]], files: list[tuple[int, int, int]]
) -> None:
    choice = choose_files((name(*one), 100) for one in found)
    assert [(file.level, file.first, file.last) for file in choice.files] == files


def test_an_upload_that_was_cut_off_at_the_end_is_passed_over() -> None:
    """It was never confirmed; had it been, something would stand in its place."""
    choice = choose_files([(name(0, 1, 1), 100), (name(0, 2, 2), 0)])
    assert choice.last == 1


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ([], "The replica lacks transaction 1; the last one it holds anything of is 0."),
        ([(name(0, 1, 1), 100), (name(0, 3, 3), 100)], "lacks transaction 2; the last one it holds anything of is 3."),
        ([(name(0, 1, 1), 100), (name(0, 2, 2), 0), (name(0, 3, 3), 100)], "lacks transaction 2"),
        ([(name(0, 2, 2), 100)], "lacks transaction 1"),
        ([("0000/other", 100), ("readme", 3)], "lacks transaction 1"),
    ],
)
def test_a_gap_is_never_restored_over(found: list[tuple[str, int]], message: str) -> None:
    with pytest.raises(Damaged) as caught:
        choose_files(found)
    assert caught.value.reason == "ReplicaDamaged"
    assert message in caught.value.message


FILES = st.lists(
    st.tuples(st.integers(0, 9), st.integers(1, 12), st.integers(0, 4)).map(lambda t: (t[0], t[1], t[1] + t[2])),
    max_size=12,
)


@given(FILES)
def test_what_is_chosen_is_a_chain_to_the_newest_or_nothing(found: list[tuple[int, int, int]]) -> None:
    held = {number for _, first, last in found for number in range(first, last + 1)}
    try:
        choice = choose_files((name(*one), 1) for one in found)
    except Damaged:
        assert not held or held != set(range(1, max(held) + 1))
        return
    assert held == set(range(1, choice.last + 1))
    last = 0
    for file in choice.files:
        assert file.first <= last + 1 <= file.last
        last = file.last
    assert last == choice.last


def test_names() -> None:
    file = ReplicaFile(1, 255, 3)
    assert file.name == "0003/0000000000000001-00000000000000ff.ltx"
    assert parse_file(file.name) == file
    assert parse_file("0003/1-2.ltx") is None
