"""Which copy of the ledger a new term begins from. Pure: decides over what was found on volume and bucket."""

from collections.abc import Sequence
from dataclasses import dataclass

from alineod.ledger.places import LocalTerm


@dataclass(frozen=True)
class Found:
    """The terms on the volume; in the bucket, which one is `published` and the highest number that was `begun`.

    Without a bucket, and where it answered that nothing was ever there, both are 0.
    """

    local: Sequence[LocalTerm]
    published: int = 0
    begun: int = 0


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
    local = max((term.epoch for term in found.local if term.opened), default=0)
    if not local:
        return [FromBucket(found.published)] if found.published else [New()]
    if local > found.published:
        return [FromVolume(local)]
    if local == found.published:
        return [FromVolume(local), FromBucket(local)]
    return [FromBucket(found.published)]


def compute_epoch(asked: int, found: Found) -> int:
    """The new term's number: above every one that was ever begun, and at least `asked`."""
    return max([asked, found.begun + 1, *(term.epoch + 1 for term in found.local)])
