"""Objects parsed once per version: a pass looks at its swarm far more often than the swarm changes."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from alineod.crd.agent import AgentEntry, AgentSpec
from alineod.crd.merge import merge_defaults
from alineod.crd.objects import Agent, Swarm
from alineod.crd.parse import parse_agent, parse_swarm
from alineod.kube.objects import Json

T = TypeVar("T")
MOST = 50_000  # objects; then all are forgotten and parsed again


class Parsed:
    """Remembers, by UID, what the newest version of an object was parsed to. Refusals are not remembered."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], tuple[object, Any]] = {}

    def swarm(self, raw: Json) -> Swarm:
        """As `parse_swarm`."""
        return self._get(("swarm", _uid(raw)), _version(raw), lambda: parse_swarm(raw))

    def agent(self, raw: Json) -> Agent:
        """As `parse_agent`."""
        return self._get(("agent", _uid(raw)), _version(raw), lambda: parse_agent(raw))

    def effective(self, agent: Agent, swarm: Swarm) -> AgentSpec:
        """The agent's spec over the swarm's defaults."""
        version = (agent.metadata.resource_version, swarm.metadata.uid, swarm.metadata.resource_version)
        build = lambda: merge_defaults(swarm.spec.defaults, agent.spec)  # noqa: E731
        return self._get(("effective", agent.metadata.uid), version, build)

    def entries(self, swarm: Swarm) -> Mapping[str, tuple[AgentEntry, str]]:
        """Each entry and its digest, by its short name."""
        build = lambda: {entry.name: (entry, entry.digest()) for entry in swarm.spec.agents}  # noqa: E731
        return self._get(("entries", swarm.metadata.uid), swarm.metadata.resource_version, build)

    def _get(self, key: tuple[str, str], version: object, build: Callable[[], T]) -> T:
        known = self._known.get(key)
        if known is not None and known[0] == version:
            return cast("T", known[1])
        built = build()
        if len(self._known) >= MOST:
            self._known.clear()
        self._known[key] = (version, built)
        return built


def _uid(raw: Json) -> str:
    return str(raw["metadata"].get("uid") or "")


def _version(raw: Json) -> str:
    return str(raw["metadata"].get("resourceVersion") or "")
