"""A bucket in memory, under the same contract suite as the real ones. Its grants are values nobody can spend."""

import hashlib
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from alineod.bucket.port import Content, StoredObject, check_conditions
from alineod.clock import Clock, SystemClock
from alineod.errors import Conflict, Denied, NotFound
from alineod.wire.turns import Grant


class MemoryBucket:
    """Objects in a dict; `failure`, when set, is raised by every call that would go over the network."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._objects: dict[str, tuple[bytes, StoredObject]] = {}
        self.failure: Exception | None = None
        self.write_once = False

    def grant_put(self, key: str, expires: float) -> Grant:
        return self._grant("PUT", key, expires, {"If-None-Match": "*"})

    def grant_get(self, key: str, expires: float) -> Grant:
        return self._grant("GET", key, expires, {})

    def head(self, key: str) -> StoredObject | None:
        self._reach()
        found = self._objects.get(key)
        return found[1] if found else None

    def list(self, prefix: str) -> Iterator[StoredObject]:
        self._reach()
        yield from [self._objects[key][1] for key in sorted(self._objects) if key.startswith(prefix)]

    def get(self, key: str) -> Content | None:
        self._reach()
        found = self._objects.get(key)
        return Content(found[0], found[1].etag) if found else None

    def download(self, key: str, path: Path) -> None:
        found = self.get(key)
        if found is None:
            raise NotFound("ObjectNotFound", f"{key} is not there")
        path.write_bytes(found.body)

    def put(self, key: str, body: bytes, *, if_match: str | None = None, if_absent: bool = False) -> str:
        self._reach()
        with self._lock:
            found = self._objects.get(key)
            if (if_absent and found) or (if_match is not None and (not found or found[1].etag != if_match)):
                raise Conflict("PreconditionFailed", f"{key} is not as the condition wants it")
            etag = hashlib.md5(body, usedforsecurity=False).hexdigest()
            modified = self._clock.now().astimezone(UTC).replace(microsecond=0)
            self._objects[key] = (bytes(body), StoredObject(key, len(body), etag, modified))
            return etag

    def delete(self, key: str) -> None:
        self._reach()
        if self.write_once:
            raise Denied("AccessDenied", f"{key} may not be deleted")
        with self._lock:
            self._objects.pop(key, None)

    def probe(self, key: str) -> None:
        check_conditions(self, key)

    def _reach(self) -> None:
        if self.failure is not None:
            raise self.failure

    def _grant(self, method: str, key: str, expires: float, headers: dict[str, str]) -> Grant:
        until: datetime = self._clock.now()
        return Grant(
            method=method, url=f"memory://{key}", headers=headers, key=key, expires_at=until.timestamp() + int(expires)
        )
