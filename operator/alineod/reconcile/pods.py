"""The pods of an agent, as the cluster last showed them: the one that the ledger holds, and one by its incarnation."""

from alineod.domain.facts import PodFacts
from alineod.domain.state import AgentState
from alineod.kube.objects import PODS, Ref
from alineod.podspec import names
from alineod.podspec.observe import parse_pod
from alineod.reconcile.world import World


def find_pod(world: World, agent: AgentState) -> PodFacts | None:
    """The pod that the ledger holds for the agent, as last seen."""
    if agent.pod is None:
        return None
    raw = world.store.get(Ref(PODS, agent.key.split("/")[0], agent.pod.name))
    pod = parse_pod(raw) if raw is not None else None
    return pod if pod is not None and pod.uid == agent.pod.uid else None


def find_made(world: World, key: str, incarnation: int) -> PodFacts | None:
    """The pod of that incarnation of the agent, as last seen, whether or not the ledger holds it."""
    namespace, name = key.split("/")
    raw = world.store.get(Ref(PODS, namespace, names.build_pod_name(name, incarnation)))
    return parse_pod(raw) if raw is not None else None
