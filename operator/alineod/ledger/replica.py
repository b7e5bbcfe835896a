"""Where the replicas of the ledger's terms are in the bucket, and which there are.

`<prefix>/<instance>/ledger/e<epoch, nine digits>/`: every term writes to a place of its own. Knows nothing of what
lies below that.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from alineod.bucket.port import Bucket
from alineod.errors import AlineoError, Denied, NotFound, Unavailable
from alineod.ledger.pace import SLOW
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


def delete_former_terms(bucket: Bucket, prefix: str, epoch: int, before: datetime) -> int:
    """Remove the terms below the published one, `epoch`, that were last written to before `before`.

    Nobody reads them any more: whoever takes over begins from the published one.

    Returns:
        How many objects went.
    """
    former = [term for term, newest in read_terms(bucket, prefix).items() if term < epoch and newest < before]
    keys = [found.key for term in former for found in bucket.list(build_term_prefix(prefix, term))]
    for key in keys:
        bucket.delete(key)
    return len(keys)


def explain_s3(text: str, bucket: BucketSettings) -> AlineoError:
    """What an S3 error in Litestream's words means for a person; the reasons are those of `bucket.port`."""
    where = f"the bucket {bucket.name}" + (f" at {bucket.endpoint}" if bucket.endpoint else "")
    short = " ".join(text.split())[:400]
    if re.search(r"InvalidAccessKeyId|SignatureDoesNotMatch|AccessDenied|Forbidden|\b403\b|ExpiredToken", text):
        return Denied(
            "BucketAccessDenied",
            f"Access to {where} is denied. Check the keys in its Secret and what they may do. ({short})",
        )
    if "NoSuchBucket" in text:
        return NotFound("BucketNotFound", f"There is no {where[4:]}. Create it or correct its name. ({short})")
    if re.search(r"NoCredentials|Unable to locate credentials|failed to refresh cached credentials", text):
        return Denied("BucketAccessDenied", f"There are no keys for {where}. Name a Secret that holds them. ({short})")
    if "context deadline exceeded" in text and "dial tcp" not in text:
        return Unavailable(
            SLOW,
            f"No usable answer in time from {where}: it is slow, busy or away. It is tried again. ({short})",
        )
    return Unavailable("BucketUnreachable", f"No usable answer from {where}. It is tried again. ({short})")
