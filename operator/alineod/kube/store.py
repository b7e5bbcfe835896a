"""The objects of the cluster as they were last seen, with the indexes that a pass needs.

Fed by watches, sweeps and the answers to our own writes, in whatever order they arrive: of one incarnation the newer
version stays, and an incarnation seen deleted never returns. It must not know where objects come from, nor ask.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterator
from typing import NamedTuple

from alineod.kube.objects import AGENT_LABEL, Json, Ref, Resource, read_label, read_owner_uids, read_ref, read_swarm
from alineod.kube.objects import read_uid as uid_of
from alineod.kube.objects import read_version as version_of


class Change(NamedTuple):
    """What happened to one object: `before` is None when it appeared, `after` when it went."""

    ref: Ref
    before: Json | None
    after: Json | None


Listener = Callable[[Change], None]

# Enough for every pod of a large cluster to go at once; about 100 bytes each.
REMEMBERED_DEATHS = 50_000


class Store:
    """Objects by resource, namespace and name. For one thread; listeners are called in it, after each change."""

    def __init__(self, remembered_deaths: int = REMEMBERED_DEATHS) -> None:
        self._objects: dict[Ref, Json] = {}
        self._by_resource: dict[Resource, dict[Ref, Json]] = defaultdict(dict)
        self._indexes: dict[Hashable, dict[Ref, Json]] = defaultdict(dict)
        self._listeners: list[Listener] = []
        self._deaths: OrderedDict[str, None] = OrderedDict()
        self._remembered_deaths = remembered_deaths

    def listen(self, listener: Listener) -> None:
        """Call `listener` with every object that changes, appears or goes."""
        self._listeners.append(listener)

    def put(self, resource: Resource, obj: Json) -> bool:
        """Take an object as seen by anyone.

        Returns:
            Whether it was news. Older versions, and incarnations known to be dead, are not.
        """
        ref, uid = read_ref(resource, obj), uid_of(obj)
        if uid in self._deaths:
            return False
        known = self._objects.get(ref)
        if known is not None and not _is_newer(obj, known):
            return False
        if known is not None and uid_of(known) != uid:
            self._bury(uid_of(known))
        self._unlink(ref)
        self._link(ref, _without_managed_fields(obj))
        self._tell(Change(ref, known, self._objects[ref]))
        return True

    def discard(self, resource: Resource, obj: Json) -> bool:
        """Take the news that this incarnation is gone.

        Returns:
            Whether it was here. A later incarnation under the same name stays.
        """
        return self.discard_uid(read_ref(resource, obj), uid_of(obj))

    def discard_uid(self, ref: Ref, uid: str) -> bool:
        """As `discard`, for who knows only the key and the UID."""
        self._bury(uid)
        known = self._objects.get(ref)
        if known is None or uid_of(known) != uid:
            return False
        self._unlink(ref)
        self._tell(Change(ref, known, None))
        return True

    def get(self, ref: Ref) -> Json | None:
        """The object as last seen. It is the store's own: read it, never change it."""
        return self._objects.get(ref)

    def find(self, resource: Resource, namespace: str | None = None) -> tuple[Json, ...]:
        """All objects of a resource, or those of one namespace."""
        known = self._by_resource[resource]
        return tuple(obj for ref, obj in known.items() if namespace is None or ref.namespace == namespace)

    def find_by_agent(self, resource: Resource, namespace: str, agent: str) -> tuple[Json, ...]:
        """Objects whose label `alineo.dev/agent` names this agent."""
        return self._indexed(("agent", resource, namespace, agent))

    def find_by_swarm(self, resource: Resource, namespace: str, swarm: str) -> tuple[Json, ...]:
        """Objects of this swarm, by their label or, when a person applied them alone, by their spec."""
        return self._indexed(("swarm", resource, namespace, swarm))

    def find_by_owner(self, resource: Resource, owner_uid: str) -> tuple[Json, ...]:
        """Objects owned by this incarnation."""
        return self._indexed(("owner", resource, owner_uid))

    def read_refs(self, resource: Resource) -> dict[Ref, Json]:
        """A copy of the keys and objects of a resource, for who compares while the store goes on."""
        return dict(self._by_resource[resource])

    def count(self, resource: Resource) -> int:
        """How many objects of a resource are known."""
        return len(self._by_resource[resource])

    def _indexed(self, index: Hashable) -> tuple[Json, ...]:
        found = self._indexes.get(index)
        return tuple(found.values()) if found else ()

    def _link(self, ref: Ref, obj: Json) -> None:
        self._objects[ref] = obj
        self._by_resource[ref.resource][ref] = obj
        for index in _indexes(ref, obj):
            self._indexes[index][ref] = obj

    def _unlink(self, ref: Ref) -> None:
        known = self._objects.pop(ref, None)
        if known is None:
            return
        del self._by_resource[ref.resource][ref]
        for index in _indexes(ref, known):
            del self._indexes[index][ref]
            if not self._indexes[index]:
                del self._indexes[index]

    def _bury(self, uid: str) -> None:
        if not uid:
            return
        self._deaths[uid] = None
        self._deaths.move_to_end(uid)
        while len(self._deaths) > self._remembered_deaths:
            self._deaths.popitem(last=False)

    def _tell(self, change: Change) -> None:
        for listener in self._listeners:
            listener(change)


def _is_newer(obj: Json, known: Json) -> bool:
    """Whether `obj` says more than what is known.

    Within one incarnation the version decides; versions that are no numbers are taken as they come. Two incarnations
    of a name cannot live at once, so the one made later is the newer; made in the same second, the higher version
    decides here too, as versions of one resource come from one counter.
    """
    if uid_of(obj) != uid_of(known) and _created(obj) != _created(known):
        return _created(obj) > _created(known)
    return version_of(obj) > version_of(known) or version_of(obj) == 0


def _created(obj: Json) -> str:
    return str(obj["metadata"].get("creationTimestamp") or "")


def _without_managed_fields(obj: Json) -> Json:
    """The object without the field-by-field record of who wrote it, often half of its size."""
    metadata = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
    return {**obj, "metadata": metadata}


def _indexes(ref: Ref, obj: Json) -> Iterator[Hashable]:
    agent = read_label(obj, AGENT_LABEL)
    if agent:
        yield ("agent", ref.resource, ref.namespace, agent)
    swarm = read_swarm(obj)
    if swarm:
        yield ("swarm", ref.resource, ref.namespace, swarm)
    for uid in set(read_owner_uids(obj)):
        yield ("owner", ref.resource, uid)
