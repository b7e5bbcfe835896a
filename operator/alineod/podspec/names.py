"""Names and labels of everything made for an agent. Derived, so that making it twice makes the same thing."""

from alineod.domain.facts import AgentObject

MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGER = "alineod"
SWARM = "alineo.dev/swarm"
AGENT = "alineo.dev/agent"
PARENT = "alineo.dev/parent"
INCARNATION = "alineo.dev/incarnation"
EPOCH = "alineo.dev/epoch"
MADE_OF = "alineo.dev/made-of"
"""A digest of the part of the spec a pod was made from, or of the entry an Agent was made from."""


def build_pod_name(agent: str, incarnation: int) -> str:
    """The pod of one incarnation."""
    return f"{agent}-{incarnation}"


def build_labels(name: str, agent: AgentObject) -> dict[str, str]:
    """Labels of an agent's own objects."""
    labels = {MANAGED_BY: MANAGER, SWARM: agent.swarm, AGENT: name}
    return labels | ({PARENT: agent.parent} if agent.parent else {})
