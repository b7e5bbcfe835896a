"""Archives that chance has put together: read as something else, or refused; never a crash, never outside."""

# Names are bytes here, which pathlib does not know.
# ruff: noqa: PTH208

import io
import os

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from alineod.checkpoints.archive.read import ArchiveReader
from alineod.checkpoints.archive.sparse import Extent, build_map
from alineod.checkpoints.archive.tar import Entry, Kind
from alineod.errors import Damaged, Refused
from tests.support.archives import (
    Member,
    build_members,
    build_packed,
    directory,
    file,
    hard_link,
    join,
    restore,
    symlink,
)
from tests.support.trees import read_tree

PARTS = st.sampled_from([b"home", b"workspace", b"a", b"b", b"..", b"", b"outside", b"secret"])
PATHS = st.lists(PARTS, max_size=4).map(b"/".join)


def build_member(kind: Kind, path: bytes, target: bytes, body: bytes) -> Member:
    body = body if kind is Kind.FILE else b""
    return Entry(path, kind, 0o644, 0, 0, 0, len(body), target), body


MEMBERS = st.lists(st.builds(build_member, st.sampled_from(Kind), PATHS, PATHS, st.binary(max_size=20)), max_size=12)


@pytest.mark.behaviour("4.27")
@settings(max_examples=150)
@given(home=MEMBERS, workspace=MEMBERS)
def test_any_members(tmp_path_factory: pytest.TempPathFactory, home: list[Member], workspace: list[Member]) -> None:
    """Whatever the members, either the archive is refused and all is as it was, or only the targets changed."""
    base = tmp_path_factory.mktemp("any")
    (base / "outside").mkdir()
    (base / "outside" / "secret").write_text("secret")
    before = read_tree(base / "outside")
    try:
        restore(join(build_members(home, workspace)), base)
    except Damaged:
        assert os.listdir(base / "home") == os.listdir(base / "workspace") == []
    assert read_tree(base / "outside") == before
    assert sorted(os.listdir(base)) == ["home", "outside", "workspace"]


@pytest.mark.behaviour("4.22")
@settings(max_examples=200)
@given(changes=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=6))
def test_any_damage_to_the_tar(tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int]]) -> None:
    """Bytes changed under a digest that is right: read as something else, or refused; never a crash."""
    base = tmp_path_factory.mktemp("damage")
    members = build_members(
        [directory("home/d"), file("home/d/f", b"x" * 700), hard_link("home/h", "home/d/f"), symlink("home/l", "d"),
         file("home/s", build_map([Extent(4096, 5)], 9000) + b"12345", size=9000), file("home/" + "n" * 150)]
    )  # fmt: skip

    def change(tar: bytes) -> bytes:
        changed = bytearray(tar)
        for position, value in changes:
            changed[position % len(changed)] = value
        return bytes(changed)

    try:
        restore(join(members, change=change), base)
    except (Damaged, Refused):
        assert os.listdir(base / "home") == []
    assert sorted(os.listdir(base)) == ["home", "workspace"]


@settings(max_examples=100)
@given(body=st.binary(max_size=300), magic=st.booleans())
def test_any_bytes(body: bytes, magic: bool) -> None:
    packed = build_packed((zstandard.MAGIC_NUMBER.to_bytes(4, "little") if magic else b"") + body)
    with pytest.raises(Damaged):
        ArchiveReader(io.BytesIO(packed.body), packed.sha256, packed.size)
