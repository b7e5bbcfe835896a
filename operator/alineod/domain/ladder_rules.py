"""The restore ladder: what brings an agent back whose sandbox does not answer, is gone, or cannot be had.

Reattach: its bridge answers. Resume: its container was restarted on the same volumes, and its bridge answers again.
Restore: a fresh pod from the newest checkpoint. Lost: no rung held. Each is tried only when the one above failed;
what the cluster will do by itself, such as restarting a container, is waited for.
"""

from alineod.crd.sandbox import OnNodeLost
from alineod.domain import events as ev
from alineod.domain.actions import Action, Append, CreatePod, Decision, DeletePod, Standing
from alineod.domain.causes import End, EndKind, judge_lost_node, judge_removed
from alineod.domain.events import Entry, LedgerState, Outcome, Rung
from alineod.domain.facts import AgentFacts, PodFacts, Trouble
from alineod.domain.state import AgentState
from alineod.domain.turn_ends import MAX_MESSAGE, TOO_MANY_FAILURES, build_breaker, build_end, build_interruption, entry
from alineod.domain.turn_starts import find_decision
from alineod.wire.turns import TurnState

PLACE_INTERVAL = 1.0  # s between looks for a place among those that are brought back
REFUSED_AGAIN = 30.0  # s until a pod that the API server refused is asked for again
STOP_GRACE = 60  # s that a sandbox has which nobody waits for
NODE_LOST_AFTER = 60.0  # s a node may be silent before its sandboxes are replaced
TRIES = 2  # questions that a bridge may leave unanswered before a lower rung is looked for
MAX_CRASHES = 5  # restarts of a container that never came up, before its pod is given up
MAX_SANDBOXES = 3  # sandboxes in a row that never came up, before the agent is
BACK_OFF = (10.0, 300.0)  # s between sandboxes that end by the agent's own fault: at first, doubled each time, at most
POD_TAKEN, POD_INVALID = "PodNameTaken", "Invalid"
FINISHED = (LedgerState.DONE, LedgerState.FAILED)


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
    entries = (*_cut_turn(facts, ledger, end), entry(ledger, f"provisioned/{pod.incarnation}", made))
    return Decision("pod_made", Standing("Provisioning", f"the pod {pod.name} was made"), (Append(entries),))


def build_taken(pod: str) -> Trouble:
    """What is wrong where a pod of somebody else has the name of ours."""
    return Trouble(POD_TAKEN, f"the name {pod} is taken by a pod of somebody else: delete it, or rename the agent")


def _cut_turn(facts: AgentFacts, ledger: AgentState, end: End | None) -> tuple[Entry, ...]:
    end = end or judge_removed(ledger.pod.name if ledger.pod else "its pod")
    heard = facts.heard
    return build_interruption(
        ledger, facts.run.supervision, end, text=heard.text, tools=heard.tools, usage=heard.usage, outside=True
    )


def rule_released(facts: AgentFacts) -> Decision | None:
    """A finished agent that could not be brought back: its outcome stays, and nobody tries again."""
    ledger = facts.ledger
    if ledger is None or not ledger.released:
        return None
    left = tuple(action for pod in facts.stale_pods for action in remove_pod(pod, facts.now))
    return Decision("released", Standing(ledger.reason, ledger.message, ready=True), left)


def rule_sandbox_gone(facts: AgentFacts) -> Decision | None:
    """The sandbox is no good any more: its turn was cut off, and a fresh one is needed, unless that is no use."""
    ledger, end = facts.ledger, find_end(facts)
    if ledger is None or end is None:
        return None
    pod = facts.pod
    if _is_held(ledger):
        return Decision("held", Standing(ledger.reason, ledger.message, stalled=True), remove_pod(pod, facts.now))
    if pod is not None and not pod.over and (waiting := _wait_for_place(facts, ledger)):
        return waiting  # it may still come back meanwhile
    if cut := _cut_turn(facts, ledger, end):
        return Decision("turn_cut", Standing("Restoring", "its sandbox went in the middle of a turn"), (Append(cut),))
    counts = ledger.pod is not None and end.own_fault and find_decision(ledger) is None
    if counts and (stop := _stop_trying(facts, ledger, end)):
        return stop
    return _make_next(facts, ledger)


def _is_held(ledger: AgentState) -> bool:
    """It failed too often by its own fault: no further sandbox before somebody decides."""
    held = ledger.state is LedgerState.BLOCKED and ledger.reason == TOO_MANY_FAILURES
    return held and find_decision(ledger) is None


def remove_pod(pod: PodFacts | None, now: float) -> tuple[DeletePod, ...]:
    """The end of a sandbox that nobody waits for; one that is given a long time for its turn is given less."""
    if pod is None or (pod.deleting and pod.deletes_at <= now + STOP_GRACE):
        return ()
    return (DeletePod(pod.name, pod.uid, pod.version, STOP_GRACE),)


def _stop_trying(facts: AgentFacts, ledger: AgentState, end: End) -> Decision | None:
    """What to do about sandboxes that end by the agent's own fault: leave them, ask somebody, or take a rest."""
    count = ledger.sandbox_faults + 1
    if facts.pod is not None and not facts.pod.over and count >= MAX_SANDBOXES:
        return _give_up(facts, ledger, end, count)
    if count >= facts.run.supervision.max_consecutive_failures:
        entries = build_breaker(ledger, f"breaker/{ledger.incarnation}", end, count)
        return Decision("breaker", Standing(TOO_MANY_FAILURES, end.message, stalled=True), (Append(entries),))
    first, longest = BACK_OFF
    made = ledger.pod.made_at if ledger.pod else 0.0
    due = made + min(first * 2 ** (count - 2), longest) if count > 1 else 0.0
    if due <= facts.now:
        return None
    message = f"{end.message}; the next sandbox is made after a rest"
    return Decision("back_off", Standing(end.reason, message), again_after=due - facts.now)


def _give_up(facts: AgentFacts, ledger: AgentState, end: End, count: int) -> Decision:
    """Every rung failed."""
    message = f"{count} sandboxes in a row did not come up; the last: {end.message}"[:MAX_MESSAGE]
    if ledger.turn is None:
        failed = build_end(ledger, Outcome.FAILED, "ProvisioningFailed", message)
        return Decision("provisioning_failed", None, (Append(failed),))
    if ledger.state in FINISHED and ledger.turn.state is not TurnState.INTERRUPTED:
        released = entry(ledger, "released", ev.AgentReleased(reason="RestoreFailed", message=message))
        return Decision("release", None, (Append((released,)), *remove_pod(facts.pod, facts.now)))
    lost = build_end(ledger, Outcome.LOST, "RestoreFailed", message, epoch=facts.epoch)
    return Decision("lost", None, (Append(lost),))


def _make_next(facts: AgentFacts, ledger: AgentState) -> Decision:
    pod = facts.pod
    if (refusal := facts.refusal) is not None:
        standing = Standing(refusal.reason, refusal.message, stalled=refusal.reason in (POD_TAKEN, POD_INVALID))
        actions: tuple[Action, ...] = (*remove_pod(pod, facts.now), CreatePod(ledger.incarnation + 1))
        return Decision("refused", standing, actions, again_after=REFUSED_AGAIN)
    if waiting := _wait_for_place(facts, ledger):
        return waiting
    clean = (
        remove_pod(pod, facts.now) if pod is not None and pod.over else ()
    )  # one that still runs goes when the next is recorded
    create: tuple[Action, ...] = (*clean, CreatePod(ledger.incarnation + 1))
    if ledger.pod is None:
        return Decision("pod_gone", Standing("Provisioning", "a sandbox is being made"), create)
    what = f"the pod {ledger.pod.name} is gone; a fresh one is being made"
    return Decision("pod_gone", Standing("Restoring", what), create, PLACE_INTERVAL)


def _wait_for_place(facts: AgentFacts, ledger: AgentState) -> Decision | None:
    if ledger.pod is None or facts.restores_left > 0:
        return None
    message = f"the pod {ledger.pod.name} is gone; others are being brought back first"
    return Decision("wait_for_place", Standing("WaitingForPlace", message), again_after=PLACE_INTERVAL)


def rule_stale_pods(facts: AgentFacts) -> Decision | None:
    """Pods of earlier incarnations have no say and are removed."""
    stale = tuple(action for pod in facts.stale_pods for action in remove_pod(pod, facts.now))
    return Decision("stale_pods", None, stale) if stale else None


def rule_restored(facts: AgentFacts) -> Decision | None:
    """The restore container said what it came back with."""
    ledger, pod = facts.ledger, facts.pod
    if ledger is None or pod is None or pod.restore is None or ledger.pod is None:
        return None
    if ledger.pod.rung is not Rung.RESTORE or _is_back(ledger):
        return None
    report = pod.restore
    restored = ev.AgentRestored(
        rung=Rung.RESTORE, incarnation=pod.incarnation,
        reason=ledger.pod.cause or f"the sandbox before {pod.name} is gone",
        checkpoint_turn=report.turn, where=report.where, tried=report.tried,
    )  # fmt: skip
    back = entry(ledger, f"restored/{pod.incarnation}", restored)
    return Decision("restored", Standing("PodStarting", f"the pod {pod.name} is starting"), (Append((back,)),))


def _is_back(ledger: AgentState) -> bool:
    return ledger.restored is not None and ledger.restored.incarnation == ledger.incarnation


def rule_resumed(facts: AgentFacts) -> Decision | None:
    """The container was restarted in the same pod, and its bridge answers."""
    ledger, pod = facts.ledger, facts.pod
    if ledger is None or pod is None or ledger.pod is None or pod.restarts <= ledger.pod.restarts:
        return None
    end = pod.container_end
    resumed = ev.AgentRestored(
        rung=Rung.RESUME, incarnation=pod.incarnation, restarts=pod.restarts,
        reason=end.message if end else "the container of the agent was restarted",
    )  # fmt: skip
    back = entry(ledger, f"resumed/{pod.incarnation}/{pod.restarts}", resumed)
    return Decision("resumed", None, (Append((back,)),))


def rule_reattach(facts: AgentFacts) -> Decision | None:
    """A new leader found the bridge answering, or a paused agent as it was: nothing restarted, a turn goes on."""
    ledger, pod = facts.ledger, facts.pod
    if facts.reattached or ledger is None or pod is None:
        return None
    back = ev.AgentRestored(
        rung=Rung.REATTACH, incarnation=pod.incarnation, reason="the operator was restarted", restarts=pod.restarts,
    )  # fmt: skip
    return Decision("reattach", None, (Append((entry(ledger, f"reattached/{facts.epoch}", back),)),))


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
