"""Writing files so that a reader, or a crash, never meets half of one."""

import os
from pathlib import Path


def write_file(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Replace `path` as a whole, on disk before it counts."""
    part = path.with_name(f".{path.name}.part")
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        write_all(fd, data)
        os.fsync(fd)
    finally:
        os.close(fd)
    part.replace(path)


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
