"""What stays behind and is named, and what an archive says of itself."""

# Names are bytes here, which pathlib does not know.
# ruff: noqa: PTH208

import io
import json
import os
import socket
import stat
import tarfile
from pathlib import Path

import msgspec
import pytest
import zstandard

from alineod.checkpoints.archive.format import MAX_DEPTH
from alineod.wire.turns import Session
from tests.support.archives import HEAD, pack, restore
from tests.support.trees import read_tree
from tests.support.users import AS_ROOT, as_someone


@pytest.mark.behaviour("4.19")
def test_what_is_no_file_is_named(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(home / "fifo")
    monkeypatch.chdir(home)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("socket")
    listener.close()
    reasons = {"home/fifo": "a FIFO is not packed", "home/socket": "a socket is not packed"}
    if AS_ROOT:
        try:
            os.mknod(home / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
            reasons["home/null"] = "a device is not packed"
        except PermissionError:
            pass
    packed, manifest = pack(tmp_path)
    assert {note.path: note.reason for note in manifest.skipped} == reasons
    assert manifest.skipped_count == len(reasons)
    restore(packed, tmp_path / "back")
    assert set(read_tree(tmp_path / "back" / "home")) == {b""}


def test_what_cannot_be_read_is_named(anywhere: Path) -> None:
    def act() -> None:
        (anywhere / "home").mkdir()
        (anywhere / "home" / "file").touch(mode=0)
        (anywhere / "home" / "dir").mkdir(mode=0)
        _, manifest = pack(anywhere)
        assert {note.path for note in manifest.skipped} == {"home/file", "home/dir"}

    as_someone(act)


def test_too_deep_is_named(tmp_path: Path, home: Path) -> None:
    here = os.open(home, os.O_RDONLY)
    for _ in range(MAX_DEPTH + 3):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    packed, manifest = pack(tmp_path)
    assert [note.reason for note in manifest.skipped] == [f"it lies deeper than {MAX_DEPTH} directories"]
    restore(packed, tmp_path / "back")
    assert manifest.directories == MAX_DEPTH + 2


def test_reserved_names_stay_behind(tmp_path: Path, home: Path) -> None:
    for name in (".alineo-staging", ".alineo-placing", "lost+found"):
        (home / name).mkdir()
        (home / "below" / name).mkdir(parents=True)
    packed, manifest = pack(tmp_path)
    assert {note.reason for note in manifest.skipped} == {"the name is reserved"}
    restore(packed, tmp_path / "back")
    assert sorted(os.listdir(tmp_path / "back" / "home")) == ["below"]
    assert len(os.listdir(tmp_path / "back" / "home" / "below")) == 3


@pytest.mark.behaviour("4.2")
def test_caches_stay_behind(tmp_path: Path, home: Path) -> None:
    out = [
        "home/.cache/pip/x", "home/.npm/x", "home/.cargo/registry/x", "home/go/pkg/x", "home/.local/share/uv/x",
        "home/.pi/agent/auth.lock", "home/proj/node_modules/.cache/x", "workspace/node_modules/.cache/x",
        "workspace/a/b/node_modules/.cache/x", "home/own/x", "home/logs/a.log", "workspace/build/x",
    ]  # fmt: skip
    kept = [
        "home/proj/.cache/x", "home/.cargo/bin/x", "home/.pi/agent/deep/auth.lock", "home/.pi/agent/settings.json",
        "home/logs/a.txt", "home/logs/deep/a.log", "workspace/own/x", "home/proj/build/x", "workspace/.npm/x",
    ]  # fmt: skip
    for path in out + kept:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(path)
    packed, manifest = pack(tmp_path, extra=["own", "logs/*.log", "/workspace/build", ""])
    restore(packed, tmp_path / "back")
    back = {str(path.relative_to(tmp_path / "back")) for path in (tmp_path / "back").rglob("*") if path.is_file()}
    assert back == set(kept)
    assert manifest.excluded_count == len(manifest.excluded) == len(out)
    assert "home/.cache" in manifest.excluded


@pytest.mark.behaviour("4.3", "4.4")
def test_head_and_journal(tmp_path: Path) -> None:
    journal = tmp_path / "control" / "journal"
    journal.mkdir(parents=True)
    records = [
        {"time": 1.0, "turn": turn, "turnId": f"t{turn}", "event": "message", "seq": turn} for turn in (1, 2, 2, 3)
    ]
    lines = [json.dumps(record) for record in records]
    (journal / "000001.jsonl").write_text("\n".join(lines[:2]) + "\n")
    (journal / "000002.jsonl").write_text("\n".join(lines[2:]) + '\nnot json\n{"turn": 2, "turnId": "t2", "ev')
    (journal / "outside").symlink_to("/etc/passwd")
    os.mkfifo(journal / "fifo")
    session = Session(id="s", leaf="l", file=".pi/x", bytes=3)
    head = msgspec.structs.replace(HEAD, incarnation=4, turn=2, turn_id="t2", session=session)
    packed, manifest = pack(tmp_path, journal=journal, head=head)
    assert manifest.journal_records == 2
    with tarfile.open(fileobj=io.BytesIO(zstandard.ZstdDecompressor().decompressobj().decompress(packed.body))) as tar:
        member = tar.extractfile("alineo/journal.jsonl")
        assert member is not None
        assert member.read().decode().splitlines() == lines[1:3]
    reader = restore(packed, tmp_path / "back")
    assert reader.head == head
    assert reader.manifest == manifest


def test_a_journal_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "1.jsonl").write_text('{"turn": 1, "turnId": "t1"}\n')
    (tmp_path / "journal").symlink_to("real")
    _, manifest = pack(tmp_path, journal=tmp_path / "journal", head=HEAD)
    assert manifest.journal_records == 0
