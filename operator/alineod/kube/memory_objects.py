"""The objects behind the gateway in memory: incarnations, versions, generations, owners of fields and of objects.

What a real API server, its kubelets and its garbage collector do to objects between our requests. It must not know
of requests, nor what our kinds mean.
"""

from collections.abc import Callable, Collection, Mapping
from copy import copy
from datetime import timedelta
from itertools import count

from alineod.clock import Clock
from alineod.errors import Conflict, Denied, NotFound
from alineod.kube.failures import NAMESPACE_TERMINATING
from alineod.kube.fields import Path, compute_applied, copy_json, find_leaves
from alineod.kube.objects import (
    NAMESPACES,
    PODS,
    Json,
    Ref,
    Resource,
    add_kind,
    is_leaving,
    read_owner_uids,
    read_ref,
    read_uid,
)
from alineod.kube.selectors import parse_selector

# Told as a watch tells it: ADDED, MODIFIED or DELETED, and the object.
Watcher = Callable[[str, Resource, Json], None]

_SERVER_FIELDS = ("uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp")


class ObjectBase:
    """Every object, its field owners, and who watches."""

    def __init__(self, clock: Clock, with_status: Collection[Resource]) -> None:
        self._clock = clock
        self._with_status = frozenset(with_status)
        self._objects: dict[Ref, Json] = {}
        self._owners: dict[str, Mapping[Path, frozenset[str]]] = {}
        self._versions, self._uids = count(1), count(1)
        self.watchers: list[Watcher] = []

    def copy(self, clock: Clock) -> "ObjectBase":
        """The same objects in a world of its own, which nobody watches yet."""
        other = ObjectBase(clock, self._with_status)
        other._objects = {ref: copy_json(obj) for ref, obj in self._objects.items()}
        other._owners = dict(self._owners)
        other._versions, other._uids = copy(self._versions), copy(self._uids)
        return other

    def __contains__(self, ref: Ref) -> bool:
        return ref in self._objects

    def read(self, ref: Ref) -> Json:
        """The object itself.

        Raises:
            NotFound: there is none.
        """
        obj = self._objects.get(ref)
        if obj is None:
            raise NotFound("NotFound", f'{ref.resource} "{ref.name}" not found')
        return obj

    def find(self, resource: Resource, namespace: str | None = None, labels: str = "") -> list[Json]:
        """Objects in the order of their names."""
        matches = parse_selector(labels)
        known = sorted((ref for ref in self._objects if ref.resource == resource), key=lambda ref: ref[1:])
        found = [self._objects[ref] for ref in known if namespace is None or ref.namespace == namespace]
        return [obj for obj in found if matches(obj["metadata"].get("labels") or {})]

    def build_version(self) -> str:
        """The next version of anything."""
        return str(next(self._versions))

    def check_admission(self, ref: Ref) -> None:
        """Refuse what has no namespace to live in."""
        if not ref.resource.namespaced:
            return
        if is_leaving(self.read(Ref(NAMESPACES, "", ref.namespace))):
            raise Denied(
                NAMESPACE_TERMINATING,
                f'{ref.resource} "{ref.name}" is forbidden: unable to create new content in namespace {ref.namespace} '
                "because it is being terminated",
            )

    def check_incarnation(self, ref: Ref, body: Json) -> None:
        """Hold the body's `uid` and `resourceVersion`, where it has them, against what is there."""
        known, metadata = self._objects.get(ref), body["metadata"]
        uid, version = metadata.get("uid"), metadata.get("resourceVersion")
        if uid and (known is None or read_uid(known) != uid):
            raise Conflict("Conflict", f'Precondition failed: {ref.resource} "{ref.name}" has no incarnation {uid}')
        if version and known is not None and known["metadata"]["resourceVersion"] != version:
            raise Conflict("Conflict", f'{ref.resource} "{ref.name}" has been modified; look at the latest version')

    def prepare(self, resource: Resource, body: Json) -> Json:
        """The object as it would be stored."""
        obj = add_kind(resource, copy_json(body))
        if resource in self._with_status:
            obj.pop("status", None)
        obj["metadata"] |= {
            "uid": f"uid-{next(self._uids)}",
            "resourceVersion": self.build_version(),
            "creationTimestamp": self._build_time(),
        }
        if "." in resource.group:
            obj["metadata"]["generation"] = 1
        return obj

    def insert(self, resource: Resource, body: Json, manager: str = "") -> Json:
        """Store a new object whose fields belong to `manager`."""
        obj = self.prepare(resource, body)
        ref = read_ref(resource, obj)
        self._objects[ref] = obj
        self._owners[read_uid(obj)] = {path: frozenset({manager}) for path, _ in find_leaves(_owned_part(body))}
        self._tell("ADDED", ref, obj)
        return copy_json(obj)

    def apply(self, ref: Ref, body: Json, manager: str, *, force: bool) -> Json:
        """Server-side apply by `manager`, of an object or of its status."""
        self.check_incarnation(ref, body)
        if ref not in self._objects:
            self.check_admission(ref)
            return self.insert(ref.resource, body, manager)
        obj = self._objects[ref]
        applied = compute_applied(obj, self._owners[read_uid(obj)], _owned_part(body), manager)
        if applied.disputed and not force:
            raise Conflict("Conflict", f"Apply failed with {len(applied.disputed)} conflicts: {applied.disputed[0]}")
        self._owners[read_uid(obj)] = applied.owners
        return self.replace(ref, applied.obj)

    def replace(self, ref: Ref, obj: Json) -> Json:
        """Store the object's new content; the same content is no change."""
        known = self._objects[ref]
        if obj != known:
            obj["metadata"]["resourceVersion"] = self.build_version()
            if "generation" in known["metadata"] and _body_of(obj) != _body_of(known):
                obj["metadata"]["generation"] = known["metadata"]["generation"] + 1
            self._objects[ref] = obj
            self._tell("MODIFIED", ref, obj)
        if is_leaving(obj) and not _is_held(obj):
            self.remove(ref)
        return copy_json(obj)

    def rewrite(self, ref: Ref, body: Json) -> Json:
        """Store what a person wrote: everything but the status and the server's own fields."""
        known = self._objects[ref]
        kept = {name: known["metadata"][name] for name in _SERVER_FIELDS if name in known["metadata"]}
        status = {"status": known["status"]} if "status" in known else {}
        spec = {name: value for name, value in copy_json(body).items() if name != "status"}
        named = {"apiVersion": known["apiVersion"], "kind": known["kind"]}
        return self.replace(ref, {**named, **spec, "metadata": {**spec["metadata"], **kept}, **status})

    def end(self, ref: Ref, grace_seconds: int | None) -> Json | None:
        """Begin the object's end; None when nobody has to confirm it."""
        obj = copy_json(self._objects[ref])
        metadata, grace = obj["metadata"], _compute_grace(ref.resource, obj, grace_seconds)
        if grace < metadata.get("deletionGracePeriodSeconds", grace + 1):  # it is only ever made shorter
            metadata |= {"deletionTimestamp": self._build_time(grace), "deletionGracePeriodSeconds": grace}
        if not _is_held(obj):
            self.remove(ref)
            return None
        return self.replace(ref, obj)

    def remove(self, ref: Ref) -> None:
        """The object is gone, and what it alone owned goes after it."""
        obj = self._objects.pop(ref)
        self._owners.pop(read_uid(obj), None)
        obj["metadata"]["resourceVersion"] = self.build_version()
        self._tell("DELETED", ref, obj)
        alive = {read_uid(other) for other in self._objects.values()}
        for dependent, other in list(self._objects.items()):
            owners = read_owner_uids(other)
            if read_uid(obj) in owners and not alive & set(owners) and dependent in self._objects:
                self.end(dependent, None)

    def _build_time(self, later: int = 0) -> str:
        time = self._clock.now() + timedelta(seconds=later)
        return time.isoformat(timespec="seconds").replace("+00:00", "Z")

    def _tell(self, kind: str, ref: Ref, obj: Json) -> None:
        for watcher in self.watchers:
            watcher(kind, ref.resource, copy_json(obj))


def _compute_grace(resource: Resource, obj: Json, wanted: int | None) -> int:
    """Only a pod on a node has anyone to wait for."""
    spec = obj.get("spec") or {}
    if resource != PODS or not spec.get("nodeName"):
        return 0
    return int(spec.get("terminationGracePeriodSeconds", 30)) if wanted is None else wanted


def _is_held(obj: Json) -> bool:
    metadata, spec = obj["metadata"], obj.get("spec") or {}
    held = metadata.get("finalizers") or spec.get("finalizers")  # a namespace has them there
    return bool(held) or int(metadata.get("deletionGracePeriodSeconds") or 0) > 0


def _body_of(obj: Json) -> Json:
    return {name: value for name, value in obj.items() if name not in ("metadata", "status")}


def _owned_part(body: Json) -> Json:
    """The part of a body whose fields have owners."""
    named = ("name", "namespace", "uid", "resourceVersion")
    metadata = {name: value for name, value in body["metadata"].items() if name not in named}
    rest = {name: value for name, value in body.items() if name not in ("apiVersion", "kind", "metadata")}
    return {**rest, **({"metadata": metadata} if metadata else {})}
