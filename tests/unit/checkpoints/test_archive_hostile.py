"""Archives that our packer cannot have written are damaged as a whole, and nothing outside is ever touched."""

# Names are bytes here, which pathlib does not know.

import io
import os
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from alineod.checkpoints.archive.format import MAX_DEPTH, Manifest
from alineod.checkpoints.archive.read import ArchiveReader
from alineod.checkpoints.archive.sparse import Extent, build_map
from alineod.checkpoints.archive.tar import BLOCK, END, Entry, Kind, build_header
from alineod.errors import AlineoError, Damaged, Refused, Unavailable
from alineod.wire.base import encode
from tests.support.archives import (
    HEAD,
    Member,
    Packed,
    build_members,
    build_packed,
    count,
    directory,
    file,
    hard_link,
    join,
    pack,
    restore,
    symlink,
)
from tests.support.trees import read_tree


def assert_refused(packed: Packed, base: Path, kind: type[AlineoError] = Damaged) -> AlineoError:
    before = read_tree(base)
    with pytest.raises(kind) as caught:
        restore(packed, base)
    after = read_tree(base)
    for path in (b"", b"home", b"workspace"):  # times of directories that were worked in
        before.pop(path)
        after.pop(path)
    assert before == after
    return caught.value


def test_what_the_helpers_build_is_good(base: Path) -> None:
    members = build_members([directory("home/d"), file("home/d/f", b"x"), hard_link("home/l", "home/d/f")])
    restore(join(members), base)
    assert (base / "home" / "l").read_text() == "x"
    assert not (base / "home" / "old").exists()


OUT = "../outside/secret"
HOSTILE: dict[str, list[Member]] = {
    "absolute": [file("/etc/x")],
    "upwards": [file("home/../outside/x")],
    "upwards at the end": [directory("home/..")],
    "dot": [file("home/./x")],
    "double slash": [file("home//x")],
    "NUL": [file(b"home/a\0b")],
    "another root": [file("outside/x")],
    "no root": [file("x")],
    "a root as a file": [file("home")],
    "a root again": [directory("home")],
    "below a directory that is not there": [file("home/none/x")],
    "below a directory that was left": [directory("home/a"), directory("home/b"), file("home/a/x")],
    "below a file": [file("home/f"), file("home/f/x")],
    "twice": [file("home/f", b"1"), file("home/f", b"2")],
    "a directory twice": [directory("home/d"), directory("home/d")],
    "a file over a directory": [directory("home/d"), file("home/d")],
    "a link and then a file of its name": [symlink("home/l", OUT), file("home/l", b"x")],
    "a link and then a directory of its name": [symlink("home/l", "../outside"), directory("home/l")],
    "through a link": [symlink("home/l", "../outside"), file("home/l/x", b"x")],
    "through a link and a directory": [symlink("home/l", "/"), directory("home/l"), file("home/l/x")],
    "hard link outside": [hard_link("home/h", OUT)],
    "hard link to an absolute path": [hard_link("home/h", "/etc/passwd")],
    "hard link upwards": [hard_link("home/h", "home/../outside/secret")],
    "hard link to nothing": [hard_link("home/h", "home/none")],
    "hard link to what was there before": [hard_link("home/h", "home/old")],
    "hard link to the other tree": [hard_link("home/h", "workspace/old")],
    "hard link to a link": [symlink("home/l", OUT), hard_link("home/h", "home/l")],
    "hard link through a link": [symlink("home/l", "../outside"), hard_link("home/h", "home/l/secret")],
    "hard link to a directory": [directory("home/d"), hard_link("home/h", "home/d")],
    "hard link to its root": [hard_link("home/h", "home")],
    "hard link to itself": [hard_link("home/h", "home/h")],
    "reserved": [directory("home/.alineo-staging")],
    "reserved too": [file("home/.alineo-placing")],
    "name too long": [file("home/" + "n" * 256)],
    "too deep": [directory("home" + "/d" * depth) for depth in range(1, MAX_DEPTH + 3)],
    "empty link": [symlink("home/l", "")],
    "link with NUL": [symlink("home/l", b"a\0b" + b"c" * 100)],
    "link too long": [symlink("home/l", "a" * 5000)],
    "our own document again": [file("alineo/head.json", b"{}")],
    "a foreign document": [file("alineo/other", b"{}")],
    "data with a directory": [(Entry(b"home/d", Kind.DIRECTORY, 0o755, 0, 0, 0, stored=5), b"12345")],
    "data with a link": [(Entry(b"home/l", Kind.SYMLINK, 0o755, 0, 0, 0, 5, b"x"), b"12345")],
    "sparse map beyond the file": [(file("home/s", build_map([Extent(0, 9)], 9) + b"123456789", size=4))],
    "sparse map with less data": [(file("home/s", build_map([Extent(0, 9)], 20) + b"1234", size=20))],
    "sparse map that overlaps": [(file("home/s", b"2\n0\n5\n3\n5\n".ljust(BLOCK, b"\0") + b"1" * 10, size=8))],
    "sparse map without end": [(file("home/s", b"9" * BLOCK, size=8))],
    "sparse map of none": [(file("home/s", b"0\n".ljust(BLOCK, b"\0"), size=8))],
    "sparse map too large": [(file("home/s", b"99999999\n".ljust(BLOCK, b"\0"), size=8))],
    "sparse map cut off": [(file("home/s", b"3\n0\n1\n".ljust(30, b"\0"), size=8))],
    "larger than any disk": [(file("home/s", build_map([], 2**63 - 1), size=2**63 - 1))],
}


@pytest.mark.behaviour("4.22", "4.27")
@pytest.mark.parametrize("why", HOSTILE)
def test_hostile_members(why: str, base: Path) -> None:
    error = assert_refused(join(build_members(HOSTILE[why])), base)
    assert error.reason == "ArchiveDamaged"
    assert error.message.startswith("the archive ")


@pytest.mark.behaviour("4.27")
@pytest.mark.parametrize("kind", [b"3", b"4", b"6", b"7", b"L", b"K", b"S", b"g", b"\0", b"D"])
def test_other_types_of_member(kind: bytes, base: Path) -> None:
    """Devices, FIFOs, GNU's long names and old sparse form, global pax records."""
    header = bytearray(build_header(file("home/x")[0]))
    header[156:157] = kind
    reseal(header)
    marked = build_header(file("home/x")[0])
    members = build_members([file("home/x")])
    assert_refused(join(members, change=lambda tar: tar.replace(marked, bytes(header))), base)


def reseal(header: bytearray) -> None:
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header[-BLOCK:])


@pytest.mark.parametrize(
    "records",
    [
        b"30 SCHILY.xattr.user.x=hostile\n",
        b"22 path=/etc/hostile12\n",
        b"20 path=home/one123\n20 path=home/two123\n",
        b"12 mtime=nan\n",
        b"25 mtime=99999999999999.1\n",
        b"18 size=99999999999\n",
        b"9 uid=-1\n",
        b"17 uid=9999999999\n",
        b"99999 path=x\n",
        b"0 path=x\n",
        b"garbage",
        b"23 GNU.sparse.major=1\n\0",
    ],
)
def test_pax_records(records: bytes, base: Path) -> None:
    size = len(records)
    pax = bytearray(build_header(Entry(b"PaxHeader", Kind.FILE, 0o644, 0, 0, 0, stored=size)))
    pax[156:157] = b"x"
    reseal(pax)
    plain = build_header(file("home/x")[0])
    marked = bytes(pax) + records + bytes(-size % BLOCK) + plain
    assert_refused(join(build_members([file("home/x")]), change=lambda tar: tar.replace(plain, marked)), base)


def test_pax_records_have_a_limit(base: Path) -> None:
    assert_refused(join(build_members([file("home/" + "/".join("n" * 200 for _ in range(6000)))])), base)


def without(index: int) -> Callable[[list[Member]], list[Member]]:
    return lambda members: members[:index] + members[index + 1 :]


def swapped(one: int, other: int) -> Callable[[list[Member]], list[Member]]:
    def swap(members: list[Member]) -> list[Member]:
        members[one], members[other] = members[other], members[one]
        return members

    return swap


def recounted(members: list[Member]) -> list[Member]:
    return [*members, file("alineo/manifest.json", encode(count(members)))]


# 0 head, 1 journal, 2 home, 3 home/f, 4 workspace, 5 manifest
SHAPES: dict[str, Callable[[list[Member]], list[Member]]] = {
    **{f"without {index}": without(index) for index in range(6)},
    **{f"{one} for {other}": swapped(one, other) for one, other in ((0, 1), (2, 4), (1, 2), (4, 5), (2, 3))},
    "nothing": lambda _: [],
    "manifest that is a lie": lambda members: [*members[:-1], file("alineo/manifest.json", encode(Manifest()))],
    "manifest that is no JSON": lambda members: [*members[:-1], file("alineo/manifest.json", b"{")],
    "head that is no JSON": lambda members: [file("alineo/head.json", b"[]"), *members[1:]],
    "head too large": lambda members: [file("alineo/head.json", b" " * (5 << 20)), *members[1:]],
    "more after the manifest": lambda members: [*members, file("home/x")],
    "a third tree": lambda members: [*members[:-1], directory("home"), file("alineo/manifest.json", b"{}")],
    "workspace again": lambda members: recounted([*members[:-1], directory("workspace")]),
}


@pytest.mark.behaviour("4.22")
@pytest.mark.parametrize("why", SHAPES)
def test_the_whole_has_one_shape(why: str, base: Path) -> None:
    assert_refused(join(SHAPES[why](build_members([file("home/f", b"x")]))), base)


@pytest.mark.parametrize("end", [b"", bytes(BLOCK), END + b"x", END + bytes(BLOCK), END + END])
def test_the_end_is_the_end(end: bytes, base: Path) -> None:
    assert_refused(join(build_members(), end=end), base)


@pytest.mark.behaviour("4.22")
def test_digest_and_length(base: Path) -> None:
    good = join(build_members([file("home/f", b"x")]))
    flipped = bytearray(good.body)
    flipped[len(flipped) // 2] ^= 1
    for body, sha256, size in (
        (good.body, "0" * 64, good.size),
        (good.body, good.sha256, good.size - 1),
        (good.body, good.sha256, good.size + 1),
        (bytes(flipped), good.sha256, good.size),
        (good.body[:-1], good.sha256, good.size),
        (good.body + b"x", good.sha256, good.size),
        (good.body + good.body, good.sha256, 2 * good.size),
        (b"", good.sha256, good.size),
        (b"not zstd at all" * 99, good.sha256, good.size),
    ):
        assert_refused(Packed(body, sha256, size), base)


def test_bytes_after_the_frame(base: Path) -> None:
    good = join(build_members())
    assert_refused(Packed(good.body + b"more", good.sha256, good.size), base)
    for more in (b"more", join(build_members([file("home/second")])).body):
        assert_refused(build_packed(good.body + more), base)


def test_a_newer_format_is_not_damage(base: Path) -> None:
    members = build_members()
    newer = join([file("alineo/head.json", b'{"version": 2, "anything": "else"}'), *members[1:]])
    error = assert_refused(newer, base, Refused)
    assert error.reason == "ArchiveFormatUnknown"
    assert_refused(Packed(newer.body, "0" * 64, newer.size), base, Damaged)


def test_a_window_that_would_eat_the_memory(base: Path) -> None:
    """A frame that declares a window of 2 GiB is refused, not obeyed."""
    header = struct.pack("<IBB", 0xFD2FB528, 0x00, 21 << 3) + b"\x01\x00\x00"
    assert_refused(build_packed(header), base)


def test_a_source_that_breaks_is_not_damage(base: Path) -> None:
    good = join(build_members([file("home/f", os.urandom(3_000_000))]))

    class Breaking(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            if self.tell() > 2_000_000:
                raise Unavailable("BucketUnreachable", "gone")
            return super().read(10_000)

    reader = ArchiveReader(Breaking(good.body), good.sha256, good.size)
    with pytest.raises(Unavailable):
        list(reader.entries())


def test_head_is_read_first(tmp_path: Path) -> None:
    packed, _ = pack(tmp_path)
    assert ArchiveReader(io.BytesIO(packed.body), packed.sha256, packed.size).head == HEAD
