"""The restore ladder: which rung held, recorded before anything builds on it.

Reattach: its bridge answers. Resume: its container was restarted on the same volumes, and its bridge answers again.
Restore: a fresh pod from the newest checkpoint. Lost: no rung held. Each is tried only when the one above failed;
what the cluster will do by itself, such as restarting a container, is waited for.
"""

from alineod.domain import events as ev
from alineod.domain.actions import Append, Decision, Standing
from alineod.domain.ends import find_end
from alineod.domain.events import LedgerState, Rung
from alineod.domain.facts import AgentFacts, PodFacts
from alineod.domain.gone_rules import REFUSED_AGAIN, build_taken, cut_turn, remove_pods
from alineod.domain.state import AgentState
from alineod.domain.turn_ends import MAX_MESSAGE, entry


def rule_pod_made(facts: AgentFacts) -> Decision | None:
    """A pod of the next incarnation is there: it is recorded before anything builds on it."""
    ledger, pod, obj = facts.ledger, facts.next_pod, facts.object
    if ledger is None or pod is None or obj is None:
        return None
    if pod.owner_uid != obj.uid:
        taken = build_taken(pod.name)
        return Decision("pod_taken", Standing(taken.reason, taken.message, stalled=True), again_after=REFUSED_AGAIN)
    end = find_end(facts) if ledger.pod is not None else None
    made = ev.AgentProvisioned(
        pod=pod.name, uid=pod.uid, incarnation=pod.incarnation,
        rung=Rung.RESTORE if ledger.pod is not None or ledger.turn is not None else None,
        cause=end.message[:MAX_MESSAGE] if end else "", own_fault=end is not None and end.own_fault,
    )  # fmt: skip
    entries = (*cut_turn(facts, ledger, end), entry(ledger, f"provisioned/{pod.incarnation}", made))
    return Decision("pod_made", Standing("Provisioning", f"the pod {pod.name} was made"), (Append(entries),))


def rule_released(facts: AgentFacts) -> Decision | None:
    """A finished agent that could not be brought back: its outcome stays, and nobody tries again."""
    ledger = facts.ledger
    if ledger is None or not ledger.released:
        return None
    return Decision("released", Standing(ledger.reason, ledger.message, ready=True), remove_pods(facts.stale_pods))


def rule_stale_pods(facts: AgentFacts) -> Decision | None:
    """Pods of earlier incarnations have no say and are removed."""
    stale = remove_pods(facts.stale_pods)
    return Decision("stale_pods", None, stale, answers=False) if stale else None


def rule_restored(facts: AgentFacts) -> Decision | None:
    """The restore container said what it came back with."""
    ledger, pod = facts.ledger, facts.pod
    if ledger is None or pod is None or pod.restore is None or ledger.pod is None or not ledger.is_coming_back:
        return None
    report = pod.restore
    restored = ev.AgentRestored(
        rung=Rung.RESTORE, incarnation=pod.incarnation,
        reason=ledger.pod.cause or f"the sandbox before {pod.name} is gone",
        checkpoint_turn=report.turn, where=report.where, tried=report.tried,
    )  # fmt: skip
    back = entry(ledger, f"restored/{pod.incarnation}", restored)
    return Decision(
        "restored", Standing("PodStarting", f"the pod {pod.name} is starting"), (Append((back,)),), back=True
    )


def rule_resumed(facts: AgentFacts) -> Decision | None:
    """The container was restarted in the same pod, and its bridge answers.

    A turn that runs by the ledger was cut off; first its end is heard, and recorded with that of the container.
    """
    ledger, pod = facts.ledger, facts.pod
    if ledger is None or pod is None or ledger.turn_running or not _was_restarted(ledger, pod):
        return None
    end = pod.container_end
    resumed = ev.AgentRestored(
        rung=Rung.RESUME, incarnation=pod.incarnation, restarts=pod.restarts,
        reason=end.message if end else "the container of the agent was restarted",
    )  # fmt: skip
    back = entry(ledger, f"resumed/{pod.incarnation}/{pod.restarts}", resumed)
    return Decision("resumed", None, (Append((back,)),), back=True)


def _was_restarted(ledger: AgentState, pod: PodFacts) -> bool:
    return ledger.pod is not None and pod.restarts > ledger.pod.restarts


def rule_reattach(facts: AgentFacts) -> Decision | None:
    """A new leader found the bridge answering, or a paused agent as it was: nothing restarted, a turn goes on."""
    ledger, pod = facts.ledger, facts.pod
    if facts.reattached or ledger is None or pod is None or _was_restarted(ledger, pod):
        return None
    back = ev.AgentRestored(
        rung=Rung.REATTACH, incarnation=pod.incarnation, reason="the operator was restarted", restarts=pod.restarts,
    )  # fmt: skip
    return Decision("reattach", None, (Append((entry(ledger, f"reattached/{facts.epoch}", back),)),), back=True)


def rule_lost_again(facts: AgentFacts) -> Decision | None:
    """What was lost under an earlier leader is tried once more."""
    ledger, obj = facts.ledger, facts.object
    if ledger is None or obj is None or ledger.state is not LedgerState.LOST or ledger.ended_epoch >= facts.epoch:
        return None
    parent = facts.peers.get(obj.parent)
    if ledger.turn is None and parent is not None and parent.gone:
        return None
    state = LedgerState.SPAWNING if ledger.turn is None else LedgerState.FAILED
    again = ev.AgentStateChanged(state=state, reason="TriedAgain", message=f"it was lost before: {ledger.message}")
    return Decision("lost_again", None, (Append((entry(ledger, f"tried-again/{facts.epoch}", again),)),))
