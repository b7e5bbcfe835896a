"""Goes through the archives a pod may start from, newest first, and restores the first that is good."""

import logging
import os
from collections.abc import Mapping
from pathlib import Path

from alineod.checkpointer.remote import open_object
from alineod.checkpoints.archive.place import restore_trees
from alineod.checkpoints.archive.read import ArchiveReader, ByteSource
from alineod.checkpoints.keys import parse_checkpoint_name
from alineod.errors import AlineoError, Damaged, Denied, NotFound, Unavailable
from alineod.wire.archives import RestoreReport, Source, SourceKind, StartOrder, Tried

LOCAL, REMOTE = "local", "remote"
_log = logging.getLogger("alineod.restore")


class Sources:
    """Remembers over several orders which archives were read and found bad."""

    def __init__(self, checkpoints: Path, targets: Mapping[bytes, Path]) -> None:
        self._checkpoints = checkpoints
        self._targets = targets
        self._tried: dict[tuple[str, str], Tried] = {}
        self._rotten: set[str] = set()

    def fill(self, order: StartOrder) -> RestoreReport:
        """Restore the newest archive of the order that is good.

        Raises:
            Unavailable: one is out of reach, or not given to us. A newer one is never passed over for that.
            Refused, OSError: see `restore_trees`.
        """
        for source in order.sources:
            for where in (LOCAL, REMOTE):
                if (where, source.sha256) not in self._tried and self._try(source, where):
                    return _build_report(source, where, list(self._tried.values()))
        tried = list(self._tried.values())
        return RestoreReport(start="blank" if tried else "fresh", tried=tried)

    def read_rotten(self) -> set[str]:
        """The file names of archives in the pod's volume that were read and found bad."""
        return set(self._rotten)

    def _try(self, source: Source, where: str) -> bool:
        """Whether it was restored; a local archive that is not there is not even tried."""
        try:
            if where == LOCAL:
                return self._restore_local(source)
            with open_object(source.get, source.bytes) as body:
                self._restore(source, where, body)
        except (Damaged, NotFound) as error:
            self._give_up(source, where, error)
            return False
        except Denied as error:
            raise Unavailable(error.reason, f"{error.message}, for {_name(source)}") from error
        except Unavailable as error:
            raise Unavailable(error.reason, f"{error.message}, asked for {_name(source)}") from error
        return True

    def _restore_local(self, source: Source) -> bool:
        if parse_checkpoint_name(source.snapshot_ref) is None or "/" in source.snapshot_ref:
            return False
        try:
            fd = os.open(self._checkpoints / source.snapshot_ref, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return False
        with os.fdopen(fd, "rb", buffering=0) as file:
            self._restore(source, LOCAL, _LocalBytes(file))
        return True

    def _restore(self, source: Source, where: str, body: ByteSource) -> None:
        _log.info("unpacking %s, %s, %d bytes", _name(source), where, source.bytes)
        restore_trees(ArchiveReader(body, source.sha256, source.bytes), self._targets)

    def _give_up(self, source: Source, where: str, error: AlineoError) -> None:
        _log.warning("%s (%s) does not serve: %s", _name(source), where, error.message)
        if where == LOCAL:
            self._rotten.add(source.snapshot_ref)
        self._tried[where, source.sha256] = Tried(turn=source.turn, where=where, error=error.message)


class _LocalBytes:
    """A file whose disk refuses to give it is a damaged archive, not a broken sandbox."""

    def __init__(self, file: ByteSource) -> None:
        self._file = file

    def read(self, size: int, /) -> bytes:
        try:
            return self._file.read(size)
        except OSError as error:
            raise Damaged("ArchiveDamaged", f"the archive cannot be read: {error.strerror}") from error


def _build_report(source: Source, where: str, tried: list[Tried]) -> RestoreReport:
    start = "fork" if source.kind is SourceKind.FORK else "checkpoint"
    return RestoreReport(
        start=start, turn=source.turn, where=where, sha256=source.sha256, session=source.session, tried=tried
    )


def _name(source: Source) -> str:
    return "the parent's files" if source.kind is SourceKind.FORK else f"the checkpoint of turn {source.turn}"
