"""Specs to change in tests."""

from typing import Any

Json = dict[str, Any]


def build_raw_swarm(spec: Json, name: str = "survey") -> Json:
    """A Swarm as the API server sends it."""
    metadata = {"name": name, "namespace": "research", "uid": "u-1", "generation": 3, "managedFields": []}
    return {"apiVersion": "alineo.dev/v1alpha1", "kind": "Swarm", "metadata": metadata, "spec": spec}


def build_raw_agent(spec: Json, name: str = "survey-lead") -> Json:
    """An Agent as the API server sends it."""
    return build_raw_swarm(spec, name) | {"kind": "Agent"}


def agents(*entries: Json) -> Json:
    """A swarm's spec with these entries; each gets a prompt."""
    return {"agents": [{"prompt": "p", **entry} for entry in entries]}
