"""Writes an archive's trees into empty directories. Nothing in an archive can make it touch anything else.

Files are created from the open directory that holds them and refuse links and names that are taken; a directory gets
its mode and time when the last of its contents is written, so nothing is kept for the end.
"""

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from alineod.checkpoints.archive.format import show_path
from alineod.checkpoints.archive.read import ArchiveReader
from alineod.checkpoints.archive.tar import Entry, Kind
from alineod.errors import Damaged, Refused

_OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

# What the file system answers to members that cannot be together in one tree. Any other error is the disk's.
_CONTRADICTIONS = {errno.EEXIST, errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EISDIR, errno.EXDEV, errno.EFBIG}


def unpack(reader: ArchiveReader, roots: Mapping[bytes, int]) -> dict[bytes, Entry]:
    """Write the trees; returns what the archive says of the roots themselves, which are left as they are.

    Args:
        reader: fresh from the archive.
        roots: for `home` and `workspace`, the descriptor of an empty directory.

    Raises:
        Damaged: what was written may not be used.
        OSError: the disk is full or broken; says nothing about the archive.
        Refused: reason `OwnersRefused`, this process may not give files to their owners.
    """
    unpacker = _Unpacker(reader, roots)
    try:
        for entry in reader.entries():
            with _as_damage(entry):
                unpacker.add(entry)
    finally:
        unpacker.close()
    return unpacker.roots


@contextmanager
def _as_damage(entry: Entry) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in _CONTRADICTIONS:
            raise
        what = f"{show_path(entry.path)!r}, which cannot be where it is: {error.strerror}"
        raise Damaged("ArchiveDamaged", f"the archive has {what}") from error


@dataclass(frozen=True, slots=True)
class _Level:
    entry: Entry
    fd: int


class _Unpacker:
    def __init__(self, reader: ArchiveReader, roots: Mapping[bytes, int]) -> None:
        self._reader = reader
        self._fds = roots
        self._levels: list[_Level] = []
        self.roots: dict[bytes, Entry] = {}

    def add(self, entry: Entry) -> None:
        *parents, name = entry.path.split(b"/")
        self._leave(len(parents))
        if not parents:
            self.roots[name] = entry
            self._levels.append(_Level(entry, os.dup(self._fds[name])))
            return
        parent = self._levels[-1].fd
        match entry.kind:
            case Kind.DIRECTORY:
                os.mkdir(name, 0o700, dir_fd=parent)
                self._levels.append(_Level(entry, os.open(name, _OPEN_DIRECTORY, dir_fd=parent)))
            case Kind.FILE:
                self._create_file(entry, name, parent)
            case Kind.SYMLINK:
                _create_symlink(entry, name, parent)
            case Kind.HARD_LINK:
                self._create_link(entry, name, parent)

    def close(self) -> None:
        """Leave every directory that is still open."""
        self._leave(0)

    def _leave(self, depth: int) -> None:
        while len(self._levels) > depth:
            level = self._levels.pop()
            try:
                if self._levels:  # a root's own mode would be in the way until everything is in place
                    write_attributes(level.fd, level.entry)
            finally:
                os.close(level.fd)

    def _create_file(self, entry: Entry, name: bytes, parent: int) -> None:
        fd = os.open(name, _CREATE, 0o600, dir_fd=parent)
        try:
            for start, data in self._reader.read_data():
                _write(fd, data, start)
            if entry.size is not None:
                os.ftruncate(fd, entry.size)
            write_attributes(fd, entry)
        finally:
            os.close(fd)

    def _create_link(self, entry: Entry, name: bytes, parent: int) -> None:
        root, *parents, target = entry.target.split(b"/")
        source = os.dup(self._fds[root])
        try:
            for step in parents:
                below = os.open(step, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=source)
                os.close(source)
                source = below
            if not stat.S_ISREG(os.stat(target, dir_fd=source, follow_symlinks=False).st_mode):
                raise Damaged("ArchiveDamaged", f"the archive has a hard link to {show_path(entry.target)!r}, no file")
            os.link(target, name, src_dir_fd=source, dst_dir_fd=parent, follow_symlinks=False)
        finally:
            os.close(source)


def _write(fd: int, data: bytes, start: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(fd, view, start)
        view, start = view[written:], start + written


def _create_symlink(entry: Entry, name: bytes, parent: int) -> None:
    os.symlink(entry.target, name, dir_fd=parent)
    if os.geteuid() == 0:
        with _owners():
            os.chown(name, entry.uid, entry.gid, dir_fd=parent, follow_symlinks=False)
    os.utime(name, ns=(entry.mtime_ns, entry.mtime_ns), dir_fd=parent, follow_symlinks=False)


def write_attributes(fd: int, entry: Entry) -> None:
    """Owner (as root), mode and time; in this order, because a change of owner clears bits of the mode.

    Raises:
        Refused: reason `OwnersRefused`.
    """
    if os.geteuid() == 0:
        with _owners():
            os.chown(fd, entry.uid, entry.gid)
    os.chmod(fd, entry.mode)
    os.utime(fd, ns=(entry.mtime_ns, entry.mtime_ns))


@contextmanager
def _owners() -> Iterator[None]:
    try:
        yield
    except PermissionError as error:
        raise Refused(
            "OwnersRefused",
            "the restore container runs as root and may not change owners; give it the capabilities CHOWN and FOWNER",
        ) from error
