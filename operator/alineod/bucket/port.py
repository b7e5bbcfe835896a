"""The operator's door to the bucket, as a port. Knows nothing of any S3 client, nor of agents and turns.

Every call blocks and may be made from any thread; the operator makes them off its loop. What they raise:

    Denied       BucketAccessDenied      the keys are missing, wrong, or may not do this
    NotFound     BucketNotFound          there is no bucket of this name
    NotFound     ObjectNotFound          from `download` only
    Unavailable  BucketUnreachable       no answer, or one that says to come again later
    Conflict     PreconditionFailed      a conditional write met something else
    Refused      BucketRefused           any other refusal, in the store's own words
    Refused      ConditionalWritesIgnored  from `probe` only
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from alineod.errors import Conflict, Refused
from alineod.wire.turns import Grant


@dataclass(frozen=True, slots=True)
class StoredObject:
    """One object as the bucket shows it; `etag` without quotes, `modified` by the bucket's own clock."""

    key: str
    size: int
    etag: str
    modified: datetime


@dataclass(frozen=True, slots=True)
class Content:
    """A small object whole; `etag` for the condition of the next write."""

    body: bytes
    etag: str


class Bucket(Protocol):
    """One bucket with the keys to it."""

    def grant_put(self, key: str, expires: float) -> Grant:
        """Sign one PUT of one object that must not exist yet, good for `expires` seconds. No call to the bucket."""

    def grant_get(self, key: str, expires: float) -> Grant:
        """Sign one GET of one object, good for `expires` seconds. No call to the bucket."""

    def head(self, key: str) -> StoredObject | None:
        """What is stored under the key, or None."""

    def list(self, prefix: str) -> Iterator[StoredObject]:
        """The objects whose keys begin with the prefix, in the order of their keys, page by page."""

    def get(self, key: str) -> Content | None:
        """A small object whole, or None."""

    def download(self, key: str, path: Path) -> None:
        """Write an object of any size to a file.

        Raises:
            NotFound: reason `ObjectNotFound`.
        """

    def put(self, key: str, body: bytes, *, if_match: str | None = None, if_absent: bool = False) -> str:
        """Write a small object; returns its etag.

        Args:
            key: of the object.
            body: all of it.
            if_match: only over an object with this etag.
            if_absent: only where there is none.

        Raises:
            Conflict: reason `PreconditionFailed`; nothing was written.
        """

    def delete(self, key: str) -> None:
        """Remove an object; one that is not there is no error."""

    def probe(self, key: str) -> None:
        """Find out whether the bucket is there, the keys are good and conditional writes are kept.

        Args:
            key: of an object that this makes and removes; nobody else uses it at the same time.

        Raises:
            Denied, NotFound, Unavailable, Refused: see the module.
        """


def check_conditions(bucket: Bucket, key: str) -> None:
    """The part of `probe` that is the same for every store: write where something is, and be refused.

    Raises:
        Refused: reason `ConditionalWritesIgnored`.
    """
    bucket.delete(key)
    etag = bucket.put(key, b"1", if_absent=True)
    try:
        honoured = _is_refused(bucket, key, if_absent=True) and _is_refused(bucket, key, if_match="0" * len(etag))
    finally:
        bucket.delete(key)
    if not honoured:
        raise Refused(
            "ConditionalWritesIgnored",
            "the bucket accepts a write whose condition does not hold (If-None-Match, If-Match), so two leaders could "
            "overwrite each other; use a store that keeps conditional writes, or set bucket.fencing to LeaseOnly to "
            "trust the lease alone",
        )


def _is_refused(bucket: Bucket, key: str, if_match: str | None = None, if_absent: bool = False) -> bool:
    try:
        bucket.put(key, b"2", if_match=if_match, if_absent=if_absent)
    except Conflict:
        return True
    return False
