"""Archives for tests: packed from directories, or put together member by member to be hostile."""

import hashlib
import io
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zstandard

from alineod.checkpoints.archive.excludes import build_excludes
from alineod.checkpoints.archive.format import Head, Manifest
from alineod.checkpoints.archive.pack import Contents, write_archive
from alineod.checkpoints.archive.place import clear_leftovers, restore_trees
from alineod.checkpoints.archive.read import ArchiveReader
from alineod.checkpoints.archive.tar import END, Entry, Kind, build_header, compute_padding
from alineod.wire.base import encode

HEAD = Head(version=1, agent="ns/a", run="ns/s", incarnation=1, home="/root", created=0.0, turn=1, turn_id="t1")


@dataclass(frozen=True)
class Packed:
    """An archive's bytes with what a ledger would hold of it."""

    body: bytes
    sha256: str
    size: int


def build_packed(body: bytes) -> Packed:
    return Packed(body, hashlib.sha256(body).hexdigest(), len(body))


def pack(
    base: Path, extra: Iterable[str] = (), journal: Path | None = None, head: Head = HEAD
) -> tuple[Packed, Manifest]:
    """Pack `<base>/home` and `<base>/workspace`, which are made where they are not there."""
    for name in ("home", "workspace", "scratch"):
        (base / name).mkdir(parents=True, exist_ok=True)
    out = io.BytesIO()
    contents = Contents(head, base / "home", base / "workspace", build_excludes(extra), journal)
    manifest = write_archive(out, contents, base / "scratch")
    assert not any((base / "scratch").iterdir())
    return build_packed(out.getvalue()), manifest


def restore(packed: Packed, base: Path) -> ArchiveReader:
    """Restore into `<base>/home` and `<base>/workspace`."""
    targets = {b"home": base / "home", b"workspace": base / "workspace"}
    for target in targets.values():
        target.mkdir(parents=True, exist_ok=True)
    clear_leftovers(targets)
    reader = ArchiveReader(io.BytesIO(packed.body), packed.sha256, packed.size)
    restore_trees(reader, targets)
    return reader


Member = tuple[Entry, bytes]


def file(path: str | bytes, body: bytes = b"", **fields: Any) -> Member:
    return Entry(_bytes(path), Kind.FILE, 0o644, 0, 0, 0, stored=len(body), **fields), body


def directory(path: str | bytes) -> Member:
    return Entry(_bytes(path), Kind.DIRECTORY, 0o755, 0, 0, 0), b""


def symlink(path: str | bytes, target: str | bytes) -> Member:
    return Entry(_bytes(path), Kind.SYMLINK, 0o777, 0, 0, 0, target=_bytes(target)), b""


def hard_link(path: str | bytes, target: str | bytes) -> Member:
    return Entry(_bytes(path), Kind.HARD_LINK, 0o644, 0, 0, 0, target=_bytes(target)), b""


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else os.fsencode(text)


def count(members: Iterable[Member]) -> Manifest:
    """The manifest an honest packer would write for these members below the roots."""
    entries = [entry for entry, _ in members if not entry.path.startswith(b"alineo/")]

    def number(kind: Kind) -> int:
        return sum(entry.kind is kind for entry in entries)

    return Manifest(
        directories=number(Kind.DIRECTORY),
        files=number(Kind.FILE),
        hard_links=number(Kind.HARD_LINK),
        symlinks=number(Kind.SYMLINK),
        bytes=sum(entry.stored for entry in entries),
    )


def build_members(home: Iterable[Member] = (), workspace: Iterable[Member] = ()) -> list[Member]:
    """A whole archive's members around those of the two trees."""
    trees = [directory("home"), *home, directory("workspace"), *workspace]
    start = [file("alineo/head.json", encode(HEAD)), file("alineo/journal.jsonl")]
    return [*start, *trees, file("alineo/manifest.json", encode(count(trees)))]


def join(members: Iterable[Member], end: bytes = END, change: Callable[[bytes], bytes] = bytes) -> Packed:
    """The archive of these members, with a digest that is right for it."""
    tar = b"".join(build_header(entry) + body + bytes(compute_padding(len(body))) for entry, body in members)
    return build_packed(zstandard.ZstdCompressor(level=1).compress(change(tar + end)))
