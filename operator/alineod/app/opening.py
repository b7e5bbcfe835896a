"""What a leader opens before it looks at anything, in order, each until it opens.

What does not open is waited for with a sentence in `/readyz` and in the log; agents work on meanwhile.
"""

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from alineod.app.parts import Parts
from alineod.bucket.port import Bucket
from alineod.bucket.s3 import S3Bucket, S3Options
from alineod.checkpoints.keys import build_probe_key
from alineod.errors import AlineoError, Denied, Unavailable
from alineod.kube.access import ClusterAccess
from alineod.kube.exits import LEASE_LOST, exit_at_once
from alineod.kube.gateway import Gateway
from alineod.kube.objects import AGENTS, NAMESPACES, SWARMS
from alineod.ledger.open import open_ledger
from alineod.ledger.port import Ledger
from alineod.ledger.replicate import build_remote
from alineod.ledger.start import Opening
from alineod.settings import Fencing

T = TypeVar("T")
LONGEST_PAUSE = 30.0  # s between tries
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Opened:
    """What a term works with; `cluster` is the cluster's identity."""

    ledger: Ledger
    bucket: Bucket | None
    cluster: str


async def open_all(parts: Parts, gateway: Gateway, epoch: int) -> Opened:
    """Open everything of a term that the lease gave `epoch`; the ledger may move it on."""
    await _try(parts, "the CRDs", lambda: _confirm_crds(gateway))
    cluster = await _try(parts, "the cluster's identity", lambda: _read_cluster_uid(gateway, parts.access))
    bucket = _build_bucket(parts)
    if bucket is not None:
        probe = build_probe_key(parts.base, parts.settings.pod_uid)
        await _try(parts, "the bucket", lambda: asyncio.to_thread(bucket.probe, probe))
    ledger = await _try(parts, "the ledger", lambda: _open_ledger(parts, epoch, bucket))
    if ledger.epoch > epoch:
        await asyncio.to_thread(parts.elector.raise_epoch, ledger.epoch, LONGEST_PAUSE)
    parts.metrics.set_epoch(ledger.epoch)
    return Opened(ledger, bucket, cluster)


async def _try(parts: Parts, what: str, act: Callable[[], Awaitable[T]]) -> T:
    """Until it works; a failure is said in `/readyz`, and once in the log."""
    pause, said = 1.0, ""
    while True:
        parts.health.set_waiting(f"{what}: {said or 'being opened'}")
        try:
            return await act()
        except AlineoError as error:
            if error.message != said:
                log.warning("waiting for %s: %s", what, error)
            said = error.message
        await asyncio.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE)


async def _confirm_crds(gateway: Gateway) -> None:
    missing = await gateway.read_missing((SWARMS, AGENTS))
    if missing:
        names = ", ".join(map(str, missing))
        raise Unavailable("ResourceNotServed", f"the CRDs {names} are not installed: apply the chart's crds/ directory")


async def _read_cluster_uid(gateway: Gateway, access: ClusterAccess) -> str:
    """The UID of kube-system; where that may not be read, the fingerprint of the cluster's authority."""
    try:
        return str((await gateway.get(NAMESPACES, "", "kube-system"))["metadata"]["uid"])
    except Denied:
        return hashlib.sha256(access.authority.encode()).hexdigest()


def _build_bucket(parts: Parts) -> Bucket | None:
    """The bucket of this release."""
    bucket = parts.settings.bucket
    if bucket is None:
        return None
    conditional = bucket.fencing is Fencing.CONDITIONAL_WRITES
    return S3Bucket(S3Options(bucket.name, bucket.endpoint, bucket.region, conditional=conditional), parts.clock)


async def _open_ledger(parts: Parts, epoch: int, bucket: Bucket | None) -> Ledger:
    settings, elector = parts.settings, parts.elector
    opening = Opening(
        volume=settings.ledger_dir,
        instance=settings.instance,
        epoch=epoch,
        owner=elector.identity,
    )
    remote = None
    if settings.bucket is not None and bucket is not None:
        remote = build_remote(bucket, settings.bucket, settings.instance, parts.env)
    return await open_ledger(
        opening,
        parts.clock,
        remote,
        may_lead=lambda: elector.is_leader,
        fatal=lambda error: exit_at_once(LEASE_LOST, error.message),
        step=lambda name: log.info("opening the ledger: %s", name),
    )
