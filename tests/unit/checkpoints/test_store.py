"""The archives in a pod's volume, over restarts and crashes."""

from pathlib import Path

import msgspec
import pytest

from alineod.checkpoints.store import KEEP_FORKS, Progress, Store, Stored, StoredFork
from alineod.errors import Refused
from alineod.wire.archives import CheckpointReport, ForkResult


def build(turn: int, incarnation: int = 1) -> Stored:
    name = f"{turn:06d}-{incarnation}.tar.zst"
    return Stored(
        report=CheckpointReport(
            turn=turn, turn_id=f"t{turn}", incarnation=incarnation, snapshot_ref=name, sha256="s", md5="m", bytes=1
        )
    )


def build_fork(fork_id: str, uploaded: bool = False) -> StoredFork:
    result = ForkResult(fork_id=fork_id, sha256="s", bytes=1, md5="m", uploaded=uploaded)
    return StoredFork(result=result, read_token="r")


def add(store: Store, stored: Stored) -> None:
    partial = store.scratch / "x.partial"
    partial.write_bytes(b"archive")
    store.add(partial, stored)


def turns(store: Store) -> list[int]:
    return [one.report.turn for one in store.read_all()]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path, 3)


@pytest.mark.behaviour("4.14")
def test_the_newest_are_kept(store: Store, tmp_path: Path) -> None:
    for turn in (1, 2, 10, 9, 11):
        add(store, build(turn))
    assert turns(store) == [11, 10, 9]
    assert len(list(tmp_path.glob("*.tar.zst"))) == len(list(tmp_path.glob("*.json"))) == 3


def test_an_older_one_than_all_that_are_kept_goes_at_once(store: Store) -> None:
    for turn in (5, 6, 7, 1):
        add(store, build(turn))
    assert turns(store) == [7, 6, 5]


def test_progress_survives(store: Store, tmp_path: Path) -> None:
    add(store, build(1))
    assert store.update(msgspec.structs.replace(build(1), progress=Progress.UPLOADED))
    again = Store(tmp_path, 3).find(1, 1)
    assert again is not None
    assert again.progress is Progress.UPLOADED


def test_one_that_was_pushed_out_does_not_come_back(store: Store) -> None:
    for turn in (1, 2, 3, 4):
        add(store, build(turn))
    assert not store.update(build(1))
    assert turns(store) == [4, 3, 2]


def test_sweep_removes_what_is_half(store: Store, tmp_path: Path) -> None:
    add(store, build(1))
    add(store, build(2))
    (tmp_path / "000002-1.json").unlink()  # died before the record
    (tmp_path / "000003-1.tar.zst.partial").write_bytes(b"half")
    (tmp_path / "links.partial").write_bytes(b"half")
    (tmp_path / "000004-1.json").write_bytes(b"no json")
    (tmp_path / "000004-1.tar.zst").write_bytes(b"x")
    (tmp_path / "lost+found").mkdir()
    (tmp_path / "forks" / "f.tar.zst").write_bytes(b"x")
    store.sweep()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "000001-1.json",
        "000001-1.tar.zst",
        "forks",
        "lost+found",
    ]
    assert list((tmp_path / "forks").iterdir()) == []


def test_an_uploaded_fork_keeps_its_record_only(store: Store, tmp_path: Path) -> None:
    partial = tmp_path / "forks" / "f.partial"
    partial.write_bytes(b"x")
    store.add_fork(partial, build_fork("f"))
    assert store.get_fork_path("f").exists()
    store.update_fork(build_fork("f", uploaded=True))
    assert not store.get_fork_path("f").exists()
    store.sweep()
    assert store.find_fork("f") == build_fork("f", uploaded=True)


def test_forks_have_a_limit(store: Store, tmp_path: Path) -> None:
    for number in range(KEEP_FORKS + 2):
        partial = tmp_path / "forks" / "f.partial"
        partial.write_bytes(b"x")
        store.add_fork(partial, build_fork(f"f{number}"))
    assert store.find_fork("f0") is None
    assert store.find_fork("f2") is not None


@pytest.mark.parametrize("name", ["", "..", "../x", "a/b", ".hidden", "x" * 300, "a\0b"])
def test_fork_ids(store: Store, name: str) -> None:
    with pytest.raises(Refused, match="is no id of a fork"):
        store.get_fork_path(name)


@pytest.mark.parametrize("name", ["", "../000001-1.tar.zst", "x/000001-1.tar.zst", "token"])
def test_snapshot_refs(store: Store, name: str) -> None:
    with pytest.raises(Refused, match="is no file name of a checkpoint"):
        store.get_path(name)
