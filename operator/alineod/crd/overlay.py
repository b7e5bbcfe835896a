"""What a podTemplate may not touch: our own containers, volumes and tokens. The names are ours for good."""

from collections.abc import Iterator, Mapping
from typing import Any

from alineod.crd.problem import Flaw, Problem
from alineod.crd.sandbox import PodTemplateSpec

OWN_CONTAINERS = ("agent", "restore", "checkpointer")
OWN_VOLUMES = ("home", "workspace", "checkpoints", "inputs", "control", "credentials", "token", "tmp")
OWN_FIELDS = ("restartPolicy", "automountServiceAccountToken", "shareProcessNamespace", "hostPID")
OWN_DOMAIN = "alineo.dev"
AT = "spec.sandbox.podTemplate"


def check_pod_template(template: PodTemplateSpec) -> Iterator[Problem]:
    """Problems of a podTemplate, as far as they are not the API server's to find."""
    for field in OWN_FIELDS:
        if field in template.spec:
            yield Problem(Flaw.INVALID_POD_TEMPLATE, f"{AT}.spec.{field}", f"{field} is set by alineod: remove it")
    yield from _check_names(template.spec, "containers", OWN_CONTAINERS)
    yield from _check_names(template.spec, "initContainers", OWN_CONTAINERS)
    yield from _check_names(template.spec, "volumes", OWN_VOLUMES)
    for field in ("containers", "initContainers"):
        yield from _check_mounts(template.spec.get(field), field)
    for part in ("labels", "annotations"):
        for key in getattr(template.metadata, part):
            if key.split("/")[0].endswith(OWN_DOMAIN):
                message = f"{key} is under {OWN_DOMAIN}, which is set by alineod: use another prefix"
                yield Problem(Flaw.INVALID_POD_TEMPLATE, f"{AT}.metadata.{part}", message)


def _check_names(spec: Mapping[str, Any], field: str, own: tuple[str, ...]) -> Iterator[Problem]:
    items = spec.get(field, [])
    if not isinstance(items, list) or not all(isinstance(item, Mapping) and "name" in item for item in items):
        message = f"{field} is a list of objects that each have a name: write it as in a Pod"
        yield Problem(Flaw.INVALID_POD_TEMPLATE, f"{AT}.spec.{field}", message)
        return
    for item in items:
        if item["name"] in own:
            message = f"{item['name']} is the name of one of alineod's own {field}: choose another name"
            yield Problem(Flaw.INVALID_POD_TEMPLATE, f"{AT}.spec.{field}", message)


def _check_mounts(containers: Any, field: str) -> Iterator[Problem]:
    """What an extra container may see of the sandbox: nothing of ours, least of all its tokens."""
    for container in containers if isinstance(containers, list) else ():
        mounts = container.get("volumeMounts") if isinstance(container, Mapping) else None
        for mount in mounts if isinstance(mounts, list) else ():
            if isinstance(mount, Mapping) and mount.get("name") in OWN_VOLUMES:
                message = f"{mount['name']} is one of alineod's own volumes: mount a volume of your own"
                yield Problem(Flaw.INVALID_POD_TEMPLATE, f"{AT}.spec.{field}", message)
