"""Cuts checkpoints and forks into the store. Blocking; one at a time; the same request again gives the same archive."""

import hashlib
import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from alineod.checkpointer.environment import Environment
from alineod.checkpointer.patience import compute_delay
from alineod.checkpointer.remote import put_file
from alineod.checkpoints.archive.excludes import build_excludes
from alineod.checkpoints.archive.format import VERSION, Head
from alineod.checkpoints.archive.pack import Contents, write_archive
from alineod.checkpoints.archive.read import verify_file
from alineod.checkpoints.keys import build_file_name
from alineod.checkpoints.store import Store, Stored, StoredFork
from alineod.errors import AlineoError, Conflict, Refused
from alineod.wire.archives import CheckpointReport, CutRequest, ForkRequest, ForkResult
from alineod.wire.turns import Grant

_FORK_TRIES = 3  # of its upload, before the child reads it from this pod instead
_log = logging.getLogger("alineod.checkpointer")


@dataclass(frozen=True, slots=True)
class _Digest:
    sha256: str
    md5: str
    size: int


class Packer:
    """The one that packs, of one pod."""

    def __init__(
        self, environment: Environment, store: Store, now: Callable[[], float], sleep: Callable[[float], None]
    ) -> None:
        self._environment = environment
        self._store = store
        self._now = now
        self._sleep = sleep
        self._lock = threading.Lock()

    def cut(self, request: CutRequest) -> Stored:
        """The checkpoint of a turn, on the disk and read back.

        Raises:
            Conflict: reason `TurnTaken`; there is one of another turn under this number.
            Refused: reason `ArchiveNotWritten`; the volume does not take it.
            Damaged: what was written does not read back.
        """
        with self._lock:
            known = self._store.find(request.turn, self._environment.incarnation)
            if known is None:
                return self._cut(request)
            if known.report.turn_id != request.turn_id:
                taken = f"turn {request.turn} was cut already, as {known.report.turn_id} and not {request.turn_id}"
                raise Conflict("TurnTaken", taken)
            return known

    def _cut(self, request: CutRequest) -> Stored:
        name = build_file_name(request.turn, self._environment.incarnation)
        partial = self._store.scratch / f"{name}.partial"
        digest = self._write(partial, self._build_contents(request))
        report = CheckpointReport(
            turn=request.turn,
            turn_id=request.turn_id,
            incarnation=self._environment.incarnation,
            snapshot_ref=name,
            sha256=digest.sha256,
            md5=digest.md5,
            bytes=digest.size,
            session=request.session,
        )
        stored = Stored(report=report, grant=request.grant)
        self._store.add(partial, stored)
        return stored

    def fork(self, request: ForkRequest) -> StoredFork:
        """A copy of the files as they are now, uploaded where there is a grant and the bucket takes it.

        Raises:
            Refused: reasons `InvalidForkId`, `ArchiveNotWritten`.
            Damaged: what was written does not read back.
        """
        path = self._store.get_fork_path(request.fork_id)
        with self._lock:
            stored = self._store.find_fork(request.fork_id) or self._cut_fork(request, path)
        if request.grant is None or stored.result.uploaded:
            return stored
        return self._upload_fork(stored, path, request.grant)

    def _cut_fork(self, request: ForkRequest, path: Path) -> StoredFork:
        partial = path.with_name(path.name + ".partial")
        excludes = build_excludes((*self._environment.exclude, *request.exclude))
        environment = self._environment
        digest = self._write(partial, Contents(self._build_head(), environment.home, environment.workspace, excludes))
        result = ForkResult(
            fork_id=request.fork_id, sha256=digest.sha256, bytes=digest.size, md5=digest.md5, uploaded=False
        )
        stored = StoredFork(result=result, read_token=request.read_token)
        self._store.add_fork(partial, stored)
        return stored

    def _upload_fork(self, stored: StoredFork, path: Path, grant: Grant) -> StoredFork:
        result = stored.result
        for attempt in range(1, _FORK_TRIES + 1):
            try:
                put_file(grant, path, result.bytes, result.md5)
            except AlineoError as error:
                _log.warning("fork %s is not uploaded: %s", result.fork_id, error.message)
                if not error.retryable:
                    break
                if attempt < _FORK_TRIES:
                    self._sleep(compute_delay(attempt))
            else:
                uploaded = ForkResult(
                    fork_id=result.fork_id, sha256=result.sha256, bytes=result.bytes, md5=result.md5, uploaded=True
                )
                stored = StoredFork(result=uploaded, read_token=stored.read_token)
                self._store.update_fork(stored)
                break
        return stored

    def _build_contents(self, request: CutRequest) -> Contents:
        environment = self._environment
        head = self._build_head(request)
        excludes = build_excludes(environment.exclude)
        return Contents(head, environment.home, environment.workspace, excludes, environment.control / "journal")

    def _build_head(self, request: CutRequest | None = None) -> Head:
        environment = self._environment
        return Head(
            version=VERSION,
            agent=environment.agent,
            run=environment.run,
            incarnation=environment.incarnation,
            home=str(environment.home),
            created=self._now(),
            turn=request.turn if request else None,
            turn_id=request.turn_id if request else "",
            session=request.session if request else None,
        )

    def _write(self, partial: Path, contents: Contents) -> _Digest:
        """Write an archive and read it back; nothing is left of one that fails."""
        begun = time.monotonic()
        try:
            with partial.open("wb", buffering=0) as file:
                out = _DigestingFile(file)
                manifest = write_archive(out, contents, self._store.scratch)
                os.fsync(file.fileno())
            digest = out.finish()
            verify_file(partial, digest.sha256, digest.size)
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise Refused(
                "ArchiveNotWritten",
                f"the archive cannot be written to the checkpoint volume: {error.strerror}; "
                "a larger storage.checkpoints.sizeLimit may be needed",
            ) from error
        except AlineoError:
            partial.unlink(missing_ok=True)
            raise
        took = time.monotonic() - begun
        skipped = f", {manifest.skipped_count} paths skipped" if manifest.skipped_count else ""
        _log.info("cut %s: %d bytes in %.1f s%s", partial.stem, digest.size, took, skipped)
        return digest


class _DigestingFile:
    """Takes the digests of what is written to a file."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._sha256 = hashlib.sha256()
        self._md5 = hashlib.md5(usedforsecurity=False)  # what an ETag is
        self._size = 0

    def write(self, data: bytes) -> int:
        view = memoryview(data)
        self._sha256.update(view)
        self._md5.update(view)
        self._size += len(view)
        while view:
            view = view[self._file.write(view) :]
        return len(data)

    def finish(self) -> _Digest:
        return _Digest(self._sha256.hexdigest(), self._md5.hexdigest(), self._size)
