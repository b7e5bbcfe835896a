"""A kind of our own on a real API server, so that a suite needs nothing installed."""

import asyncio

from alineod.kube.gateway import Gateway
from alineod.kube.objects import CRDS, Json, Resource

TEXT = {"type": "string"}
PROBES = Resource("contract.alineo.test", "v1", "probes", "Probe")


def build_definition(kind: Resource) -> Json:
    """A CRD with an open spec and a status with conditions that merge."""
    condition = {"type": "object", "required": ["type"], "properties": {"type": TEXT, "status": TEXT}}
    conditions = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": condition,
    }
    status = {"type": "object", "properties": {"conditions": conditions, "phase": TEXT}}
    spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}},
        "subresources": {"status": {}},
    }
    names = {"plural": kind.plural, "singular": kind.kind.lower(), "kind": kind.kind}
    return {
        "metadata": {"name": str(kind)},
        "spec": {"group": kind.group, "scope": "Namespaced", "names": names, "versions": [version]},
    }


async def ensure_kind(gateway: Gateway, kind: Resource) -> Json:
    """Install the kind and wait until it is served."""
    definition = await gateway.apply(CRDS, build_definition(kind))
    async with asyncio.timeout(60):
        while await gateway.read_missing([kind]):  # noqa: ASYNC110  (the server tells nobody)
            await asyncio.sleep(0.1)
    return definition
