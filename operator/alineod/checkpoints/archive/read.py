"""Reads an archive as it streams by, and believes nothing before its digest and its structure were seen whole."""

import hashlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec
import zstandard

from alineod.checkpoints.archive import format as shape
from alineod.checkpoints.archive.format import HEAD, JOURNAL, MANIFEST, Head, Manifest, split_path
from alineod.checkpoints.archive.sparse import Extent, parse_map
from alineod.checkpoints.archive.tally import Tally
from alineod.checkpoints.archive.tar import (
    BLOCK,
    END,
    MAX_RECORDS,
    Entry,
    Kind,
    compute_padding,
    is_pax,
    parse_header,
    parse_records,
    parse_size,
)
from alineod.errors import Damaged, Refused
from alineod.wire.base import Message

_CHUNK = 256 * 1024
_WINDOW = 64 * 1024 * 1024  # what a hostile frame may make the decompressor hold
D = TypeVar("D", bound=Message)


class ByteSource(Protocol):
    """Where the compressed bytes come from; an empty answer is their end."""

    def read(self, size: int, /) -> bytes: ...


class ArchiveReader:
    """One pass over one archive.

    Made, it has read the head. `entries` gives the members of home and workspace in order, `read_data` the data of the
    one just given. When `entries` has ended, the archive was whole: digest, structure, counts; `manifest` is there.

    Raises:
        Damaged: from any call, reason `ArchiveDamaged`; nothing that was read so far may be used.
        Refused: reason `ArchiveFormatUnknown`; the archive is good, and newer than this program.
        Whatever the source raises.
    """

    head: Head
    manifest: Manifest

    def __init__(self, source: ByteSource, sha256: str, size: int) -> None:
        self._checked = _Checked(source, sha256, size)
        zstd: Any = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
        # Across frames, so that what follows the first one is seen and refused instead of being left unread.
        stream = zstd.stream_reader(self._checked, _CHUNK, read_across_frames=True, closefd=False)
        self._stream = io.BufferedReader(stream, _CHUNK)
        self._entry = Entry(b"", Kind.DIRECTORY, 0, 0, 0, 0)
        self._left = 0
        self._open: list[bytes] = []
        self._roots = list(shape.ROOTS)
        self._tally = Tally()
        self.head = self._read_head()
        self._expect(self._next_member(), JOURNAL)

    def entries(self) -> Iterator[Entry]:
        """The members below `home` and `workspace`, checked against every rule that needs no file system."""
        while (entry := self._next_member()).path != MANIFEST:
            self._check(entry)
            self._count(entry)
            yield entry
        self._finish(entry)

    def read_data(self) -> Iterator[tuple[int, bytes]]:
        """The data of the member that `entries` gave last, as (offset in the file, bytes); holes are left out."""
        extents = [Extent(0, self._left)]
        if self._entry.size is not None:
            extents, _ = parse_map(lambda: self._take(BLOCK), self._entry.size)
            if sum(extent.length for extent in extents) != self._left:
                raise _damaged("a sparse file whose map and data differ in length")
        for extent in extents:
            end = extent.start + extent.length
            for start in range(extent.start, end, _CHUNK):
                yield start, self._take(min(_CHUNK, end - start))

    def _read_head(self) -> Head:
        self._expect(entry := self._next_member(), HEAD)
        body = self._read_document(entry)
        if _parse(_Version, body).version != shape.VERSION:
            self._checked.finish()
            raise Refused(
                "ArchiveFormatUnknown",
                f"the archive has a format other than {shape.VERSION}, which this release reads; use a newer release",
            )
        return _parse(Head, body)

    def _finish(self, entry: Entry) -> None:
        self.manifest = _parse(Manifest, self._read_document(entry))
        self._skip()
        counted = self._tally.build()
        if self._roots or any(
            getattr(counted, name) != getattr(self.manifest, name)
            for name in ("directories", "files", "hard_links", "symlinks", "bytes")
        ):
            raise _damaged("other members than its manifest counts")
        if self._read(len(END)) != END or self._read(1):
            raise _damaged("bytes where it should end")
        self._checked.finish()

    def _next_member(self) -> Entry:
        self._skip()
        block = self._read_exactly(BLOCK)
        records: dict[bytes, bytes] = {}
        if is_pax(block):
            size = parse_size(block)
            if size > MAX_RECORDS:
                raise _damaged("pax records past their limit")
            records = parse_records(self._read_exactly(size))
            self._read_exactly(compute_padding(size))
            block = self._read_exactly(BLOCK)
        self._entry = parse_header(block, records)
        self._left = self._entry.stored
        return self._entry

    def _check(self, entry: Entry) -> None:
        *parents, name = split_path(entry.path)
        if parents != self._open[: len(parents)]:
            raise _damaged(f"{shape.show_path(entry.path)!r} outside the directory that was open")
        del self._open[len(parents) :]
        if not parents:
            self._check_root(entry)
        if entry.kind is Kind.DIRECTORY:
            self._open.append(name)
        if entry.kind is not Kind.FILE and entry.stored:
            raise _damaged(f"data with {shape.show_path(entry.path)!r}, which can have none")
        if entry.kind is Kind.HARD_LINK and split_path(entry.target)[:-1][:1] != parents[:1]:
            raise _damaged(f"a hard link from {shape.show_path(entry.path)!r} to no file of its tree")
        if entry.kind is Kind.SYMLINK and (not 0 < len(entry.target) < 4096 or b"\0" in entry.target):
            raise _damaged(f"a symbolic link to nowhere at {shape.show_path(entry.path)!r}")

    def _check_root(self, entry: Entry) -> None:
        if self._roots[:1] != [entry.path] or entry.kind is not Kind.DIRECTORY:
            raise _damaged("its trees not in their order")
        del self._roots[0]

    def _count(self, entry: Entry) -> None:
        match entry.kind:
            case Kind.FILE:
                self._tally.add_file(entry.stored)
            case Kind.DIRECTORY:
                self._tally.directories += 1
            case Kind.HARD_LINK:
                self._tally.hard_links += 1
            case Kind.SYMLINK:
                self._tally.symlinks += 1

    def _expect(self, entry: Entry, path: bytes) -> None:
        if entry.path != path or entry.kind is not Kind.FILE or entry.size is not None:
            raise _damaged(f"something else where {path.decode()} should be")

    def _read_document(self, entry: Entry) -> bytes:
        self._expect(entry, entry.path)
        if entry.stored > shape.MAX_DOCUMENT:
            raise _damaged(f"a {entry.path.decode()} past its limit")
        return self._take(entry.stored)

    def _skip(self) -> None:
        """Read over what is left of the current member."""
        padding = compute_padding(self._entry.stored)
        while self._left:
            self._take(min(self._left, _CHUNK))
        self._read_exactly(padding)

    def _take(self, size: int) -> bytes:
        if size > self._left:
            raise _damaged("a member that is shorter than it says")
        self._left -= size
        return self._read_exactly(size)

    def _read_exactly(self, size: int) -> bytes:
        data = self._read(size)
        if len(data) < size:
            raise _damaged("no end: it breaks off")
        return data

    def _read(self, size: int) -> bytes:
        try:
            return self._stream.read(size)
        except zstandard.ZstdError as error:
            raise Damaged("ArchiveDamaged", f"the archive cannot be decompressed: {error}") from error


class _Version(Message, frozen=True):
    version: int


class _Checked:
    """The source with its digest taken as it goes by, and never more of it than was promised."""

    def __init__(self, source: ByteSource, sha256: str, size: int) -> None:
        self._source = source
        self._sha256 = sha256
        self._left = size
        self._digest = hashlib.sha256()

    def read(self, size: int = _CHUNK) -> bytes:
        data = self._source.read(size)
        self._digest.update(data)
        self._left -= len(data)
        if self._left < 0:
            raise Damaged("ArchiveDamaged", "the archive is longer than it was when it was written")
        return data

    def finish(self) -> None:
        while self.read():
            pass
        if self._left:
            raise Damaged("ArchiveDamaged", f"the archive is {self._left} bytes shorter than when it was written")
        if self._digest.hexdigest() != self._sha256:
            raise Damaged("ArchiveDamaged", f"the archive's sha256 is not {self._sha256}")


def verify_file(path: Path, sha256: str, size: int) -> Manifest:
    """Read an archive from a file from end to end, as a restore would.

    Raises:
        Damaged: it would not restore.
    """
    with path.open("rb", buffering=0) as file:
        reader = ArchiveReader(file, sha256, size)
        for _ in reader.entries():
            for _ in reader.read_data():
                pass
    return reader.manifest


def _parse(kind: type[D], body: bytes) -> D:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as error:
        raise Damaged("ArchiveDamaged", f"the archive's {kind.__name__} cannot be read: {error}") from error


def _damaged(what: str) -> Damaged:
    return Damaged("ArchiveDamaged", f"the archive has {what}")
