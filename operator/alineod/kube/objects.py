"""What an API object is at the door: a raw mapping, and the few facts of its metadata that every adapter needs.

Knows which resources this program touches. It must not know what a spec means: models are parsed by who reads them.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from alineod.podspec import names

# An object exactly as the API server gave it. It is parsed into a model by the first who needs its meaning.
Json = dict[str, Any]

MANAGED_BY = names.MANAGED_BY
MANAGER = names.MANAGER
STATUS_MANAGER = "alineod-status"
OWNER_MANAGER = "alineod-owner"
"""Owns nothing but an owner that was added: an apply takes back what its manager leaves out."""
AGENT_LABEL = names.AGENT
SWARM_LABEL = names.SWARM


@dataclass(frozen=True, slots=True, order=True)
class Resource:
    """One resource of the API: what its path and its body call it."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """As `apiVersion` spells it: `v1`, `alineo.dev/v1alpha1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


SWARMS = Resource("alineo.dev", "v1alpha1", "swarms", "Swarm")
AGENTS = Resource("alineo.dev", "v1alpha1", "agents", "Agent")
PODS = Resource("", "v1", "pods", "Pod")
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
EVENTS = Resource("events.k8s.io", "v1", "events", "Event")
TOKEN_REVIEWS = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False)
ACCESS_REVIEWS = Resource("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False)


@dataclass(frozen=True, slots=True)
class Watched:
    """A resource whose objects are kept in the store: those that match a label selector, or all of them."""

    resource: Resource
    labels: str = ""


WATCHED = (Watched(SWARMS), Watched(AGENTS), Watched(PODS, f"{MANAGED_BY}={MANAGER}"))


class Ref(NamedTuple):
    """Which object, whatever its incarnation: the key of the store and of the work queue.

    `namespace` is empty for what belongs to the cluster.
    """

    resource: Resource
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.resource.plural}/{self.namespace}/{self.name}"


def add_kind(resource: Resource, body: Json) -> Json:
    """The body as it stands by itself: in lists, and from who builds it, it need not say what it is."""
    return {"apiVersion": resource.api_version, "kind": resource.kind, **body}


def read_ref(resource: Resource, obj: Json) -> Ref:
    """The key of an object."""
    metadata = obj["metadata"]
    return Ref(resource, metadata.get("namespace") or "", metadata["name"])


def build_ref(resource: Resource, key: str) -> Ref:
    """The object that the ledger calls `namespace/name`."""
    return Ref(resource, *key.split("/"))


def read_uid(obj: Json) -> str:
    """Which incarnation of the name; empty before the server gave one."""
    return str(obj["metadata"].get("uid") or "")


def read_version(obj: Json) -> int:
    """The resource version as the number it is since Kubernetes declared it comparable; 0 where it is not one."""
    text = str(obj["metadata"].get("resourceVersion") or "")
    return int(text) if text.isascii() and text.isdigit() else 0


def read_label(obj: Json, label: str) -> str:
    """The value of a label; empty when it has none."""
    return str((obj["metadata"].get("labels") or {}).get(label) or "")


def read_swarm(obj: Json) -> str:
    """The swarm an object belongs to, by its label or by its `spec.swarm`; empty when it has none."""
    return read_label(obj, SWARM_LABEL) or str((obj.get("spec") or {}).get("swarm") or "")


def read_owner_uids(obj: Json) -> tuple[str, ...]:
    """The UIDs of everything that owns the object."""
    return tuple(str(owner["uid"]) for owner in obj["metadata"].get("ownerReferences") or ())


def is_leaving(obj: Json) -> bool:
    """Whether the object was deleted and is only kept until someone confirms."""
    return bool(obj["metadata"].get("deletionTimestamp"))
