"""Unpacks beside what is there and then moves it in, so that a damaged archive or a killed process leaves no mixture.

    <target>/.alineo-staging   the archive while it is unpacked; swept by the next start
    <target>/.alineo-placing   the same once all of it proved good: from here on the target's old contents give way,
                               and a start that finds it knows that the target is neither old nor new

The targets are mount points, so what moves are their top-level entries.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from alineod.checkpoints.archive.format import PLACING, RESERVED, STAGING
from alineod.checkpoints.archive.read import ArchiveReader
from alineod.checkpoints.archive.remove import remove_contents
from alineod.checkpoints.archive.tar import Entry
from alineod.checkpoints.archive.unpack import unpack, write_attributes

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_KEPT = RESERVED - {STAGING, PLACING}

Targets = Mapping[bytes, Path]
"""For `home` and `workspace`, the directory that is to hold it."""


def clear_leftovers(targets: Targets) -> None:
    """Remove what an earlier attempt left; where it had begun to move in, the targets are emptied."""
    with _opened(targets) as fds:
        broken = any(_exists(PLACING, fd) for fd in fds.values())
        for fd in fds.values():
            if broken:
                remove_contents(fd, _KEPT)
            elif _exists(STAGING, fd):
                _remove(STAGING, fd)


def restore_trees(reader: ArchiveReader, targets: Targets) -> None:
    """Unpack the archive and, once all of it proved good, put it in the place of what the targets hold.

    The targets hold no leftovers: see `clear_leftovers`. A process that dies on the way can start again from there.

    Raises:
        Damaged: the targets hold what they held before.
        Refused, OSError: as `unpack`.
    """
    with _opened(targets) as fds:
        entries = _stage(reader, fds)
        for fd in fds.values():
            os.rename(STAGING, PLACING, src_dir_fd=fd, dst_dir_fd=fd)
        for fd in fds.values():
            remove_contents(fd, _KEPT | {PLACING})
            _move_in(fd)
        for root, fd in fds.items():
            os.rmdir(PLACING, dir_fd=fd)
            with suppress(PermissionError):  # the mount point may be another user's
                write_attributes(fd, entries[root])


def _stage(reader: ArchiveReader, fds: Mapping[bytes, int]) -> dict[bytes, Entry]:
    try:
        for fd in fds.values():
            os.mkdir(STAGING, 0o700, dir_fd=fd)
        with _opened(dict.fromkeys(fds, STAGING), fds) as staging:
            return unpack(reader, staging)
    except BaseException:
        for fd in fds.values():
            if _exists(STAGING, fd):
                _remove(STAGING, fd)
        raise


def _move_in(target: int) -> None:
    placing = os.open(PLACING, _OPEN, dir_fd=target)
    try:
        with os.scandir(placing) as entries:
            for entry in entries:
                _move(os.fsencode(entry.name), entry.stat(follow_symlinks=False).st_mode, placing, target)
    finally:
        os.close(placing)


def _move(name: bytes, mode: int, placing: int, target: int) -> None:
    # A directory that moves to another one is written to: its entry for the parent changes.
    locked = stat.S_ISDIR(mode) and not mode & stat.S_IWUSR
    if locked:
        os.chmod(name, 0o700, dir_fd=placing)
    os.rename(name, name, src_dir_fd=placing, dst_dir_fd=target)
    if locked:
        os.chmod(name, stat.S_IMODE(mode), dir_fd=target)


def _exists(name: bytes, directory: int) -> bool:
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _remove(name: bytes, directory: int) -> None:
    with _opened({name: name}, {name: directory}) as fds:
        remove_contents(fds[name])
    os.rmdir(name, dir_fd=directory)


@contextmanager
def _opened(
    paths: Mapping[bytes, Path] | Mapping[bytes, bytes], parents: Mapping[bytes, int] | None = None
) -> Iterator[dict[bytes, int]]:
    """Descriptors of directories, closed at the end."""
    fds: dict[bytes, int] = {}
    try:
        for key, path in paths.items():
            fds[key] = os.open(path, _OPEN, dir_fd=parents[key] if parents else None)
        yield fds
    finally:
        for fd in fds.values():
            os.close(fd)
