"""What the operator may do in the cluster, as data: the chart's roles are generated from it.

Beside each verb of the gateway stands who needs it. Nothing is asked for in advance.
"""

from dataclasses import dataclass
from enum import StrEnum


class Scope(StrEnum):
    """Where a permission holds."""

    # In every namespace that is watched: a ClusterRole, or a Role in each of a list.
    WATCHED = "watched"
    # In the operator's own namespace.
    OWN = "own"
    # For what belongs to no namespace.
    CLUSTER = "cluster"


@dataclass(frozen=True, slots=True)
class Permission:
    """`verbs` on `resources` of `group`, narrowed to `names` where there are any."""

    scope: Scope
    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()


PERMISSIONS: tuple[Permission, ...] = (
    # Watched and swept; agents are also made, taken over from a former Swarm object and ended; no spec is ever changed.
    Permission(Scope.WATCHED, "alineo.dev", ("swarms",), ("get", "list", "watch")),
    Permission(Scope.WATCHED, "alineo.dev", ("agents",), ("get", "list", "watch", "create", "patch", "delete")),
    Permission(Scope.WATCHED, "alineo.dev", ("swarms/status", "agents/status"), ("patch",)),
    # Where the cluster lets nobody name an owner that it may not hold up, we have to be allowed to.
    Permission(Scope.WATCHED, "alineo.dev", ("swarms/finalizers", "agents/finalizers"), ("update",)),
    # Sandboxes: watched, made and ended, never changed.
    Permission(Scope.WATCHED, "", ("pods",), ("get", "list", "watch", "create", "delete")),
    Permission(Scope.WATCHED, "events.k8s.io", ("events",), ("create",)),
    # Whether a sandbox ends because its namespace does: then nobody waits for its turn.
    Permission(Scope.WATCHED, "", ("namespaces",), ("get",)),
    # The Lease, and the label by which the Service finds the leader: who leads takes it from who led before.
    Permission(Scope.OWN, "coordination.k8s.io", ("leases",), ("get", "watch", "create", "update")),
    Permission(Scope.OWN, "", ("pods",), ("get", "list", "patch")),
    # Its own pod is where people are told of trouble that is no swarm's.
    Permission(Scope.OWN, "events.k8s.io", ("events",), ("create",)),
    # Who calls the control API, and whether the cluster lets them.
    Permission(Scope.CLUSTER, "authentication.k8s.io", ("tokenreviews",), ("create",)),
    Permission(Scope.CLUSTER, "authorization.k8s.io", ("subjectaccessreviews",), ("create",)),
    # Its UID is the cluster's identity.
    Permission(Scope.CLUSTER, "", ("namespaces",), ("get",), ("kube-system",)),
    # Objects that went with their CRD were not deleted by a person.
    Permission(
        Scope.CLUSTER,
        "apiextensions.k8s.io",
        ("customresourcedefinitions",),
        ("get",),
        ("swarms.alineo.dev", "agents.alineo.dev"),
    ),
)
