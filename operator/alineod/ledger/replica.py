"""Where the replicas of the ledger's terms are in the bucket, and which there are.

`<prefix>/<instance>/ledger/e<epoch, nine digits>/`: every term writes to a place of its own. Knows nothing of what
lies below that.
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from alineod.errors import AlineoError, Unavailable
from alineod.settings import BucketSettings


@dataclass(frozen=True)
class Replica:
    """One term's place in the bucket."""

    bucket: BucketSettings
    instance: str
    epoch: int

    @property
    def path(self) -> str:
        return build_ledger_prefix(self.bucket, self.instance) + build_epoch_name(self.epoch)


def build_ledger_prefix(bucket: BucketSettings, instance: str) -> str:
    """The key prefix of all terms, with a slash at its end."""
    return "/".join([*filter(None, [bucket.prefix]), instance, "ledger", ""])


def build_epoch_name(epoch: int) -> str:
    return f"e{epoch:09d}"


def parse_epoch_name(name: str) -> int | None:
    """The epoch, or None when `name` is not one `build_epoch_name` gave."""
    match = re.fullmatch(r"e(\d{9,})", name)
    return int(match[1]) if match else None


class BucketIndex:
    """Implements `port.ReplicaIndex` with an S3 client (boto3's, made by the caller)."""

    def __init__(self, client: Any, bucket: BucketSettings, instance: str) -> None:
        self._client = client
        self._bucket = bucket
        self._instance = instance

    async def epochs(self) -> Sequence[int]:
        return await asyncio.to_thread(self.read_epochs)

    def read_epochs(self) -> list[int]:
        """The same, blocking."""
        prefix = build_ledger_prefix(self._bucket, self._instance)
        epochs: list[int] = []
        try:
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self._bucket.name, Prefix=prefix, Delimiter="/"
            )
            for page in pages:
                names = [found["Prefix"][len(prefix) :].rstrip("/") for found in page.get("CommonPrefixes", [])]
                epochs.extend(epoch for epoch in map(parse_epoch_name, names) if epoch is not None)
        except _client_errors() as error:
            raise explain_s3(str(error), self._bucket) from error
        return epochs


def _client_errors() -> tuple[type[Exception], ...]:
    from boto3.exceptions import Boto3Error
    from botocore.exceptions import BotoCoreError, ClientError

    return (BotoCoreError, ClientError, Boto3Error)


def explain_s3(text: str, bucket: BucketSettings) -> AlineoError:
    """What an S3 client's error means for a person. Always Unavailable: the bucket's owner can mend all of them."""
    where = f"the bucket {bucket.name}" + (f" at {bucket.endpoint}" if bucket.endpoint else "")
    short = " ".join(text.split())[:400]
    if re.search(r"InvalidAccessKeyId|SignatureDoesNotMatch|AccessDenied|Forbidden|\b403\b|ExpiredToken", text):
        return Unavailable(
            "BucketDenied", f"Access to {where} is denied. Check the keys in its Secret and what they may do. ({short})"
        )
    if "NoSuchBucket" in text:
        return Unavailable("BucketMissing", f"There is no {where[4:]}. Create it or correct its name. ({short})")
    if re.search(r"NoCredentials|Unable to locate credentials|failed to refresh cached credentials", text):
        return Unavailable("BucketDenied", f"There are no keys for {where}. Name a Secret that holds them. ({short})")
    return Unavailable("BucketUnreachable", f"No usable answer from {where}. It is tried again. ({short})")
