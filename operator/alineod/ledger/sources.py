"""Which copy of the ledger a new term begins from. Pure: decides over what was found on volume and bucket."""

from collections.abc import Sequence
from dataclasses import dataclass

from alineod.ledger.places import LocalTerm


@dataclass(frozen=True)
class Found:
    """`remote` are the terms with a replica; None without a bucket, empty only when the bucket said so."""

    local: Sequence[LocalTerm]
    remote: Sequence[int] | None


@dataclass(frozen=True)
class New:
    """Begin an empty ledger."""


@dataclass(frozen=True)
class FromVolume:
    epoch: int


@dataclass(frozen=True)
class FromBucket:
    epoch: int


Source = New | FromVolume | FromBucket


def decide_sources(found: Found) -> list[Source]:
    """The copies to begin from: the first one that is undamaged. None of them lacks an acknowledged event.

    A term on the volume counts only if it was opened. It may hold events that the bucket has not, so it goes before
    the same term there. A later term in the bucket was led by another process: what the volume adds to an earlier one
    was never acknowledged.
    """
    local = max((term.epoch for term in found.local if term.opened), default=None)
    remote = max(found.remote or (), default=None)
    if local is None:
        return [New()] if remote is None else [FromBucket(remote)]
    if remote is None or local > remote:
        return [FromVolume(local)]
    if local == remote:
        return [FromVolume(local), FromBucket(remote)]
    return [FromBucket(remote)]


def compute_epoch(asked: int, found: Found) -> int:
    """The new term's number: above every one that was ever begun, and at least `asked`."""
    begun = [*(term.epoch for term in found.local), *(found.remote or ())]
    return max([asked, *(epoch + 1 for epoch in begun)])
