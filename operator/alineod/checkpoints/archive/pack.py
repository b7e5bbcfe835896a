"""Writes an archive from the files as they are, whatever they do meanwhile; memory does not grow with them."""

import os
import stat
import tempfile
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import zstandard

from alineod.checkpoints.archive.excludes import Excludes
from alineod.checkpoints.archive.format import HEAD, HOME, JOURNAL, MANIFEST, WORKSPACE, Head, Manifest
from alineod.checkpoints.archive.journal import copy_turn
from alineod.checkpoints.archive.links import LinkMap
from alineod.checkpoints.archive.sparse import Extent, build_map, read_extents
from alineod.checkpoints.archive.tally import Tally
from alineod.checkpoints.archive.tar import END, Entry, Kind, build_header, compute_padding
from alineod.checkpoints.archive.walk import Found, describe_failure, walk
from alineod.wire.base import encode

LEVEL = 3
_CHUNK = 256 * 1024
_OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


@dataclass(frozen=True)
class Contents:
    """What goes into one archive. `journal` is the bridge's journal directory, None for a fork."""

    head: Head
    home: Path
    workspace: Path
    excludes: Excludes
    journal: Path | None = None


def write_archive(out: Any, contents: Contents, scratch: Path) -> Manifest:
    """Write the archive to `out`, a binary file that is open for writing.

    Args:
        out: its `write` gets the compressed bytes.
        contents: what to pack.
        scratch: a directory for files that this needs while it works and removes.

    Raises:
        OSError: `out` or the scratch directory cannot be written, or a root cannot be opened.
    """
    with ExitStack() as stack:
        zstd: Any = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True)
        compressor = zstd.stream_writer(out, closefd=False)
        packer = _Packer(_Buffer(compressor), contents.excludes, scratch)
        packer.add_document(HEAD, encode(contents.head))
        packer.add_journal(contents, stack.enter_context(tempfile.TemporaryFile(dir=scratch)))
        packer.add_tree(contents.home, HOME)
        packer.add_tree(contents.workspace, WORKSPACE)
        manifest = packer.finish()
        compressor.close()
    return manifest


@dataclass
class _Buffer:
    """Gathers small writes: the compressor's cost is by the call."""

    out: Any
    parts: list[bytes] = field(default_factory=list)
    size: int = 0

    def write(self, data: bytes) -> None:
        self.parts.append(data)
        self.size += len(data)
        if self.size >= _CHUNK:
            self.flush()

    def flush(self) -> None:
        self.out.write(b"".join(self.parts))
        self.parts.clear()
        self.size = 0


class _Packer:
    def __init__(self, out: _Buffer, excludes: Excludes, scratch: Path) -> None:
        self._out = out
        self._excludes = excludes
        self._links = LinkMap(scratch / "links.partial")
        self._tally = Tally()

    def add_document(self, path: bytes, body: bytes) -> None:
        self._write_header(Entry(path, Kind.FILE, 0o600, 0, 0, 0, stored=len(body)))
        self._out.write(body)
        self._out.write(bytes(compute_padding(len(body))))

    def add_journal(self, contents: Contents, spool: IO[bytes]) -> None:
        """The size of a member stands before it, hence the spool."""
        if contents.journal is not None:
            head = contents.head
            self._tally.journal_records = copy_turn(contents.journal, head.turn or 0, head.turn_id, spool)
        size = spool.tell()
        spool.seek(0)
        self._write_header(Entry(JOURNAL, Kind.FILE, 0o600, 0, 0, 0, stored=size))
        while chunk := spool.read(_CHUNK):
            self._out.write(chunk)
        self._out.write(bytes(compute_padding(size)))

    def add_tree(self, root: Path, prefix: bytes) -> None:
        with self._links:
            for found in walk(os.fspath(root), prefix, self._is_excluded, self._tally.skip):
                self._add(found)

    def _add(self, found: Found) -> None:
        mode = found.stat.st_mode
        if stat.S_ISDIR(mode):
            self._write_header(_build_entry(found.path, Kind.DIRECTORY, found.stat))
            self._tally.directories += 1
        elif stat.S_ISLNK(mode):
            self._add_symlink(found)
        else:
            self._add_file(found)

    def finish(self) -> Manifest:
        manifest = self._tally.build()
        self.add_document(MANIFEST, encode(manifest))
        self._out.write(END)
        self._out.flush()
        return manifest

    def _is_excluded(self, path: bytes) -> bool:
        excluded = self._excludes.match(path)
        if excluded:
            self._tally.exclude(path)
        return excluded

    def _write_header(self, entry: Entry) -> None:
        self._out.write(build_header(entry))

    def _add_symlink(self, found: Found) -> None:
        try:
            target = os.readlink(found.name, dir_fd=found.parent)
        except OSError as error:
            self._tally.skip(found.path, describe_failure(error))
            return
        self._write_header(_build_entry(found.path, Kind.SYMLINK, found.stat, target=target))
        self._tally.symlinks += 1

    def _add_file(self, found: Found) -> None:
        try:
            fd = os.open(found.name, _OPEN_FILE, dir_fd=found.parent)
        except OSError as error:
            self._tally.skip(found.path, describe_failure(error))
            return
        try:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                self._tally.skip(found.path, "it became something else while it was packed")
            elif status.st_nlink == 1 or not self._add_link(found.path, status):
                self._add_data(found.path, fd, status)
        finally:
            os.close(fd)

    def _add_link(self, path: bytes, status: os.stat_result) -> bool:
        """Whether the inode was packed under another name already; then a link to that name is all it takes."""
        first = self._links.find(status)
        if first is None:
            return False
        self._write_header(_build_entry(path, Kind.HARD_LINK, status, target=first))
        self._tally.hard_links += 1
        return True

    def _add_data(self, path: bytes, fd: int, status: os.stat_result) -> None:
        extents = _read_extents(fd, status)
        sparse = extents != [Extent(0, status.st_size)]
        head = build_map(extents, status.st_size) if sparse else b""
        stored = len(head) + sum(extent.length for extent in extents)
        size = status.st_size if sparse else None
        self._write_header(_build_entry(path, Kind.FILE, status, stored=stored, size=size))
        self._out.write(head)
        whole = True
        for extent in extents:
            whole &= self._copy(fd, extent)
        self._out.write(bytes(compute_padding(stored)))
        self._tally.add_file(stored)
        if status.st_nlink > 1:
            self._links.add(status, path)
        after = os.fstat(fd)
        if not whole or (after.st_size, after.st_mtime_ns) != (status.st_size, status.st_mtime_ns):
            self._tally.doubt(path, "it changed while it was packed")

    def _copy(self, fd: int, extent: Extent) -> bool:
        """Write exactly the extent's length; False where the file had less, and zeros stand for the rest."""
        left = extent.length
        while left and (chunk := _read(fd, min(left, _CHUNK), extent.start + extent.length - left)):
            self._out.write(chunk)
            left -= len(chunk)
        for start in range(0, left, _CHUNK):
            self._out.write(bytes(min(_CHUNK, left - start)))
        return not left


def _read(fd: int, size: int, start: int) -> bytes:
    """What can be read there; nothing where the disk or the file system refuses."""
    try:
        return os.pread(fd, size, start)
    except OSError:
        return b""


def _read_extents(fd: int, status: os.stat_result) -> list[Extent]:
    """The file's data; one extent for a file without holes."""
    if status.st_blocks * 512 < status.st_size:
        with suppress(OSError):
            return read_extents(fd, status.st_size)
    return [Extent(0, status.st_size)]


def _build_entry(
    path: bytes, kind: Kind, status: os.stat_result, stored: int = 0, target: bytes = b"", size: int | None = None
) -> Entry:
    mode = stat.S_IMODE(status.st_mode)
    return Entry(path, kind, mode, status.st_uid, status.st_gid, status.st_mtime_ns, stored, target, size)
