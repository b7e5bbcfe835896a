"""A swarm's defaults under an agent's own words: the effective spec. Pure; knows nothing of who asks."""

from collections.abc import Mapping
from typing import Any

from alineod.crd.agent import AgentEntry, AgentSpec, AgentTemplate

MERGED_BY_NAME = ("harness", "credentials")


def build_agent_spec(swarm: str, entry: AgentEntry) -> AgentSpec:
    """The spec of the Agent object that the operator makes of a swarm's entry: as written, without the defaults."""
    raw = entry.dump()
    alias = raw.pop("name")
    return AgentSpec.parse(raw | {"swarm": swarm, "alias": alias})


def merge_defaults(defaults: AgentTemplate, agent: AgentSpec) -> AgentSpec:
    """What holds for `agent`: its own value wins, maps merge by key, credentials by name, other lists are replaced.

    Merging the result with the same defaults again gives the same result.
    """
    return AgentSpec.parse(_merge(defaults.dump(), agent.dump(), ()))


def _merge(base: Any, own: Any, path: tuple[str, ...]) -> Any:
    if path == MERGED_BY_NAME:
        return _merge_by_name(base, own)
    if isinstance(base, Mapping) and isinstance(own, Mapping):
        both = {key: _merge(base[key], own[key], (*path, key)) for key in base if key in own}
        return {**base, **own, **both}
    return own


def _merge_by_name(base: list[dict[str, Any]], own: list[dict[str, Any]]) -> list[dict[str, Any]]:
    by_name = {item["name"]: item for item in base} | {item["name"]: item for item in own}
    return list(by_name.values())
