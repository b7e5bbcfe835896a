"""Removes a tree that may be as deep, as large and as odd as its owner could make it."""

import errno
import itertools
import os
import stat
from collections.abc import Collection, Iterator

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_DEEP = 100
_BATCH = 1000


def remove_contents(directory: int, keep: Collection[bytes] = ()) -> None:
    """Remove what is in an open directory but the names in `keep`; links are removed and never followed.

    Raises:
        OSError: something cannot be removed.
    """
    # Directories too deep for one descriptor a level are moved up to here and take their turn.
    while _empty(directory, directory, 0, keep):
        pass


def _empty(directory: int, top: int, depth: int, keep: Collection[bytes] = ()) -> bool:
    """Whether there was anything to remove."""
    found = False
    while batch := list(itertools.islice(_names(directory, keep), _BATCH)):
        found = True
        for name in batch:
            _remove(name, directory, top, depth)
    return found


def _names(directory: int, keep: Collection[bytes]) -> Iterator[bytes]:
    with os.scandir(directory) as entries:
        for entry in entries:
            if (name := os.fsencode(entry.name)) not in keep:
                yield name


def _remove(name: bytes, directory: int, top: int, depth: int) -> None:
    status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    if not stat.S_ISDIR(status.st_mode):
        os.unlink(name, dir_fd=directory)
        return
    if status.st_mode & 0o700 != 0o700:
        os.chmod(name, 0o700, dir_fd=directory)
    if depth >= _DEEP:
        _lift(name, directory, top)
        return
    below = os.open(name, _OPEN, dir_fd=directory)
    try:
        _empty(below, top, depth + 1)
    finally:
        os.close(below)
    os.rmdir(name, dir_fd=directory)


def _lift(name: bytes, directory: int, top: int) -> None:
    for number in itertools.count():
        try:
            os.rename(name, b".alineo-lifted-%d" % number, src_dir_fd=directory, dst_dir_fd=top)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
        else:
            return
