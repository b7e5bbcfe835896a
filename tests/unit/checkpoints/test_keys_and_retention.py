"""Keys of the bucket, and which checkpoints may go."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alineod.bucket.port import StoredObject
from alineod.checkpoints.keys import (
    CheckpointName,
    build_base,
    build_checkpoint_key,
    build_checkpoint_prefix,
    build_fork_key,
    build_probe_key,
    parse_checkpoint_name,
)
from alineod.checkpoints.retention import KnownCheckpoint, decide_expired

NOW = datetime(2030, 1, 1, tzinfo=UTC)
BASE = "a/b"


def test_keys() -> None:
    assert build_base("/some/prefix/", "main") == "some/prefix/main"
    assert build_base("", "main") == "main"
    assert build_checkpoint_key("p/i", "ns", "sw-lead", 7, 2) == "p/i/checkpoints/ns/sw-lead/000007-2.tar.zst"
    assert build_checkpoint_key("p/i", "ns", "a", 7, 2).startswith(build_checkpoint_prefix("p/i", "ns", "a"))
    assert build_fork_key("p/i", "ns", "kid", "f1") == "p/i/forks/ns/kid/f1.tar.zst"
    assert build_probe_key("p/i", "x") == "p/i/probe/x"


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        ("000007-2.tar.zst", CheckpointName(7, 2)),
        ("p/checkpoints/ns/a/1234567-10.tar.zst", CheckpointName(1234567, 10)),
        ("000007-2.tar.zst.partial", None),
        ("7-2.tar.zst", None),
        ("notes.txt", None),
        ("", None),
    ],
)
def test_names(name: str, parsed: CheckpointName | None) -> None:
    assert parse_checkpoint_name(name) == parsed


def build_object(turn: int, age: float = 3600.0, incarnation: int = 1) -> StoredObject:
    key = build_checkpoint_key(BASE, "ns", "a", turn, incarnation)
    return StoredObject(key, 1, "e", NOW - timedelta(seconds=age))


def known(*turns: int, aside: dict[int, float] | None = None) -> list[KnownCheckpoint]:
    """Checkpoints of the ledger by turn; `aside` gives seconds since one was left behind."""
    since = {turn: NOW - timedelta(seconds=age) for turn, age in (aside or {}).items()}
    return [KnownCheckpoint(build_object(turn).key, since.get(turn)) for turn in turns]


@pytest.mark.behaviour("4.14", "4.15")
@pytest.mark.parametrize(
    ("why", "objects", "recorded", "gone"),
    [
        ("nothing there", [], [], []),
        ("three are kept", [1, 2, 3], known(1, 2, 3), []),
        ("the fourth goes", [1, 2, 3, 4], known(1, 2, 3, 4), [1]),
        ("young ones stay", [build_object(1, 599), 2, 3, 4], known(1, 2, 3, 4), []),
        ("one that is not recorded yet stays", [1, 2, 3, 4], known(1, 2, 3), []),
        ("not recorded and old goes", [1, 2, 3, 4], known(2, 3, 4), [1]),
        ("not recorded, and too few are newer", [1, 2, 3], known(2, 3), []),
        ("those aside do not count", [1, 2, 3, 4], known(1, 2, 3, 4, aside={4: 60.0}), []),
        ("those aside stay seven days", [1, 2, 3, 4], known(1, 2, 3, 4, aside={1: 6 * 86400.0}), []),
        ("and then go", [1, 2, 3, 4], known(1, 2, 3, 4, aside={1: 7 * 86400.0}), [1]),
        ("a recorded one that is gone still counts", [1, 3, 4], known(1, 2, 3, 4), [1]),
    ],
)
def test_expired(why: str, objects: list[int | StoredObject], recorded: list[KnownCheckpoint], gone: list[int]) -> None:
    found = [build_object(one) if isinstance(one, int) else one for one in objects]
    assert decide_expired(found, recorded, NOW) == [build_object(turn).key for turn in gone], why


def test_a_foreign_key_is_never_named() -> None:
    foreign = StoredObject("a/b/checkpoints/ns/a/notes.txt", 1, "e", NOW - timedelta(days=400))
    assert decide_expired([foreign], known(1, 2, 3, 4), NOW) == []


def test_an_earlier_incarnation_of_a_turn_is_older() -> None:
    objects = [build_object(4, incarnation=1), build_object(4, incarnation=2)]
    recorded = [KnownCheckpoint(build_object(4, incarnation=2).key), *known(5, 6)]
    assert decide_expired(objects, recorded, NOW) == [objects[0].key]


@given(
    turns=st.lists(st.integers(1, 30), unique=True),
    recorded=st.sets(st.integers(1, 30)),
    keep=st.integers(1, 5),
    age=st.floats(0, 5000),
)
def test_the_newest_recorded_ones_never_go(turns: list[int], recorded: set[int], keep: int, age: float) -> None:
    objects = [build_object(turn, age) for turn in turns]
    gone = decide_expired(objects, known(*recorded), NOW, keep)
    newest = sorted(recorded, reverse=True)[:keep]
    kept = {build_object(turn).key for turn in turns if turn in newest or turn > max(recorded, default=0)}
    assert not kept & set(gone)
    left = [one for one in objects if one.key not in gone]
    assert decide_expired(left, known(*recorded), NOW, keep) == []
