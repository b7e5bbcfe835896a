"""Whether a sandbox is still any good, by what the cluster shows of it and whether its bridge answers."""

from alineod.crd.sandbox import OnNodeLost
from alineod.domain.causes import End, EndKind, judge_deleted, judge_lost_node, judge_removed
from alineod.domain.facts import AgentFacts, PodFacts
from alineod.domain.state import AgentState
from alineod.wire.turns import BridgeReason, ErrorKind

NODE_LOST_AFTER = 60.0  # s a node may be silent before its sandboxes are replaced
TRIES = 2  # questions that a bridge may leave unanswered before a lower rung is looked for
MAX_CRASHES = 5  # restarts of a container that never came up, before its pod is given up
END_MARGIN = 30.0  # s after its grace in which the end of a pod is confirmed by its kubelet, if there is one
LOCKED_OUT = "BridgeTokenLost"  # why a bridge lets nobody in: it has nothing to know the operator by
BRIDGE_DENIED = "BridgeDenied"  # why it does not let this operator in
TAINTED = "DeletionByTaintManager"


def find_end(facts: AgentFacts) -> End | None:
    """Why the agent's sandbox is no good any more; None while it is, or may still be."""
    ledger, pod = facts.ledger, facts.pod
    if ledger is None:
        return None
    name = ledger.pod.name if ledger.pod else "its pod"
    if pod is None:
        return facts.last_end or judge_removed(name)
    if pod.over:
        ended = End(EndKind.DISRUPTION, "PodEnded", f"the pod {name} has ended")
        return pod.end or find_deletion(pod) or pod.container_end or ended
    seen = (
        _find_change(facts, ledger, pod) or _find_crash(ledger, pod) or _find_lock(facts, pod) or _find_spoilt(ledger)
    )
    if end := seen or _find_lost_node(facts, ledger, pod):
        return end
    if ledger.given_up == ledger.incarnation:
        return End(EndKind.DISRUPTION, "GivenUp", f"the pod {name} was given up when its turn was recorded as cut off")
    return None


def _find_change(facts: AgentFacts, ledger: AgentState, pod: PodFacts) -> End | None:
    """Somebody has mended the spec of a sandbox that did not come up; one that did keeps what it was made of."""
    setup_failed = facts.bridge is not None and facts.bridge.reason == BridgeReason.SETUP_FAILED
    never_up = not pod.agent_running and pod.restarts == 0 and pod.container_end is None
    if not facts.outdated or not (ledger.turn is None or ledger.is_coming_back or never_up or setup_failed):
        return None
    if facts.bridge is not None and facts.bridge.ready:
        return None
    return End(EndKind.DISRUPTION, "SpecChanged", f"the spec was changed before the pod {pod.name} was up")


def find_deletion(pod: PodFacts) -> End | None:
    """Why the pod is being deleted; its containers end because of that, whatever their exit codes are."""
    return (pod.end or judge_deleted(pod.name)) if pod.deleting else None


def _find_crash(ledger: AgentState, pod: PodFacts) -> End | None:
    """Of our own containers it is no fault of the agent's: another sandbox may do better, however many that takes."""
    crash = pod.crash
    if crash is None or pod.agent_running:
        return None
    before = ledger.pod.restarts if ledger.pod and crash.of_agent else 0
    if crash.restarts - before < MAX_CRASHES:
        return None
    kind = EndKind.OWN_FAULT if crash.of_agent else EndKind.DISRUPTION
    return End(kind, crash.trouble.reason, crash.trouble.message)


def _find_lock(facts: AgentFacts, pod: PodFacts) -> End | None:
    """Somebody with root in the sandbox has removed what the restore container left there: nobody gets in any more."""
    error = facts.bridge_error
    if error is None or error.reason != LOCKED_OUT or pod.restore is None or facts.tries < TRIES:
        return None
    message = f"the bridge in {pod.name} lets nobody in: its token is gone from /run/alineo, removed in the sandbox"
    return End(EndKind.OWN_FAULT, LOCKED_OUT, message)


def _find_spoilt(ledger: AgentState) -> End | None:
    """A turn has found, or left, a conversation that cannot be read back: every further one here would fail, too."""
    turn = ledger.turn
    if turn is None or turn.incarnation != ledger.incarnation or turn.error is None:
        return None
    if turn.error.kind is not ErrorKind.SESSION:
        return None
    return End(EndKind.OWN_FAULT, "ConversationLost", turn.error.message)


def _find_lost_node(facts: AgentFacts, ledger: AgentState, pod: PodFacts) -> End | None:
    """A sandbox that still answers is none that is lost, whatever its node says, while it has time left."""
    policy = facts.object.spec.sandbox.on_node_lost if facts.object else OnNodeLost.WAIT
    lives = pod.agent_running and facts.tries < TRIES
    if policy is OnNodeLost.WAIT or (lives and (ledger.turn_running or not is_overdue(pod, facts.now))):
        return None
    silent = pod.node_lost_since > 0 and facts.now - pod.node_lost_since >= NODE_LOST_AFTER
    return judge_lost_node(pod.name, pod.node) if silent or is_abandoned(pod, facts.now) else None


def is_abandoned(pod: PodFacts, now: float) -> bool:
    """Whether it is being deleted and there may be nobody who ends it: for its node's sake, or for longer than it has.

    Of a pod that was not ready when its node went, this is all that is ever seen.
    """
    tainted = pod.end is not None and pod.end.reason == TAINTED
    return (pod.deleting and tainted) or is_overdue(pod, now)


def is_overdue(pod: PodFacts, now: float) -> bool:
    """Whether its kubelet should have ended it by now."""
    return pod.deleting and now > pod.deletes_at + END_MARGIN
