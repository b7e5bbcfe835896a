"""What a leader opens before it acts, each until it opens; what does not hang together goes on side by side.

What does not open is waited for with a sentence in `/readyz` and in the log; agents work on meanwhile.
"""

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NoReturn, TypeVar

from alineod.app.parts import Parts
from alineod.app.sight import Sight
from alineod.app.takeover import Takeover
from alineod.app.tasks import cancel_all
from alineod.bucket.port import Bucket
from alineod.bucket.s3 import S3Bucket, build_options
from alineod.checkpoints.keys import build_probe_key
from alineod.clock import Clock
from alineod.errors import AlineoError, Denied, Unavailable
from alineod.kube.access import ClusterAccess
from alineod.kube.exits import LEASE_LOST, POD_FAILED, exit_at_once
from alineod.kube.gateway import Gateway
from alineod.kube.objects import AGENTS, NAMESPACES, SWARMS
from alineod.ledger.failures import LOCAL_PATIENCE, LOCAL_REASONS
from alineod.ledger.open import open_ledger
from alineod.ledger.port import Ledger, Observe
from alineod.ledger.replicate import build_remote
from alineod.ledger.start import Opening
from alineod.settings import Settings
from alineod.threads import run_apart

T = TypeVar("T")
LONGEST_PAUSE = 30.0  # s between tries
LONGEST_SILENCE = 10.0  # s the bucket may say nothing; every acknowledgement waits for an answer of it
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Opened:
    """What a term works with; `cluster` is the cluster's identity."""

    ledger: Ledger
    cluster: str


class Waiting:
    """Why something is waited for: said in `/readyz`, and in the log when the reason is another one."""

    def __init__(self, parts: Parts, what: str) -> None:
        self._parts, self._what, self._reason = parts, what, ""
        self._since: float | None = None
        parts.health.set_waiting(what, "being opened")

    def say(self, error: AlineoError) -> None:
        """May be called from another thread."""
        if error.reason != self._reason:
            log.warning("waiting for %s: %s", self._what, error)
        self._reason = error.reason
        self._parts.health.set_waiting(self._what, error.message)
        if not is_local_failure(self._parts, error):
            self._since = None
        elif self._since is None:
            self._since = self._parts.clock.monotonic()

    def end(self) -> None:
        """It is there."""
        self._parts.health.set_there(self._what)

    async def leave(self, error: AlineoError) -> None:
        """End the term for `error`, if such has lasted so long that another pod should try."""
        if self._since is not None and self._parts.clock.monotonic() - self._since >= LOCAL_PATIENCE:
            await run_apart(partial(end_term, self._parts, error))


async def open_all(parts: Parts, gateway: Gateway, sight: Sight, epoch: int, takeover: Takeover) -> Opened:
    """Open everything of a term that the lease gave `epoch`; the ledger may move it on."""
    ledger = asyncio.create_task(_begin_ledger(parts, epoch, takeover), name="the ledger")
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_begin_to_see(parts, gateway, sight, takeover))
            cluster = group.create_task(_identify(parts, gateway, takeover))
            opened = await ledger
    except BaseException:
        await cancel_all([ledger])
        if not ledger.cancelled() and ledger.exception() is None:
            await ledger.result().close()
        raise
    return Opened(opened, cluster.result())


async def _begin_to_see(parts: Parts, gateway: Gateway, sight: Sight, takeover: Takeover) -> None:
    with takeover.timing("crds"):
        await _try(Waiting(parts, "the CRDs"), lambda: _confirm_crds(gateway))
    sight.start()


async def _identify(parts: Parts, gateway: Gateway, takeover: Takeover) -> str:
    with takeover.timing("identity"):
        waiting = Waiting(parts, "the cluster's identity")
        return await _try(waiting, lambda: _read_cluster_uid(gateway, parts.access))


async def _begin_ledger(parts: Parts, epoch: int, takeover: Takeover) -> Ledger:
    """The ledger's first write into a bucket comes after the proof that it keeps conditions."""
    if (bucket := parts.bucket) is not None:
        probe = build_probe_key(parts.base, parts.settings.pod_uid)
        with takeover.timing("probe"):
            await _try(Waiting(parts, "the bucket"), lambda: asyncio.to_thread(bucket.probe, probe))
    step, waiting = takeover.build_chain(), Waiting(parts, "the ledger")
    ledger = await _try(waiting, lambda: _open_ledger(parts, epoch, step, waiting))
    step("")
    if ledger.epoch > epoch:
        try:
            await run_apart(partial(parts.elector.raise_epoch, ledger.epoch, LONGEST_PAUSE))
        except BaseException:
            await ledger.close()
            raise
    parts.metrics.set_epoch(ledger.epoch)
    return ledger


async def _try(waiting: Waiting, act: Callable[[], Awaitable[T]]) -> T:
    """Until it works; what it waits for is said."""
    pause = 1.0
    while True:
        try:
            result = await act()
        except AlineoError as error:
            waiting.say(error)
            await waiting.leave(error)
        else:
            waiting.end()
            return result
        await asyncio.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE)


def is_local_failure(parts: Parts, error: AlineoError) -> bool:
    """Whether another pod may do better: it has a volume and a sidecar of its own, and the bucket has all the rest."""
    return parts.settings.bucket is not None and error.reason in LOCAL_REASONS


def end_term(parts: Parts, error: AlineoError) -> NoReturn:
    """End the process; where another pod may do better, it need not wait for the lease to run out."""
    if not is_local_failure(parts, error):
        exit_at_once(LEASE_LOST, error.message)
    parts.elector.release()
    exit_at_once(POD_FAILED, error.message)


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


def build_bucket(settings: Settings, clock: Clock) -> Bucket | None:
    """The bucket of this release; nobody is asked yet."""
    bucket = settings.bucket
    if bucket is None:
        directory = settings.ledger_dir
        log.warning("no bucket is configured: what is acknowledged lies on the volume %s alone", directory)
        return None
    return S3Bucket(replace(build_options(bucket), read_timeout=LONGEST_SILENCE), clock)


async def _open_ledger(parts: Parts, epoch: int, step: Callable[[str], None], waiting: Waiting) -> Ledger:
    settings, elector, metrics = parts.settings, parts.elector, parts.metrics
    opening = Opening(
        volume=settings.ledger_dir,
        instance=settings.instance,
        epoch=epoch,
        owner=f"{settings.namespace}/{elector.identity}",
    )
    remote = None
    if settings.bucket is not None and parts.bucket is not None:
        remote = build_remote(parts.bucket, settings.bucket, settings.instance, parts.env)
    return await open_ledger(
        opening,
        parts.clock,
        remote,
        may_lead=lambda: elector.is_leader,
        fatal=lambda error: end_term(parts, error),
        step=step,
        report=waiting.say,
        observe=Observe(metrics.observe_append, metrics.observe_commit, metrics.observe_confirm, metrics.count_failure),
    )
