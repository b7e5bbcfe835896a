"""Which files of a replica are needed to restore it, from their names alone. Pure.

Litestream keeps `<level>/<first>-<last>.ltx`: level 0 has one file for each upload, the levels above have them joined,
the last level whole snapshots. The numbers are transactions, sixteen hex digits each.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from alineod.errors import Damaged

_FILE = re.compile(r"(?P<level>\d{4})/(?P<first>[0-9a-f]{16})-(?P<last>[0-9a-f]{16})\.ltx")


@dataclass(frozen=True, order=True)
class ReplicaFile:
    """The transactions `first` to `last`, both included."""

    first: int
    last: int
    level: int

    @property
    def name(self) -> str:
        """Below the replica's place in the bucket."""
        return f"{self.level:04d}/{self.file_name}"

    @property
    def file_name(self) -> str:
        return f"{self.first:016x}-{self.last:016x}.ltx"


@dataclass(frozen=True)
class Choice:
    """The files to get, and the last transaction they hold."""

    files: Sequence[ReplicaFile]
    last: int


def parse_file(name: str) -> ReplicaFile | None:
    """The file of this name below the replica's place; None for anything else."""
    match = _FILE.fullmatch(name)
    if match is None:
        return None
    return ReplicaFile(int(match["first"], 16), int(match["last"], 16), int(match["level"]))


def choose_files(found: Iterable[tuple[str, int]]) -> Choice:
    """The fewest files that hold everything, as a chain without a gap from the first transaction to the last.

    Args:
        found: names and sizes (bytes). They must have been listed from level 0 upwards: files only ever move up, so
            what is gone from a level by then is seen in a higher one.

    An empty file is an upload that was cut off. It was never confirmed, so it is passed over; if another file goes on
    behind it, that shows as a gap.

    Raises:
        Damaged: `ReplicaDamaged`, there is nothing, or a gap.
    """
    files = [file for name, size in found if size > 0 and (file := parse_file(name)) is not None]
    chain: list[ReplicaFile] = []
    last = 0
    while following := [file for file in files if file.first <= last + 1 and file.last > last]:
        best = max(following, key=lambda file: (file.last, file.first))
        chain.append(best)
        last = best.last
    newest = max((file.last for file in files), default=0)
    if not chain or last < newest:
        raise Damaged(
            "ReplicaDamaged",
            f"The replica lacks transaction {last + 1}; the last one it holds anything of is {newest}.",
        )
    return Choice(chain, last)
