"""The door: raw objects in, records out, or a refusal that names the field."""

from collections.abc import Mapping
from typing import Any, TypeVar

from alineod.crd.agent import AgentSpec
from alineod.crd.base import Record
from alineod.crd.objects import Agent, Swarm
from alineod.crd.swarm import SwarmSpec

R = TypeVar("R", bound=Record)


def parse_swarm(raw: Mapping[str, Any]) -> Swarm:
    """A Swarm object as the API server sends it.

    Raises:
        Refused: reason `InvalidSpec`; the message names the field.
    """
    return _parse(Swarm, raw)


def parse_agent(raw: Mapping[str, Any]) -> Agent:
    """An Agent object as the API server sends it.

    Raises:
        Refused: reason `InvalidSpec`; the message names the field.
    """
    return _parse(Agent, raw)


def parse_swarm_spec(raw: Mapping[str, Any]) -> SwarmSpec:
    """A Swarm's `spec` alone, such as the body of an API call; raises like `parse_swarm`."""
    return SwarmSpec.parse(_without_nulls(raw))


def parse_agent_spec(raw: Mapping[str, Any]) -> AgentSpec:
    """An Agent's `spec` alone, such as the effective spec kept in the ledger; raises like `parse_agent`."""
    return AgentSpec.parse(_without_nulls(raw))


def _parse(kind: type[R], raw: Mapping[str, Any]) -> R:
    parts = {name: raw[name] for name in ("metadata", "spec", "status") if raw.get(name) is not None}
    return kind.parse(_without_nulls(parts), at="")


def _without_nulls(value: Any) -> Any:
    """A field set to null is a field not written."""
    if isinstance(value, Mapping):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value
