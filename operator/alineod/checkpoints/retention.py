"""Which of an agent's checkpoints may go. Pure; the time is the bucket's own, as its objects' are."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from alineod.bucket.port import StoredObject
from alineod.checkpoints.keys import parse_checkpoint_name

ASIDE_AGE = 7 * 24 * 3600.0


@dataclass(frozen=True, slots=True)
class KnownCheckpoint:
    """A checkpoint the ledger holds. `aside_since`: when the agent came back from another one and left it behind."""

    key: str
    aside_since: datetime | None = None


def decide_expired(
    objects: Iterable[StoredObject],
    recorded: Iterable[KnownCheckpoint],
    now: datetime,
    keep: int = 3,
    min_age: float = 600.0,
) -> list[str]:
    """The keys to delete, of one agent.

    An object goes when at least `keep` recorded checkpoints are newer than it and it is older than `min_age` seconds.
    So one that is not recorded yet, because its report waits for the operator, stays while it would be among the
    newest. Those set aside do not count and stay seven days. Keys that are no checkpoint's are never named.
    """
    known = {checkpoint.key: checkpoint for checkpoint in recorded}
    names = [parse_checkpoint_name(key) for key, checkpoint in known.items() if checkpoint.aside_since is None]
    newest = sorted((name for name in names if name is not None), reverse=True)[:keep]
    expired: list[str] = []
    for found in objects:
        name = parse_checkpoint_name(found.key)
        checkpoint = known.get(found.key)
        if name is None:
            continue
        if checkpoint is not None and checkpoint.aside_since is not None:
            due = now - checkpoint.aside_since >= timedelta(seconds=ASIDE_AGE)
        else:
            due = len(newest) == keep and name < newest[-1]
        if due and now - found.modified >= timedelta(seconds=min_age):
            expired.append(found.key)
    return expired
