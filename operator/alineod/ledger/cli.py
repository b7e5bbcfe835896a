"""`alineod ledger verify | dump | stats`: looks into a ledger on a volume or straight in a bucket. Changes nothing."""

import argparse
import asyncio
import os
import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from alineod.bucket.s3 import S3Bucket, build_options
from alineod.clock import SystemClock
from alineod.errors import Damaged, NotFound
from alineod.ledger import sql
from alineod.ledger.build import open_reading, verify_connection
from alineod.ledger.chain import Stored
from alineod.ledger.fence import Fence
from alineod.ledger.places import Volume
from alineod.ledger.replica import build_ledger_prefix, build_term_prefix
from alineod.ledger.restore import restore_replica
from alineod.settings import BucketSettings

OK, FAILED = 0, 1
_DEFAULT_VOLUME = "/var/lib/alineod"


def main(arguments: Sequence[str], env: Mapping[str, str]) -> int:
    """Run one verb. Returns 0, or 1 when the ledger is damaged.

    Raises:
        NotFound: there is no ledger, or no bucket, where it was looked for.
        Denied, Unavailable: the file or the bucket refuses or does not answer.
    """
    options = _build_parser(env).parse_args(list(arguments))
    with _find_file(options, env) as path, open_reading(path) as connection:
        try:
            options.verb(connection, options)
        except BrokenPipeError:
            # Whoever reads has seen enough; what is left in the buffer must not fail again at the end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except Damaged as damage:
            sys.stderr.write(f"{damage.message}\n")
            return FAILED
    return OK


def verify(connection: sqlite3.Connection, options: argparse.Namespace) -> None:
    """Check SQLite's structures, the sequence, the chain, and the fold that is kept beside them."""
    head = verify_connection(connection)
    _write(f"{head.seq:,} rows without a gap, chain intact; the last one is {head.hash}.")


def dump(connection: sqlite3.Connection, options: argparse.Namespace) -> None:
    """One line of JSON for each row."""
    statement = sql.build_select(options.run, options.agent, options.after, sql.LAST_SEQ, options.limit)
    for record in connection.execute(*statement):
        _write(msgspec.json.encode(build_line(sql.parse_record(record))).decode())


def stats(connection: sqlite3.Connection, options: argparse.Namespace) -> None:
    """What is in it, as one JSON object."""
    identity, head = sql.read_identity(connection), sql.read_head(connection)
    first, last = connection.execute(sql.SELECT_SPAN).fetchone()
    events = {
        event: {"rows": rows, "payloadBytes": size}
        for event, rows, size in connection.execute(sql.COUNT_EVENTS)
    }  # fmt: skip
    found = {
        "instance": identity.instance if identity else None,
        "epoch": identity.epoch if identity else None,
        "seq": head.seq,
        "hash": head.hash,
        "firstTime": _to_seconds(first),
        "lastTime": _to_seconds(last),
        "events": events,
    }
    _write(msgspec.json.format(msgspec.json.encode(found)).decode())


def build_line(row: Stored) -> Mapping[str, Any]:
    """A row as `dump` shows it; the payload keeps its bytes, so that the hash can be computed again."""
    return {
        "seq": row.seq, "time": _to_seconds(row.time), "id": row.id, "run": row.run, "agent": row.agent,
        "event": row.event, "payload": msgspec.Raw(row.payload.encode()), "prev": row.prev, "hash": row.hash,
    }  # fmt: skip


def _to_seconds(time: int | None) -> float | None:
    return None if time is None else time / 1_000_000


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _build_parser(env: Mapping[str, str]) -> argparse.ArgumentParser:
    where = argparse.ArgumentParser(add_help=False)
    where.add_argument("--file", type=Path, help="this file")
    where.add_argument(
        "--dir",
        type=Path,
        default=Path(env.get("ALINEOD_LEDGER_DIR") or _DEFAULT_VOLUME),
        help="the newest term on this volume (the default: %(default)s)",
    )
    where.add_argument(
        "--bucket",
        nargs="?",
        const=env.get("ALINEOD_BUCKET_NAME", ""),
        help="the term that counts in this bucket; without a name, in that of ALINEOD_BUCKET_NAME",
    )
    where.add_argument("--prefix", default=env.get("ALINEOD_BUCKET_PREFIX", ""), help="the bucket's prefix")
    where.add_argument("--endpoint", default=env.get("ALINEOD_BUCKET_ENDPOINT", ""), help="the bucket's URL")
    where.add_argument("--region", default=env.get("ALINEOD_BUCKET_REGION") or "us-east-1", help="the bucket's region")
    where.add_argument("--instance", default=env.get("ALINEOD_INSTANCE", "default"), help="the instance id")
    where.add_argument("--epoch", type=int, help="this term instead")
    parser = argparse.ArgumentParser("alineod ledger", description="Looks into a ledger and changes nothing.")
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    for verb, text in ((verify, "check sequence and chain"), (dump, "rows as JSON lines"), (stats, "counts and sizes")):
        verbs.add_parser(verb.__name__, parents=[where], help=text).set_defaults(verb=verb)
    chosen = verbs.choices["dump"]
    chosen.add_argument("--run", help="only of this run (namespace/name)")
    chosen.add_argument("--agent", help="only of this agent (namespace/name)")
    chosen.add_argument("--after", type=int, default=0, help="only rows above this seq")
    chosen.add_argument("--limit", type=int, default=-1, help="at most so many rows")
    return parser


@contextmanager
def _find_file(options: argparse.Namespace, env: Mapping[str, str]) -> Iterator[Path]:
    if options.file is not None:
        yield options.file
    elif options.bucket is not None:
        bucket = BucketSettings(options.bucket, options.prefix.strip("/"), options.endpoint, options.region)
        with tempfile.TemporaryDirectory() as directory:
            target = Path(directory) / "ledger.db"
            asyncio.run(_restore(bucket, options, target, env))
            yield target
    else:
        yield _find_local(options.dir, options.epoch)


def _find_local(directory: Path, epoch: int | None) -> Path:
    volume = Volume(directory)
    epochs = [term.epoch for term in volume.read_terms() if term.opened and epoch in (None, term.epoch)]
    if not epochs:
        raise NotFound(
            "NoLedger",
            f"There is no ledger{_describe(epoch)} in {directory}. Name another --dir or --file."
            " Of the operator's pods only the leader has one: its label is alineo.dev/role=leader.",
        )
    return volume.file(epochs[-1])


async def _restore(settings: BucketSettings, options: argparse.Namespace, target: Path, env: Mapping[str, str]) -> None:
    bucket = S3Bucket(build_options(settings), SystemClock())
    prefix = build_ledger_prefix(settings, options.instance)
    term = build_term_prefix(prefix, options.epoch or Fence(bucket, prefix).look().published)
    if next(bucket.list(term), None) is None:
        raise NotFound(
            "NoLedger",
            f"There is no ledger{_describe(options.epoch)} of the instance {options.instance} in the bucket"
            f" {settings.name} under the prefix {settings.prefix!r}. Name another --instance, --prefix or --bucket.",
        )
    await restore_replica(bucket, term, target, env)


def _describe(epoch: int | None) -> str:
    return "" if epoch is None else f" of term {epoch}"
