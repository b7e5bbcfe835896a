"""Whom a freeze concerns."""

import pytest

from alineod.bridge.freeze import find_others
from alineod.bridge.proc import Process, parse_stat
from alineod.bridge.signals import is_shutdown

TABLE = [
    Process(1, 0, "S"),
    Process(10, 1, "S"),
    Process(12, 10, "R"),
    Process(11, 12, "T"),
    Process(20, 1, "S"),
]


@pytest.mark.parametrize(("own", "others"), [(1, {10, 11, 12, 20}), (10, {11, 12}), (12, {11}), (20, set())])
def test_everyone_for_pid_1_else_the_descendants(own: int, others: set[int]) -> None:
    assert {process.pid for process in find_others(TABLE, own)} == others


@pytest.mark.parametrize("name", ["sh", "a b", "x) R 9 (y", "(", ")"])
def test_a_process_may_have_any_name(name: str) -> None:
    assert parse_stat(f"42 ({name}) S 7 42 42 0 -1") == Process(42, 7, "S")


@pytest.mark.parametrize(
    ("own", "sender", "counts"), [(1, 0, True), (1, 99, False), (1, 1, False), (77, 99, True), (77, 0, True)]
)
def test_which_signals_are_a_shutdown(own: int, sender: int, counts: bool) -> None:
    assert is_shutdown(own, sender) is counts
