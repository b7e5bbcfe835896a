"""Replication by Litestream in the sidecar: implements `port.Replicator`, and says where in the bucket it goes."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from alineod.bucket.port import Bucket
from alineod.errors import Fenced
from alineod.ledger.control import ControlSocket
from alineod.ledger.port import Replicator
from alineod.ledger.replica import Replica, build_ledger_prefix
from alineod.ledger.restore import restore_replica
from alineod.ledger.term import SOCKET, Term, write_order
from alineod.settings import BucketSettings

RUN_DIRECTORY = Path("/run/alineod")
"""Shared with the sidecar."""
SYNC_TIMEOUT = 2.0
"""Seconds for one try; short, so that the first one after an outage is soon."""


@dataclass(frozen=True)
class Remote:
    """The bucket, the place of all terms in it (a key prefix with a slash at its end), and what copies to it."""

    bucket: Bucket
    prefix: str
    replicator: Replicator


@dataclass(frozen=True)
class LitestreamReplicator:
    """Orders by a file in `run`, syncs over a socket there. `env` says where the program is."""

    bucket: Bucket
    settings: BucketSettings
    instance: str
    run: Path
    env: Mapping[str, str]

    def begin(self, epoch: int, database: Path) -> None:
        write_order(self.run, Term(str(database), self.instance, epoch, self.settings))

    def sync(self, database: Path) -> None:
        reply = ControlSocket(self.run / SOCKET, self.settings).sync(database, SYNC_TIMEOUT)
        if reply.replicated_txid > reply.txid:
            raise Fenced(
                "ReplicaOvertaken",
                f"The replica of {database} holds transaction {reply.replicated_txid} while this process has"
                f" written {reply.txid}: another process writes to the same place.",
            )

    async def restore(self, epoch: int, target: Path) -> None:
        place = Replica(self.settings, self.instance, epoch)
        await restore_replica(self.bucket, place.prefix, target, self.env)


def build_remote(
    bucket: Bucket, settings: BucketSettings, instance: str, env: Mapping[str, str], run: Path = RUN_DIRECTORY
) -> Remote:
    """The remote side of an instance's ledger in the bucket that `settings` names and `bucket` reaches."""
    replicator = LitestreamReplicator(bucket, settings, instance, run, env)
    return Remote(bucket, build_ledger_prefix(settings, instance), replicator)
