"""Writing files so that a reader, or a crash, never meets half of one; and reading one that others can spoil."""

import errno
import os
from pathlib import Path

from alineod.errors import Unavailable

PARTIAL = ".partial"
"""What the name of a file ends with that is not whole yet."""


_MAX_TOKEN = 4096
_NO_FILE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EISDIR, errno.EACCES)


class Token:
    """What a file says once it says something, whatever becomes of the file then. Empty before.

    An agent that is root can remove or replace the sandbox's own token; a process that has read it goes on with what
    it read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._value = ""

    def __call__(self) -> str:
        """The token; empty where there is none.

        Raises:
            Unavailable: reason `TokenUnreadable`; nobody can say whether there is one.
        """
        if not self._value:
            self._value = self._read()
        return self._value

    def _read(self) -> str:
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                return os.read(fd, _MAX_TOKEN).decode("ascii", "replace").strip()
            finally:
                os.close(fd)
        except OSError as error:
            if error.errno in _NO_FILE:
                return ""
            raise Unavailable("TokenUnreadable", f"{self._path} cannot be read: {error.strerror}") from error


def write_file(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Replace `path` as a whole: after a crash it holds all of the old or all of the new."""
    partial = path.with_name(path.name + PARTIAL)
    fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        write_all(fd, data)
        os.fsync(fd)
    finally:
        os.close(fd)
    move_file(partial, path)


def move_file(source: Path, target: Path) -> None:
    """Rename within a directory, on disk before this returns."""
    source.replace(target)
    sync_file(target.parent)


def sync_file(path: Path) -> None:
    """See that the disk has what the file, or the directory, holds."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_all(fd: int, data: bytes) -> None:
    """Write all of `data`; a short write goes on, and raises when the disk is full."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
