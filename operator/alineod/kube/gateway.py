"""The port to the Kubernetes API: what the operator may ask of it, with which records, failing in which ways.

Every call either returns what the server stored or raises one of `alineod.errors`; the table that translates
is `kube.failures`. It must not know HTTP, credentials, or what any object means.
"""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from alineod.errors import Conflict
from alineod.kube.objects import MANAGER, STATUS_MANAGER, Json, Resource

PAGE_SIZE = 500


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list; `continuation` is empty on the last one."""

    items: tuple[Json, ...]
    version: str
    continuation: str = ""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a token belongs to, as the cluster says."""

    username: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    audiences: tuple[str, ...] = ()

    @property
    def pod_uid(self) -> str:
        """The pod that a projected token is bound to; empty for anyone else."""
        return next(iter(self.extra.get("authentication.kubernetes.io/pod-uid", ())), "")

    @property
    def pod_name(self) -> str:
        """The name of the pod that a projected token is bound to; empty for anyone else."""
        return next(iter(self.extra.get("authentication.kubernetes.io/pod-name", ())), "")

    @property
    def namespace(self) -> str:
        """Of a service account; empty for anyone else."""
        prefix = "system:serviceaccount:"
        return self.username.removeprefix(prefix).partition(":")[0] if self.username.startswith(prefix) else ""


@dataclass(frozen=True, slots=True)
class AccessQuery:
    """May `identity` do `verb` to this? `name` empty asks about all of them."""

    identity: Identity
    verb: str
    resource: Resource
    namespace: str
    name: str = ""
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class AccessAnswer:
    """The cluster's answer, with its reason where it gave one."""

    allowed: bool
    reason: str = ""


class EventType(StrEnum):
    """Whether `kubectl describe` shows an Event as news or as a warning."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, slots=True)
class EventRecord:
    """Something a person would ask about, told once on the object it is about.

    `occurrence` is what makes a repeat the same Event (a ledger seq, an incarnation): the Event's name is derived
    from it, so that saying it again after a crash says it once.
    """

    resource: Resource
    regarding: Json
    type: EventType
    reason: str
    action: str
    note: str
    occurrence: str
    time: datetime


class Gateway(Protocol):
    """The Kubernetes API, as far as the operator uses it.

    All methods may raise: `NotFound`, `Conflict` (look again and decide anew), `Denied` (reason
    `NamespaceTerminating` when the namespace is going), `Refused` (the server's own words), `Unavailable`
    (with `retry_after` where the server named one).
    """

    async def get(self, resource: Resource, namespace: str, name: str) -> Json:
        """One object as it is now."""
        ...

    async def list_page(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        labels: str = "",
        metadata_only: bool = False,
        limit: int = PAGE_SIZE,
        continuation: str = "",
    ) -> Page:
        """A page of objects; `namespace` None means everywhere, `labels` is a selector.

        A continuation that the server has forgotten is `Conflict` with reason `Expired`.
        """
        ...

    async def create(self, resource: Resource, body: Json, *, dry_run: bool = False) -> Json:
        """Make an object; a taken name is `Conflict` with reason `AlreadyExists`."""
        ...

    async def delete(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        uid: str,
        version: str = "",
        grace_seconds: int | None = None,
    ) -> Json | None:
        """Ask for the end of this incarnation and, in the background, of what it owns.

        A `version` is a precondition: who has looked at an older one than there is now has to look again.

        Returns:
            The object while something still has to confirm its end, None when it is gone or already was.

        Raises:
            Conflict: another incarnation has the name, or it has another version.
        """
        ...

    async def apply(self, resource: Resource, body: Json, *, manager: str = MANAGER, force: bool = True) -> Json:
        """Server-side apply of the full intent of `manager`.

        A `metadata.uid` and a `metadata.resourceVersion` in the body are preconditions.
        """
        ...

    async def apply_status(
        self, resource: Resource, body: Json, *, manager: str = STATUS_MANAGER, force: bool = True
    ) -> Json:
        """Server-side apply to the status, with the same preconditions; never makes an object."""
        ...

    async def patch_labels(
        self, resource: Resource, namespace: str, name: str, labels: Mapping[str, str | None], *, version: str = ""
    ) -> Json:
        """Set labels, or with None remove them, and leave everything else; a `version` is a precondition."""
        ...

    async def review_token(self, token: str, audiences: Sequence[str]) -> Identity:
        """Who holds this token.

        Raises:
            Denied: reason `Unauthenticated`, when the cluster does not know it for one of the audiences.
        """
        ...

    async def review_access(self, query: AccessQuery) -> AccessAnswer:
        """Whether the cluster's own rules allow it."""
        ...

    async def create_event(self, event: EventRecord) -> None:
        """Tell it on the object; told before is no error."""
        ...

    async def read_missing(self, resources: Collection[Resource]) -> tuple[Resource, ...]:
        """Those of `resources` that the server does not serve (yet)."""
        ...


async def list_all(
    gateway: Gateway,
    resource: Resource,
    namespace: str | None = None,
    *,
    labels: str = "",
    metadata_only: bool = False,
) -> AsyncIterator[Json]:
    """Every object, page by page; a list that expires midway is a `Conflict` for the caller to begin again."""
    continuation = ""
    while True:
        page = await gateway.list_page(
            resource, namespace, labels=labels, metadata_only=metadata_only, continuation=continuation
        )
        for item in page.items:
            yield item
        continuation = page.continuation
        if not continuation:
            return


def is_expired(error: Conflict) -> bool:
    """Whether a list has to be begun again because the server has forgotten where it was."""
    return error.reason == "Expired"
