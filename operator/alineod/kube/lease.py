"""Who leads: the decision over one Lease, from what was observed of it and when. Pure.

Time is this process's own monotonic clock; the times that others write into the Lease are never compared, since
clocks of two machines differ.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from alineod.kube.objects import LEASES, Json, read_uid


@dataclass(frozen=True, slots=True)
class LeaseTiming:
    """Seconds: how long a silent holder counts, when a holder gives up by itself, how often either looks."""

    duration: float = 15.0
    renew_deadline: float = 10.0
    retry: float = 2.0

    def compute_retry(self, chance: float) -> float:
        """The next pause, spread by a fifth so that contenders do not march in step; `chance` is in [0, 1)."""
        return self.retry * (0.9 + chance / 5)


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """What the Lease says. `epoch` is its `leaseTransitions`, 0 where nobody ever held it."""

    holder: str
    duration: float
    epoch: int
    version: str
    uid: str = ""


@dataclass(frozen=True, slots=True)
class Observed:
    """The Lease as last read, None when there is none, and since when it has looked like that, as we saw it."""

    record: LeaseRecord | None
    since: float


@dataclass(frozen=True, slots=True)
class Held:
    """Our own leadership: its epoch, and when we last began a renewal that succeeded."""

    epoch: int
    renewed: float


@dataclass(frozen=True, slots=True)
class Acquire:
    """Write our name with this epoch over exactly the version that was read."""

    epoch: int
    over: LeaseRecord | None


@dataclass(frozen=True, slots=True)
class Renew:
    """Write our name again; with a higher epoch where the ledger has asked for one."""

    epoch: int
    over: LeaseRecord


@dataclass(frozen=True, slots=True)
class Wait:
    """Someone else holds it, for at most this many seconds more if `over` is still what the Lease says then."""

    seconds: float
    over: LeaseRecord


@dataclass(frozen=True, slots=True)
class Lost:
    """We led and must stop at once."""

    why: str


Decision = Acquire | Renew | Wait | Lost


def decide_lease(
    observed: Observed, me: str, held: Held | None, now: float, timing: LeaseTiming, floor: int = 1
) -> Decision:
    """What a process called `me` does about the Lease now.

    Args:
        observed: the Lease and since when it has looked like that.
        me: a name that no other process has.
        held: our leadership, None without.
        now: on the clock of `observed` and `held`.
        timing: the figures that every contender shares.
        floor: the lowest epoch we may lead in; a new Lease beside an old ledger has to catch up with it.
    """
    if held is not None:
        return _decide_as_leader(observed.record, me, held, now, timing, floor)
    record = observed.record
    if record is None:
        return Acquire(floor, None)
    left = 0.0 if _is_free(record.holder, me) else observed.since + record.duration - now
    return Wait(left, record) if left > 0 else Acquire(max(record.epoch + 1, floor), record)


def _is_free(holder: str, me: str) -> bool:
    """Whether nobody who lives holds it. Our own name without leadership is a write of ours whose answer was lost."""
    return holder in ("", me) or is_predecessor(holder, me)


def is_predecessor(holder: str, me: str) -> bool:
    """Whether `holder` was an earlier process of the pod that `me` is the process of now.

    It has ended: the kubelet starts a container only after the one before it, and a process contends only while it
    has the pod's ports (docs/decisions/0006). Names that do not say which pod they mean are never taken for one.
    """
    theirs, ours = holder.split("_"), me.split("_")
    whole = len(theirs) == len(ours) == 3 and all(ours)
    return whole and theirs[:2] == ours[:2] and theirs != ours


def _decide_as_leader(
    record: LeaseRecord | None, me: str, held: Held, now: float, timing: LeaseTiming, floor: int
) -> Renew | Lost:
    if now >= held.renewed + timing.renew_deadline:
        return Lost(f"the lease could not be renewed for {timing.renew_deadline:g} s")
    if record is None:
        return Lost("the Lease was deleted")
    if record.holder != me:
        return Lost(f"{record.holder or 'nobody'} holds the lease in epoch {record.epoch}")
    # The record is ahead of us where the answer to our own write was lost.
    return Renew(max(held.epoch, record.epoch, floor), record)


def compute_observed(known: Observed | None, record: LeaseRecord | None, now: float) -> Observed:
    """The observation after reading `record`: any change of it starts its time anew."""
    return known if known is not None and known.record == record else Observed(record, now)


def parse_lease(obj: Json) -> LeaseRecord:
    """What a Lease object says."""
    spec: dict[str, Any] = obj.get("spec") or {}
    return LeaseRecord(
        holder=spec.get("holderIdentity") or "",
        duration=float(spec.get("leaseDurationSeconds") or 0),
        epoch=int(spec.get("leaseTransitions") or 0),
        version=str(obj["metadata"].get("resourceVersion") or ""),
        uid=read_uid(obj),
    )


def build_lease(
    namespace: str, name: str, record: LeaseRecord, now: datetime, acquired: datetime | None = None
) -> Json:
    """The Lease object to write; `record.version` and `record.uid` are its preconditions, empty to make it."""
    metadata = {"name": name, "namespace": namespace, "resourceVersion": record.version, "uid": record.uid}
    times = {"renewTime": _write_time(now), "acquireTime": _write_time(acquired or now)}
    return {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {key: value for key, value in metadata.items() if value},
        "spec": {
            "holderIdentity": record.holder,
            "leaseDurationSeconds": max(1, round(record.duration)),
            "leaseTransitions": record.epoch,
            **times,
        },
    }


def build_identity(pod_name: str, pod_uid: str, build_random: Callable[[], str]) -> str:
    """A holder's name that no other process has, not even the next one of the same pod; `is_predecessor` reads it."""
    return f"{pod_name}_{pod_uid}_{build_random()}"


def _write_time(moment: datetime) -> str:
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
