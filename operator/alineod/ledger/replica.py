"""Where the replicas of the ledger's terms are in the bucket, and which there are.

`<prefix>/<instance>/ledger/e<epoch, nine digits>/`: every term writes to a place of its own. Knows nothing of what
lies below that.
"""

import itertools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from alineod.bucket.port import Bucket
from alineod.settings import BucketSettings


@dataclass(frozen=True)
class Replica:
    """One term's place in the bucket."""

    bucket: BucketSettings
    instance: str
    epoch: int

    @property
    def path(self) -> str:
        return self.prefix.rstrip("/")

    @property
    def prefix(self) -> str:
        """What the keys of its objects begin with."""
        return build_term_prefix(build_ledger_prefix(self.bucket, self.instance), self.epoch)


def build_ledger_prefix(bucket: BucketSettings, instance: str) -> str:
    """The key prefix of all terms, with a slash at its end."""
    return "/".join([*filter(None, [bucket.prefix]), instance, "ledger", ""])


def build_term_prefix(prefix: str, epoch: int) -> str:
    """The key prefix of one term, with a slash at its end; `prefix` is that of all terms."""
    return f"{prefix}{build_epoch_name(epoch)}/"


def build_epoch_name(epoch: int) -> str:
    return f"e{epoch:09d}"


def parse_epoch_name(name: str) -> int | None:
    """The epoch, or None when `name` is not one `build_epoch_name` gave."""
    match = re.fullmatch(r"e(\d{9,})", name)
    return int(match[1]) if match else None


def read_terms(bucket: Bucket, prefix: str) -> Mapping[int, datetime]:
    """The terms that have anything below `prefix`, and when each was last written to, by the bucket's clock."""
    newest: dict[int, datetime] = {}
    for found in bucket.list(prefix):
        epoch = parse_epoch_name(found.key[len(prefix) :].partition("/")[0])
        if epoch is not None:
            newest[epoch] = max(found.modified, newest.get(epoch, found.modified))
    return newest


def delete_former_terms(
    bucket: Bucket, prefix: str, epoch: int, before: datetime, stopped: Callable[[], bool] = lambda: False
) -> int:
    """Remove the terms below the published one, `epoch`, that were last written to before `before`.

    Nobody reads them any more: whoever takes over begins from the published one. Ends early once `stopped`.

    Returns:
        How many objects went.
    """
    former = [term for term, newest in read_terms(bucket, prefix).items() if term < epoch and newest < before]
    keys = [found.key for term in former for found in bucket.list(build_term_prefix(prefix, term))]
    going = itertools.takewhile(lambda key: not stopped(), keys)
    return sum(1 for _ in map(bucket.delete, going))
