"""A person's podTemplate laid over our pod: maps merge by key, named lists by name, other lists are added to.

What may stand in the overlay was checked before; nothing here can change a container or a volume of ours.
"""

from collections.abc import Mapping
from typing import Any

from alineod.crd.overlay import OWN_CONTAINERS, OWN_VOLUMES
from alineod.crd.sandbox import PodTemplateSpec
from alineod.podspec.context import Json

OWN = frozenset((*OWN_CONTAINERS, *OWN_VOLUMES))


def lay_over(pod: Json, template: PodTemplateSpec) -> Json:
    """A new pod; ours wins where both name the same thing."""
    metadata = pod["metadata"]
    labels = {**template.metadata.labels, **metadata["labels"]}
    annotations = {**template.metadata.annotations, **metadata["annotations"]}
    merged = {**metadata, "labels": labels, "annotations": annotations}
    return {**pod, "metadata": merged, "spec": _merge(pod["spec"], template.spec)}


def _merge(base: Any, over: Any) -> Any:
    if isinstance(base, Mapping) and isinstance(over, Mapping):
        return {**base, **{key: _merge(base[key], value) if key in base else value for key, value in over.items()}}
    if isinstance(base, list) and isinstance(over, list):
        return [*base, *(item for item in over if not _is_own(item))]
    return over


def _is_own(item: Any) -> bool:
    return isinstance(item, Mapping) and item.get("name") in OWN
