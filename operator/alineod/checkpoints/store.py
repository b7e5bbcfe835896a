"""The archives in a pod's own volume, each with a record of how far it got, so that a restart goes on from there.

    <root>/000007-2.tar.zst          a checkpoint, whole and verified
    <root>/000007-2.json             its Stored
    <root>/forks/<fork id>.tar.zst   a fork, until it is uploaded or pushed out by newer ones
    <root>/forks/<fork id>.json      its StoredFork

An archive counts once its record is there, and the record is written last. Knows nothing of HTTP or the bucket.
"""

import re
import threading
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

import msgspec

from alineod.checkpoints.keys import build_file_name, parse_checkpoint_name
from alineod.errors import Refused
from alineod.files import PARTIAL, move_file, write_file
from alineod.wire.archives import CheckpointReport, ForkResult
from alineod.wire.base import Message, encode
from alineod.wire.turns import Grant

KEEP_FORKS = 16
_FORK_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}")
_ARCHIVE = ".tar.zst"
M = TypeVar("M", bound=Message)


class Progress(StrEnum):
    """How far a checkpoint got on its way to the ledger."""

    CUT = "cut"
    UPLOADED = "uploaded"
    RECORDED = "recorded"


class Stored(Message, frozen=True):
    """One checkpoint in the volume. `told_failure`: the operator has recorded it without its object."""

    report: CheckpointReport
    progress: Progress = Progress.CUT
    grant: Grant | None = None
    told_failure: bool = False


class StoredFork(Message, frozen=True):
    """One fork that was cut. `read_token` opens it for whoever is to start from it."""

    result: ForkResult
    read_token: str


class Store:
    """One volume; one process writes to it at a time, from any of its threads."""

    def __init__(self, root: Path, keep: int) -> None:
        self._root = root
        self._forks = root / "forks"
        self._keep = keep
        self._lock = threading.Lock()
        self._forks.mkdir(parents=True, exist_ok=True)

    @property
    def scratch(self) -> Path:
        """For files that are not whole yet."""
        return self._root

    def sweep(self) -> None:
        """Remove what a process that died left half done: partial files, archives without a record."""
        for directory, kind in ((self._root, Stored), (self._forks, StoredFork)):
            known = {path.stem for path in directory.glob("*.json") if _read(path, kind) is not None}
            for path in directory.iterdir():
                stem = path.name.removesuffix(_ARCHIVE).removesuffix(".json")
                if path.name.endswith(PARTIAL) or (path.name.endswith((_ARCHIVE, ".json")) and stem not in known):
                    path.unlink()

    def read_all(self) -> list[Stored]:
        """Every checkpoint, newest first."""
        records = (_read(path, Stored) for path in self._root.glob("*.json"))
        found = [record for record in records if record is not None]
        return sorted(found, key=lambda one: (one.report.turn, one.report.incarnation), reverse=True)

    def find(self, turn: int, incarnation: int) -> Stored | None:
        return _read(self._record(build_file_name(turn, incarnation)), Stored)

    def get_path(self, snapshot_ref: str) -> Path:
        """Where a checkpoint's archive is, by the name its report gives.

        Raises:
            Refused: reason `InvalidSnapshotRef`; it is no name of a checkpoint.
        """
        if "/" in snapshot_ref or parse_checkpoint_name(snapshot_ref) is None:
            raise Refused("InvalidSnapshotRef", f"{snapshot_ref!r} is no file name of a checkpoint")
        return self._root / snapshot_ref

    def add(self, partial: Path, stored: Stored) -> None:
        """Take in a finished archive and let the oldest go."""
        with self._lock:
            move_file(partial, self.get_path(stored.report.snapshot_ref))
            write_file(self._record(stored.report.snapshot_ref), encode(stored))
            for old in self.read_all()[self._keep :]:
                self.discard(old.report.snapshot_ref)

    def discard(self, snapshot_ref: str) -> None:
        """Remove an archive with its record."""
        self._record(snapshot_ref).unlink(missing_ok=True)
        self.get_path(snapshot_ref).unlink(missing_ok=True)

    def update(self, stored: Stored) -> bool:
        """Write how far a checkpoint got; False when newer ones have pushed it out meanwhile."""
        with self._lock:
            record = self._record(stored.report.snapshot_ref)
            if record.exists():
                write_file(record, encode(stored))
                return True
        return False

    def get_fork_path(self, fork_id: str) -> Path:
        """Where a fork's archive is or would be.

        Raises:
            Refused: reason `InvalidForkId`.
        """
        if _FORK_ID.fullmatch(fork_id) is None:
            raise Refused("InvalidForkId", f"{fork_id[:250]!r} is no id of a fork: letters, digits, dots and dashes")
        return self._forks / f"{fork_id}{_ARCHIVE}"

    def find_fork(self, fork_id: str) -> StoredFork | None:
        return _read(_beside(self.get_fork_path(fork_id)), StoredFork)

    def add_fork(self, partial: Path, stored: StoredFork) -> None:
        """Take in a finished fork and let the oldest go."""
        move_file(partial, self.get_fork_path(stored.result.fork_id))
        self.update_fork(stored)
        by_age = sorted(self._forks.glob(f"*{_ARCHIVE}"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
        for path in by_age[KEEP_FORKS:]:
            _beside(path).unlink(missing_ok=True)
            path.unlink()

    def update_fork(self, stored: StoredFork) -> None:
        """Write a fork's record; one that was uploaded is not kept here as well."""
        path = self.get_fork_path(stored.result.fork_id)
        write_file(_beside(path), encode(stored))
        if stored.result.uploaded:
            path.unlink(missing_ok=True)

    def _record(self, snapshot_ref: str) -> Path:
        return _beside(self.get_path(snapshot_ref))


def _beside(archive: Path) -> Path:
    return archive.with_name(archive.name.removesuffix(_ARCHIVE) + ".json")


def _read(path: Path, kind: type[M]) -> M | None:
    """A record; None where there is none that can be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (FileNotFoundError, msgspec.DecodeError):
        return None
