"""The gateway without a cluster, for tests of what is decided and done.

Answers like the real API server as far as the contract suite looks. It must not know what our kinds mean.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from alineod.clock import Clock
from alineod.errors import Conflict, Denied
from alineod.kube.bodies import build_event
from alineod.kube.fields import copy_json
from alineod.kube.gateway import PAGE_SIZE, AccessAnswer, AccessQuery, EventRecord, Identity, Page
from alineod.kube.memory_objects import ObjectBase
from alineod.kube.objects import (
    AGENTS,
    EVENTS,
    MANAGER,
    NAMESPACES,
    PODS,
    STATUS_MANAGER,
    SWARMS,
    Json,
    Ref,
    Resource,
    read_ref,
)

T = TypeVar("T")


class Moment(StrEnum):
    """When a hook is called: before the server has the request, or when only its answer is missing."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True)
class Call:
    """One request, numbered from 1; `writes` tells those that could change something."""

    number: int
    verb: str
    target: str
    writes: bool


Hook = Callable[[Call, Moment], None]


class MemoryGateway:
    """`Gateway` over mappings.

    `hook` may raise to lose a request or, afterwards, its answer; `calls` holds every request made. `objects` has
    the powers of people, kubelets and the garbage collector, and the watchers.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        namespaces: Iterable[str] = ("default",),
        with_status: Collection[Resource] = (SWARMS, AGENTS, PODS),
        hook: Hook = lambda call, moment: None,
    ) -> None:
        self.hook = hook
        self.objects = ObjectBase(clock, with_status)
        self.calls: list[Call] = []
        self.unserved: set[Resource] = set()
        self.tokens: dict[str, Identity] = {}
        self.allows: Callable[[AccessQuery], bool] = lambda query: True
        self._with_status = frozenset(with_status)
        self._pages: dict[str, list[Json]] = {}
        for name in namespaces:
            self.objects.insert(NAMESPACES, {"metadata": {"name": name}, "spec": {"finalizers": ["kubernetes"]}})

    async def get(self, resource: Resource, namespace: str, name: str) -> Json:
        ref = Ref(resource, namespace, name)
        return self._perform("get", ref, lambda: copy_json(self.objects.read(ref)))

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
        def answer() -> Page:
            found = self._pages.pop(continuation, None) if continuation else None
            if continuation and found is None:
                raise Conflict("Expired", "The provided continue parameter is too old.")
            rest = self.objects.find(resource, namespace, labels) if found is None else found
            version = self.objects.build_version()
            left = f"after-{version}" if len(rest) > limit else ""
            if left:
                self._pages[left] = rest[limit:]
            return Page(tuple(_as_listed(obj, metadata_only) for obj in rest[:limit]), version, left)

        return self._perform("list", resource, answer)

    async def create(self, resource: Resource, body: Json, *, dry_run: bool = False) -> Json:
        ref = read_ref(resource, body)

        def act() -> Json:
            self.objects.check_admission(ref)
            if ref in self.objects:
                raise Conflict("AlreadyExists", f'{resource} "{ref.name}" already exists')
            return self.objects.prepare(resource, body) if dry_run else self.objects.insert(resource, body)

        return self._perform("create", ref, act, writes=not dry_run)

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
        ref = Ref(resource, namespace, name)

        def act() -> Json | None:
            if ref not in self.objects:
                return None
            self.objects.check_incarnation(ref, {"metadata": {"uid": uid, "resourceVersion": version}})
            return self.objects.end(ref, grace_seconds)

        return self._perform("delete", ref, act, writes=True)

    async def apply(self, resource: Resource, body: Json, *, manager: str = MANAGER, force: bool = True) -> Json:
        ref = read_ref(resource, body)
        dropped = ("status",) if resource in self._with_status else ()
        intent = {name: value for name, value in body.items() if name not in dropped}
        return self._perform(
            "apply", ref, lambda: self.objects.apply(ref, intent, f"apply {manager}", force=force), writes=True
        )

    async def apply_status(
        self, resource: Resource, body: Json, *, manager: str = STATUS_MANAGER, force: bool = True
    ) -> Json:
        ref = read_ref(resource, body)

        def act() -> Json:
            self.objects.read(ref)
            intent = {"metadata": body["metadata"], "status": body["status"]}
            return self.objects.apply(ref, intent, f"apply {manager}", force=force)

        return self._perform("apply_status", ref, act, writes=True)

    async def patch_labels(
        self, resource: Resource, namespace: str, name: str, labels: Mapping[str, str | None], *, version: str = ""
    ) -> Json:
        ref = Ref(resource, namespace, name)

        def act() -> Json:
            obj = copy_json(self.objects.read(ref))
            self.objects.check_incarnation(ref, {"metadata": {"resourceVersion": version}})
            merged = {**(obj["metadata"].get("labels") or {}), **labels}
            obj["metadata"]["labels"] = {label: value for label, value in merged.items() if value is not None}
            return self.objects.replace(ref, obj)

        return self._perform("patch", ref, act, writes=True)

    async def review_token(self, token: str, audiences: Sequence[str]) -> Identity:
        def answer() -> Identity:
            identity = self.tokens.get(token)
            if identity is None or (audiences and not set(audiences) & set(identity.audiences)):
                raise Denied("Unauthenticated", "The cluster does not know this token.")
            return identity

        return self._perform("review_token", "a token", answer)

    async def review_access(self, query: AccessQuery) -> AccessAnswer:
        return self._perform("review_access", query.resource, lambda: AccessAnswer(self.allows(query)))

    async def create_event(self, event: EventRecord) -> None:
        body = build_event(event)
        ref = read_ref(EVENTS, body)

        def act() -> None:
            if ref not in self.objects:
                self.objects.check_admission(ref)
                self.objects.insert(EVENTS, body)

        self._perform("create_event", ref, act, writes=True)

    async def read_missing(self, resources: Collection[Resource]) -> tuple[Resource, ...]:
        return self._perform("discover", "groups", lambda: tuple(each for each in resources if each in self.unserved))

    def write(self, resource: Resource, body: Json) -> Json:
        """As a person does: make the object, or change everything except its status. No hook is called."""
        ref = read_ref(resource, body)
        return self.objects.rewrite(ref, body) if ref in self.objects else self.objects.insert(resource, body)

    def write_status(self, ref: Ref, status: Json) -> Json:
        """As a kubelet reports: this is the whole status now. No hook is called."""
        return self.objects.replace(ref, {**copy_json(self.objects.read(ref)), "status": copy_json(status)})

    def remove(self, ref: Ref) -> None:
        """As a kubelet confirms: the object is gone. No hook is called."""
        self.objects.remove(ref)

    def read_all(self, resource: Resource) -> tuple[Json, ...]:
        """Every object of a resource, to look at. No hook is called."""
        return tuple(copy_json(obj) for obj in self.objects.find(resource))

    def _perform(self, verb: str, target: object, act: Callable[[], T], *, writes: bool = False) -> T:
        call = Call(len(self.calls) + 1, verb, str(target), writes)
        self.calls.append(call)
        self.hook(call, Moment.BEFORE)
        answer = act()
        self.hook(call, Moment.AFTER)
        return answer


def _as_listed(obj: Json, metadata_only: bool) -> Json:
    if not metadata_only:
        return copy_json(obj)
    return {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": copy_json(obj["metadata"])}
