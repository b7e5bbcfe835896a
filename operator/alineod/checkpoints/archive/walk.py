"""Walks a tree whose owner may be hostile and may be changing it: never outside, never through a link.

Every step is taken from an open directory and refuses links, so a directory that is swapped for a link while it is
walked leads nowhere. Listings are read as they come and at most one directory a level is open: memory and descriptors
do not grow with the number of files.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from alineod.checkpoints.archive.format import MAX_DEPTH, RESERVED

_OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_UNPACKABLE = ((stat.S_ISSOCK, "a socket"), (stat.S_ISFIFO, "a FIFO"), (stat.S_ISCHR, "a device"))
_GONE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}
_OURS = {errno.EMFILE, errno.ENFILE, errno.ENOMEM}


@dataclass(frozen=True, slots=True)
class Found:
    """One file, link or directory: `name` in the open directory `parent`, and what it was when it was looked at."""

    path: bytes
    parent: int
    name: bytes
    stat: os.stat_result


@dataclass(slots=True)
class _Level:
    path: bytes
    fd: int
    names: Any  # os.scandir's iterator has no public type

    def close(self) -> None:
        self.names.close()
        os.close(self.fd)


def walk(
    root: str, prefix: bytes, excluded: Callable[[bytes], bool], note: Callable[[bytes, str], None]
) -> Iterator[Found]:
    """Everything below `root`, each directory before its contents, the root itself first as `prefix`.

    Args:
        root: a mount point or a directory nobody else can replace.
        excluded: asked with each path; what it says yes to is not looked at.
        note: told of each path that is left out and why.

    Raises:
        OSError: the root cannot be opened.
    """
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    levels = [_Level(prefix, fd, os.scandir(fd))]
    device = os.fstat(fd).st_dev
    try:
        yield Found(prefix, fd, b".", os.fstat(fd))
        while levels:
            found = _next(levels, device, excluded, note)
            if found is not None:
                yield found
    finally:
        for level in levels:
            level.close()


def _next(
    levels: list[_Level], device: int, excluded: Callable[[bytes], bool], note: Callable[[bytes, str], None]
) -> Found | None:
    """One step of the walk; None where it found nothing to pack."""
    level = levels[-1]
    try:
        entry = next(level.names, None)
    except OSError as error:
        note(level.path, f"its listing broke off: {error.strerror}")
        entry = None
    if entry is None:
        levels.pop().close()
        return None
    name = os.fsencode(entry.name)
    path = level.path + b"/" + name
    if excluded(path):
        return None
    if len(levels) == 1 and name in RESERVED:
        note(path, "the name is reserved")
        return None
    try:
        found = Found(path, level.fd, name, os.stat(name, dir_fd=level.fd, follow_symlinks=False))
    except OSError as error:
        note(path, describe_failure(error))
        return None
    return _decide(found, levels, device, note)


def _decide(found: Found, levels: list[_Level], device: int, note: Callable[[bytes, str], None]) -> Found | None:
    mode = found.stat.st_mode
    kind = next((name for test, name in _UNPACKABLE if test(mode)), "a device" if stat.S_ISBLK(mode) else "")
    if kind:
        note(found.path, f"{kind} is not packed")
        return None
    if found.stat.st_dev != device:
        note(found.path, "another file system is mounted here")
        return None
    if not stat.S_ISDIR(mode):
        return found
    if len(levels) > MAX_DEPTH:
        note(found.path, f"it lies deeper than {MAX_DEPTH} directories")
        return None
    return _enter(found, levels, note)


def _enter(found: Found, levels: list[_Level], note: Callable[[bytes, str], None]) -> Found | None:
    try:
        fd = os.open(found.name, _OPEN_DIRECTORY, dir_fd=found.parent)
    except OSError as error:
        note(found.path, describe_failure(error))
        return None if error.errno in _GONE else found
    try:
        levels.append(_Level(found.path, fd, os.scandir(fd)))
    except OSError:
        os.close(fd)
        raise
    return Found(found.path, found.parent, found.name, os.fstat(fd))


def describe_failure(error: OSError) -> str:
    """Why a path is left out.

    Raises:
        OSError: the same error, where it is a limit of this process and not the path's doing.
    """
    if error.errno in _OURS:
        raise error
    return "it vanished while it was packed" if error.errno in _GONE else f"it cannot be read: {error.strerror}"
