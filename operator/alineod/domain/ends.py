"""Whether a sandbox is still any good, by what the cluster shows of it and whether its bridge answers."""

from alineod.crd.sandbox import OnNodeLost
from alineod.domain.causes import End, EndKind, judge_lost_node, judge_removed
from alineod.domain.facts import AgentFacts, PodFacts
from alineod.domain.state import AgentState

NODE_LOST_AFTER = 60.0  # s a node may be silent before its sandboxes are replaced
TRIES = 2  # questions that a bridge may leave unanswered before a lower rung is looked for
MAX_CRASHES = 5  # restarts of a container that never came up, before its pod is given up


def find_end(facts: AgentFacts) -> End | None:
    """Why the agent's sandbox is no good any more; None while it is, or may still be."""
    ledger, pod = facts.ledger, facts.pod
    if ledger is None:
        return None
    name = ledger.pod.name if ledger.pod else "its pod"
    if pod is None:
        return facts.last_end or judge_removed(name)
    if pod.over:
        return pod.end or pod.container_end or End(EndKind.DISRUPTION, "PodEnded", f"the pod {name} has ended")
    if ledger.given_up == ledger.incarnation:
        return End(EndKind.DISRUPTION, "GivenUp", f"the pod {name} was given up when its turn was recorded as cut off")
    return _find_crash(ledger, pod) or _find_lost_node(facts, pod)


def _find_crash(ledger: AgentState, pod: PodFacts) -> End | None:
    before = ledger.pod.restarts if ledger.pod else 0
    if pod.crashes - before < MAX_CRASHES or pod.trouble is None:
        return None
    return End(EndKind.OWN_FAULT, pod.trouble.reason, pod.trouble.message)


def _find_lost_node(facts: AgentFacts, pod: PodFacts) -> End | None:
    """A sandbox that still answers is none that is lost, whatever its node says."""
    policy = facts.object.spec.sandbox.on_node_lost if facts.object else OnNodeLost.WAIT
    if not pod.node_lost_since or facts.tries < TRIES or policy is OnNodeLost.WAIT:
        return None
    silent = facts.now - pod.node_lost_since
    return judge_lost_node(pod.name, pod.node) if silent >= NODE_LOST_AFTER else None
