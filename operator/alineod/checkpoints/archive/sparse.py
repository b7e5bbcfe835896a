"""Where a file has data and where it has holes, and the map of it in GNU's sparse form 1.0."""

import errno
import os
from collections.abc import Callable
from typing import NamedTuple

from alineod.checkpoints.archive.tar import BLOCK, compute_padding
from alineod.errors import Damaged

MAX_EXTENTS = 65536


class Extent(NamedTuple):
    """`length` bytes of data at `start`."""

    start: int
    length: int


def read_extents(fd: int, size: int) -> list[Extent]:
    """The parts of a file that hold data, in order; in between are holes.

    A file of more than 65,536 parts is described with some of its smallest holes filled in, so that memory stays flat.
    """
    extents: list[Extent] = []
    end = 0
    while end < size:
        try:
            start = os.lseek(fd, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                break
            raise
        if start >= size:
            break
        end = min(os.lseek(fd, start, os.SEEK_HOLE), size)
        extents.append(Extent(start, end - start))
        if len(extents) > MAX_EXTENTS:
            extents = _join_pairs(extents)
    return extents


def _join_pairs(extents: list[Extent]) -> list[Extent]:
    joined = [
        Extent(first.start, second.start + second.length - first.start)
        for first, second in zip(extents[::2], extents[1::2], strict=False)
    ]
    return joined + extents[len(joined) * 2 :]


def build_map(extents: list[Extent], size: int) -> bytes:
    """The map that stands before a sparse file's data; an empty last extent says where the file ends."""
    if not extents or sum(extents[-1]) < size:
        extents = [*extents, Extent(size, 0)]
    lines = b"%d\n" % len(extents) + b"".join(b"%d\n%d\n" % extent for extent in extents)
    return lines + bytes(compute_padding(len(lines)))


def parse_map(read_block: Callable[[], bytes], size: int) -> tuple[list[Extent], int]:
    """The extents of a sparse member, and the bytes its map took.

    Args:
        read_block: gives the next 512 bytes of the member's data.
        size: the file's length.

    Raises:
        Damaged: the map is not one that `build_map` can have written for this size.
    """
    numbers = _Numbers(read_block)
    count = numbers.read()
    if not 0 < count <= MAX_EXTENTS + 1:
        raise _damaged()
    extents = [Extent(numbers.read(), numbers.read()) for _ in range(count)]
    _check_order(extents, size)
    return extents, numbers.used


class _Numbers:
    """The decimal lines of a map, read block by block."""

    def __init__(self, read_block: Callable[[], bytes]) -> None:
        self._read_block = read_block
        self._rest = b""
        self.used = 0

    def read(self) -> int:
        while b"\n" not in self._rest:
            if len(self._rest) > 20:
                raise _damaged()
            self._rest += self._read_block()
            self.used += BLOCK
        line, _, self._rest = self._rest.partition(b"\n")
        if not line.isdigit() or len(line) > 19:
            raise _damaged()
        return int(line)


def _check_order(extents: list[Extent], size: int) -> None:
    end = 0
    for extent in extents:
        if extent.start < end:
            raise _damaged()
        end = extent.start + extent.length
    if end != size:
        raise _damaged()


def _damaged() -> Damaged:
    return Damaged("ArchiveDamaged", "the archive has a sparse file whose map cannot be read")
