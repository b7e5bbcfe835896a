"""What is packed comes back: every kind of file, time, mode, owner and name; and what stays behind is named."""

# Names are bytes here, which pathlib does not know.
# ruff: noqa: PTH101, PTH102, PTH118, PTH123, PTH208, PTH211

import io
import json
import os
import shutil
import socket
import stat
import subprocess
import tarfile
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from alineod.checkpoints.archive.format import MAX_DEPTH, RESERVED
from alineod.checkpoints.archive.read import verify_file
from alineod.wire.turns import Session
from tests.support.archives import HEAD, pack, restore
from tests.support.trees import Node, read_tree

AS_ROOT = os.geteuid() == 0


def assert_comes_back(base: Path) -> dict[bytes, Node]:
    """Pack, restore elsewhere, compare; returns the tree of the home."""
    packed, _ = pack(base)
    restore(packed, base / "back")
    for name in ("home", "workspace"):
        assert read_tree(base / "back" / name) == read_tree(base / name)
    return read_tree(base / "home")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "home"
    path.mkdir()
    return path


def test_an_empty_sandbox(tmp_path: Path) -> None:
    assert_comes_back(tmp_path)


@pytest.mark.behaviour("4.17")
def test_modes_and_times(tmp_path: Path, home: Path) -> None:
    for mode in (0o000, 0o400, 0o644, 0o755, 0o6755, 0o1777):
        file = home / f"f{mode:o}"
        file.write_text(str(mode))
        file.chmod(mode)
        os.utime(file, ns=(1, 1_700_000_000_123_456_789 + mode))
    inner = home / "sticky" / "inner"
    inner.mkdir(parents=True)
    (inner / "f").write_text("x")
    for directory, mode in ((inner, 0o2555), (home / "sticky", 0o1777), (home, 0o750)):
        os.utime(directory, ns=(1, 999_999_999_000_000_001))
        directory.chmod(mode)
    tree = assert_comes_back(tmp_path)
    assert tree[b"f6755"].mode == 0o6755
    assert tree[b""].mode == 0o750
    assert tree[b"sticky/inner"].mtime_ns == 999_999_999_000_000_001


@pytest.mark.parametrize("moment", [0, -1, -1_500_000_000, 1, 2**33 * 10**9 + 5])
def test_odd_times(tmp_path: Path, home: Path, moment: int) -> None:
    (home / "f").write_text("x")
    os.utime(home / "f", ns=(0, moment))
    assert assert_comes_back(tmp_path)[b"f"].mtime_ns == (home / "f").stat().st_mtime_ns


@pytest.mark.behaviour("4.17")
@pytest.mark.skipif(not AS_ROOT, reason="only root gives files away")
def test_owners(tmp_path: Path, home: Path) -> None:
    (home / "dir").mkdir()
    (home / "dir" / "file").write_text("x")
    (home / "link").symlink_to("dir")
    for path, owner in ((home / "dir" / "file", 1000), (home / "dir", 2_000_000_000), (home / "link", 3)):
        os.chown(path, owner, owner + 1, follow_symlinks=False)
    (home / "dir" / "file").chmod(0o4755)
    assert assert_comes_back(tmp_path)[b"dir/file"].mode == 0o4755


@pytest.mark.behaviour("4.17")
def test_names_that_are_not_text(tmp_path: Path, home: Path) -> None:
    names = [
        b"\xff\xfe",
        "é".encode(),
        b"new\nline",
        b" spaces ",
        b"-",
        b"a" * 255,
        b"\xff" * 200,
        b"back\\slash",
        b"=",
    ]
    for name in names:
        with open(os.fsencode(home) + b"/" + name, "wb") as file:
            file.write(name)
        os.symlink(name * 5, os.fsencode(home) + b"/l" + name[:200])
    assert set(names) <= set(assert_comes_back(tmp_path))


def test_long_paths(tmp_path: Path, home: Path) -> None:
    deep = home
    for number in range(30):
        deep = deep / f"{number:03d}-{'n' * 90}"
    deep.mkdir(parents=True)
    (deep / "file").write_text("deep")
    os.link(deep / "file", home / "linked")
    assert len(assert_comes_back(tmp_path)) == 33


@pytest.mark.behaviour("4.17")
def test_hard_links(tmp_path: Path, home: Path) -> None:
    (home / "a").mkdir()
    (home / "a" / "one").write_text("same")
    (home / "b").mkdir()
    for name in ("two", "three"):
        os.link(home / "a" / "one", home / "b" / name)
    (tmp_path / "workspace").mkdir()
    os.link(home / "a" / "one", tmp_path / "workspace" / "elsewhere")  # volumes cannot share an inode: a copy
    (tmp_path / "workspace" / "more").hardlink_to(home / "a" / "one")
    packed, manifest = pack(tmp_path)
    restore(packed, tmp_path / "back")
    assert read_tree(tmp_path / "back" / "home") == read_tree(home)
    assert (manifest.files, manifest.hard_links) == (2, 3)


@pytest.mark.behaviour("4.17")
def test_sparse_files_stay_sparse(tmp_path: Path, home: Path) -> None:
    shapes = {"hole": [], "head": [0], "tail": [511], "both": [0, 511], "many": list(range(0, 512, 3))}
    for name, blocks in shapes.items():
        with (home / name).open("wb") as file:
            file.truncate(32 << 20)
            for block in blocks:
                file.seek(block << 16)
                file.write(os.urandom(5000))
    packed, _ = pack(tmp_path)
    assert packed.size < 4 << 20
    restore(packed, tmp_path / "back")
    for name in shapes:
        was, came = (home / name).stat(), (tmp_path / "back" / "home" / name).stat()
        assert (came.st_size, came.st_blocks) == (was.st_size, was.st_blocks)
    assert read_tree(tmp_path / "back" / "home") == read_tree(home)


@pytest.mark.behaviour("4.18")
def test_links_stay_links(tmp_path: Path, home: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    for name, target in (("abs", "/etc/passwd"), ("up", "../outside"), ("self", "self"), ("dangling", "no/where")):
        (home / name).symlink_to(target)
    (home / "dir").mkdir()
    (home / "dir" / "out").symlink_to(outside, target_is_directory=True)
    packed, manifest = pack(tmp_path)
    restore(packed, tmp_path / "back")
    assert read_tree(tmp_path / "back" / "home") == read_tree(home)
    assert manifest.symlinks == 5
    assert b"secret" not in zstandard.ZstdDecompressor().stream_reader(io.BytesIO(packed.body)).readall()


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


@pytest.mark.behaviour("4.17")
def test_a_user_who_is_not_root(anywhere: Path) -> None:
    """What such a user may not write to still moves into place; owners are the user's own."""

    def act() -> None:
        (anywhere / "home" / "locked" / "below").mkdir(parents=True)
        (anywhere / "home" / "locked" / "below" / "file").write_text("x")
        os.link(anywhere / "home" / "locked" / "below" / "file", anywhere / "home" / "again")
        (anywhere / "home" / "link").symlink_to("again")
        for name in ("locked/below/file", "locked/below", "locked", ""):
            (anywhere / "home" / name).chmod(0o555)
        tree = assert_comes_back(anywhere)
        assert tree[b"locked/below"].mode == 0o555
        packed, _ = pack(anywhere)
        (anywhere / "back" / "home").chmod(0o755)
        restore(packed, anywhere / "back")
        assert read_tree(anywhere / "back" / "home") == read_tree(anywhere / "home")

    as_someone(act)


@pytest.fixture
def anywhere() -> Iterator[Path]:
    """A directory that every user may enter."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o777)
    yield path
    shutil.rmtree(path)


def as_someone(act: Callable[[], None]) -> None:
    """Run it as a user without rights; where the tests run as one already, just run it."""
    if not AS_ROOT:
        act()
        return
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            act()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


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


def test_other_programs_read_it(tmp_path: Path, home: Path) -> None:
    (home / "plain").write_bytes(os.urandom(70_000))
    os.link(home / "plain", home / "linked")
    (home / ("n" * 150)).write_text("long")
    with (home / "sparse").open("wb") as file:
        file.truncate(50 << 20)
        file.seek(20 << 20)
        file.write(b"in the middle")
    (home / "sym").symlink_to("plain")
    os.utime(home, ns=(0, 1_600_000_000_000_000_007))
    packed, _ = pack(tmp_path)
    (tmp_path / "gnu").mkdir()
    tar = zstandard.ZstdDecompressor().decompressobj().decompress(packed.body)
    subprocess.run(["tar", "-x", "-p", "-C", tmp_path / "gnu"], input=tar, check=True)
    assert read_tree(tmp_path / "gnu" / "home") == read_tree(home)
    with tarfile.open(fileobj=io.BytesIO(tar)) as opened:
        opened.extractall(tmp_path / "py", filter="tar")
    assert {path: node.content for path, node in read_tree(tmp_path / "py" / "home").items()} == {
        path: node.content for path, node in read_tree(home).items()
    }


@pytest.mark.behaviour("4.20")
def test_files_that_change_meanwhile(tmp_path: Path, home: Path) -> None:
    """A writer appends, truncates, removes, renames and swaps for links while the tree is packed again and again."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"do not pack" * 1000)
    stop = threading.Event()
    writer = threading.Thread(target=disturb, args=(home, outside, stop))
    writer.start()
    try:
        for number in range(40):
            packed, _ = pack(tmp_path)
            reader = restore(packed, tmp_path / "back")
            assert reader.manifest.directories >= 2
            assert b"do not pack" not in b"".join(path.read_bytes() for path in regular(tmp_path / "back")), number
    finally:
        stop.set()
        writer.join()


def regular(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file() and not path.is_symlink()]


def disturb(home: Path, outside: Path, stop: threading.Event) -> None:
    number = 0
    while not stop.is_set():
        number += 1
        file = home / f"f{number % 7}"
        try:
            match number % 5:
                case 0:
                    file.write_bytes(os.urandom(number * 37 % 500_000))
                case 1:
                    os.truncate(file, number % 1000)
                case 2:
                    file.unlink()
                    file.symlink_to(outside / "secret")
                case 3:
                    file.rename(home / "other")
                case _:
                    swap(home / "dir", outside)
        except OSError:
            pass


def swap(directory: Path, outside: Path) -> None:
    """A directory becomes a link to the outside and a directory again."""
    directory.mkdir(exist_ok=True)
    (directory / "secret").write_text("mine")
    directory.rename(directory.with_name("aside"))
    directory.symlink_to(outside, target_is_directory=True)
    directory.unlink()
    directory.with_name("aside").rename(directory)


@pytest.mark.behaviour("4.21")
def test_the_archive_is_read_back(tmp_path: Path, home: Path) -> None:
    (home / "f").write_bytes(os.urandom(1000))
    packed, manifest = pack(tmp_path)
    file = tmp_path / "archive"
    file.write_bytes(packed.body)
    assert verify_file(file, packed.sha256, packed.size) == manifest


NAMES = st.binary(min_size=1, max_size=110).map(lambda name: name.replace(b"/", b"_").replace(b"\0", b"0")).filter(
    lambda name: name not in {b".", b"..", b".cache", b".npm", *RESERVED}
)  # fmt: skip
LEAVES = st.one_of(
    st.tuples(st.just("file"), st.binary(max_size=300), st.integers(0, 0o7777), st.integers(-(10**18), 4 * 10**18)),
    st.tuples(st.just("link"), st.binary(min_size=1, max_size=200).map(lambda target: target.replace(b"\0", b"0"))),
    st.tuples(st.just("hard"), st.integers(0, 50)),
)
TREES = st.recursive(LEAVES, lambda children: st.dictionaries(NAMES, children, max_size=5), max_leaves=12).filter(
    lambda tree: isinstance(tree, dict)
)


def build_tree(root: bytes, tree: dict[bytes, object], files: list[bytes]) -> None:
    for name, node in tree.items():
        path = os.path.join(root, name)
        match node:
            case dict():
                os.mkdir(path)
                build_tree(path, node, files)
            case ("file", bytes(body), int(mode), int(moment)):
                with open(path, "wb") as file:
                    file.write(body)
                os.chmod(path, mode if AS_ROOT else mode | 0o400)
                os.utime(path, ns=(0, moment))
                files.append(path)
            case ("link", bytes(target)):
                os.symlink(target, path)
            case ("hard", int(number)) if files:
                os.link(files[number % len(files)], path)


@pytest.mark.behaviour("4.17")
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tree=TREES)
def test_any_tree_comes_back(tmp_path_factory: pytest.TempPathFactory, tree: dict[bytes, object]) -> None:
    base = tmp_path_factory.mktemp("tree")
    (base / "home").mkdir()
    build_tree(os.fsencode(base / "home"), tree, [])
    assert_comes_back(base)
