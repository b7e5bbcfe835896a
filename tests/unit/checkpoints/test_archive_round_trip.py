"""What is packed comes back: every kind of file, time, mode, owner and name."""

# Names are bytes here, which pathlib does not know.
# ruff: noqa: PTH101, PTH102, PTH118, PTH123, PTH211

import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from alineod.checkpoints.archive.format import RESERVED
from alineod.checkpoints.archive.read import verify_file
from tests.support.archives import pack, restore
from tests.support.trees import Node, read_tree
from tests.support.users import AS_ROOT, as_someone


def assert_comes_back(base: Path) -> dict[bytes, Node]:
    """Pack, restore elsewhere, compare; returns the tree of the home."""
    packed, _ = pack(base)
    restore(packed, base / "back")
    for name in ("home", "workspace"):
        assert read_tree(base / "back" / name) == read_tree(base / name)
    return read_tree(base / "home")


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
@settings(max_examples=40)
@given(tree=TREES)
def test_any_tree_comes_back(tmp_path_factory: pytest.TempPathFactory, tree: dict[bytes, object]) -> None:
    base = tmp_path_factory.mktemp("tree")
    (base / "home").mkdir()
    build_tree(os.fsencode(base / "home"), tree, [])
    assert_comes_back(base)
