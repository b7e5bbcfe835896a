"""Replication by Litestream in the sidecar: implements `port.Replicator`, and says where in the bucket it goes."""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from alineod.bucket.port import Bucket
from alineod.errors import AlineoError, Damaged, Fenced, Unavailable
from alineod.ledger.control import ControlSocket
from alineod.ledger.failures import REPLICATOR_DOWN, build_closed
from alineod.ledger.litestream import UNREACHABLE
from alineod.ledger.order import SOCKET, Order, read_sign_age, write_order
from alineod.ledger.pace import Next, Pace
from alineod.ledger.port import Replicator
from alineod.ledger.replica import Replica, build_ledger_prefix
from alineod.ledger.restore import restore_replica
from alineod.settings import BucketSettings

log = logging.getLogger(__name__)
RUN_DIRECTORY = Path("/run/alineod")
"""Shared with the sidecar."""
SIGN_LIMIT = 5.0
"""Seconds without a sign of life of the sidecar until a silent Litestream is put down to it."""


@dataclass(frozen=True)
class Remote:
    """The bucket, the place of all terms in it (a key prefix with a slash at its end), and what copies to it."""

    bucket: Bucket
    prefix: str
    replicator: Replicator


@dataclass
class LitestreamReplicator:
    """Orders by a file in `run`, syncs over a socket there. `env` says where the program is."""

    bucket: Bucket
    settings: BucketSettings
    instance: str
    run: Path
    env: Mapping[str, str]
    monotonic: Callable[[], float] = time.monotonic
    _pace: Pace = field(default_factory=Pace)
    _order: Order | None = None

    def begin(self, epoch: int, database: Path) -> None:
        self._pace = Pace(database.stat().st_size)
        self._give(Order(str(database), self.instance, epoch, self.settings))

    def sync(self, database: Path, stopped: Callable[[], bool]) -> None:
        def check() -> None:
            if stopped():
                raise build_closed()
            self._check_sidecar("Litestream does not answer.")

        began = self.monotonic()
        try:
            reply = ControlSocket(self.run / SOCKET, self.settings).sync(database, self._pace.timeout, check)
        except AlineoError as failure:
            self._follow(self._pace.note_failure(failure, began, self.monotonic()), failure)
            if failure.reason == UNREACHABLE:
                self._check_sidecar(failure.message)
            raise
        self._pace.note_success(self.monotonic() - began)
        if reply.replicated_txid > reply.txid:
            raise Fenced(
                "ReplicaOvertaken",
                f"The replica of {database} holds transaction {reply.replicated_txid} while this process has"
                f" written {reply.txid}: another process writes to the same place.",
            )

    async def restore(self, epoch: int, target: Path) -> None:
        place = Replica(self.settings, self.instance, epoch)
        await restore_replica(self.bucket, place.prefix, target, self.env)

    def _check_sidecar(self, why: str) -> None:
        if (age := read_sign_age(self.run)) > SIGN_LIMIT:
            silent = "has given no sign of life yet" if age == float("inf") else f"is silent for {age:.0f} s"
            message = f"The sidecar litestream {silent}. Look at that container and its log. ({why})"
            raise Unavailable(REPLICATOR_DOWN, message)

    def _follow(self, what: Next, failure: AlineoError) -> None:
        if what is Next.REPLACE and self._order is not None:
            log.warning("Litestream is replaced: it keeps every sync waiting")
            self._give(msgspec.structs.replace(self._order, attempt=self._order.attempt + 1))
        if what is Next.GIVE_UP:
            message = f"{failure.message} That lasted, so this term ends: the next one checks the ledger's file first."
            raise Damaged("ReplicationBroken", message) from failure

    def _give(self, order: Order) -> None:
        self._order = order
        try:
            write_order(self.run, order)
        except OSError as error:
            message = f"The order for Litestream cannot be written to {self.run}: {error}. Look at that volume."
            raise Unavailable(UNREACHABLE, message) from error


def build_remote(
    bucket: Bucket, settings: BucketSettings, instance: str, env: Mapping[str, str], run: Path = RUN_DIRECTORY
) -> Remote:
    """The remote side of an instance's ledger in the bucket that `settings` names and `bucket` reaches."""
    replicator = LitestreamReplicator(bucket, settings, instance, run, env)
    return Remote(bucket, build_ledger_prefix(settings, instance), replicator)
