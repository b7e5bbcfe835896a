"""The two objects as the API server holds them: metadata, spec, status."""

from pydantic import Field

from alineod.crd.agent import AgentSpec
from alineod.crd.base import Observed
from alineod.crd.status import AgentStatus, SwarmStatus
from alineod.crd.swarm import SwarmSpec

ADOPT = "alineo.dev/adopt"


class OwnerReference(Observed):
    """Whom an object belongs to."""

    kind: str
    name: str
    uid: str
    controller: bool = False


class ObjectMeta(Observed):
    """What the API server keeps of every object, as far as we read it."""

    name: str
    namespace: str
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    labels: dict[str, str] = Field(default={})
    annotations: dict[str, str] = Field(default={})
    owner_references: tuple[OwnerReference, ...] = ()


class Swarm(Observed):
    """A Swarm object."""

    metadata: ObjectMeta
    spec: SwarmSpec = SwarmSpec()
    status: SwarmStatus = Field(default=SwarmStatus())

    @property
    def key(self) -> str:
        """`namespace/name`, the run's identity."""
        return f"{self.metadata.namespace}/{self.metadata.name}"


class Agent(Observed):
    """An Agent object."""

    metadata: ObjectMeta
    spec: AgentSpec
    status: AgentStatus = Field(default=AgentStatus())

    @property
    def key(self) -> str:
        """`namespace/name`, the agent's identity."""
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def run(self) -> str:
        """`namespace/swarm`, the identity of the run it belongs to."""
        return f"{self.metadata.namespace}/{self.spec.swarm}"

    @property
    def alias(self) -> str:
        """What the agents of its swarm call it."""
        return self.spec.alias or self.metadata.name
