"""Rules about a sandbox: has the agent a pod, does it live, does its bridge answer, does a turn run, is one due."""

from alineod.crd.agent import StartFrom
from alineod.domain import events as ev
from alineod.domain.actions import Append, CreatePod, Decision, DeletePod, Drive, Probe, Standing
from alineod.domain.events import Entry, LedgerState, Outcome, Rung
from alineod.domain.facts import AgentFacts, PodFacts, Trouble
from alineod.domain.state import AgentState
from alineod.domain.turn_ends import MAX_MESSAGE, build_end, build_interruption, entry
from alineod.domain.turn_starts import build_turn_start
from alineod.wire.turns import ErrorKind

PROBE_INTERVAL = 2.0  # s between questions to a bridge that is not ready
STALLED_AFTER = 300.0  # s a pod may take to come up before somebody should look
PLACE_INTERVAL = 1.0  # s between looks for a place among those that are brought back
POD_TAKEN, POD_INVALID, SETUP_FAILED = "PodNameTaken", "Invalid", "SetupFailed"
REFUSED_AGAIN = 30.0  # s until a pod that the API server refused is asked for again


def rule_pod_made(facts: AgentFacts) -> Decision | None:
    """A pod of the next incarnation is there: it is recorded before anything builds on it."""
    ledger, pod, obj = facts.ledger, facts.next_pod, facts.object
    if ledger is None or pod is None or obj is None:
        return None
    if pod.owner_uid != obj.uid:
        taken = build_taken(pod.name)
        return Decision("pod_taken", Standing(taken.reason, taken.message, stalled=True), again_after=REFUSED_AGAIN)
    rung = Rung.RESTORE if ledger.pod is not None or ledger.turn is not None else None
    made = ev.AgentProvisioned(pod=pod.name, uid=pod.uid, incarnation=pod.incarnation, rung=rung)
    entries = (*_cut_turn(facts, ledger), entry(ledger, f"provisioned/{pod.incarnation}", made))
    return Decision("pod_made", Standing("Provisioning", f"the pod {pod.name} was made"), (Append(entries),))


def build_taken(pod: str) -> Trouble:
    """What is wrong where a pod of somebody else has the name of ours."""
    return Trouble(POD_TAKEN, f"the name {pod} is taken by a pod of somebody else: delete it, or rename the agent")


def _cut_turn(facts: AgentFacts, ledger: AgentState) -> tuple[Entry, ...]:
    end = facts.pod.end if facts.pod and facts.pod.end else None
    name = ledger.pod.name if ledger.pod else "its pod"
    reason = end.reason if end else "PodGone"
    message = end.message if end and end.message else f"the pod {name} is gone"
    return build_interruption(ledger, facts.run.supervision, reason, message, text=facts.live_text)


def rule_pod_gone(facts: AgentFacts) -> Decision | None:
    """The pod is gone or runs nothing any more: its turn was cut off, and a fresh pod is needed."""
    ledger, pod = facts.ledger, facts.pod
    if ledger is None or (pod is not None and not pod.over):
        return None
    if cut := _cut_turn(facts, ledger):
        return Decision("turn_cut", Standing("Restoring", "its sandbox went in the middle of a turn"), (Append(cut),))
    if facts.refusal is not None:
        standing = Standing(
            facts.refusal.reason, facts.refusal.message, stalled=facts.refusal.reason in (POD_TAKEN, POD_INVALID)
        )
        return Decision("refused", standing, (CreatePod(ledger.incarnation + 1),), again_after=REFUSED_AGAIN)
    if ledger.pod is not None and facts.restores_left <= 0:
        message = f"the pod {ledger.pod.name} is gone; others are being brought back first"
        return Decision("wait_for_place", Standing("WaitingForPlace", message), again_after=PLACE_INTERVAL)
    clean = (DeletePod(pod.name, pod.uid, pod.version),) if pod is not None and not pod.deleting else ()
    what = (
        "a sandbox is being made"
        if ledger.pod is None
        else f"the pod {ledger.pod.name} is gone; a fresh one is being made"
    )
    reason = "Provisioning" if ledger.pod is None else "Restoring"
    again = None if ledger.pod is None else PLACE_INTERVAL
    return Decision("pod_gone", Standing(reason, what), (*clean, CreatePod(ledger.incarnation + 1)), again)


def rule_stale_pods(facts: AgentFacts) -> Decision | None:
    """Pods of earlier incarnations have no say and are removed."""
    stale = tuple(DeletePod(pod.name, pod.uid, pod.version) for pod in facts.stale_pods if not pod.deleting)
    return Decision("stale_pods", None, stale) if stale else None


def rule_pod_leaving(facts: AgentFacts) -> Decision | None:
    """Somebody deletes the pod: what it still says is heard, nothing new is given to it."""
    ledger, pod = facts.ledger, facts.pod
    if ledger is None or pod is None or not pod.deleting:
        return None
    drive = (Drive(ledger.turn.number),) if ledger.turn is not None and ledger.turn_running else ()
    return Decision("pod_leaving", Standing("PodDeleting", f"the pod {pod.name} is being deleted"), drive)


def rule_restored(facts: AgentFacts) -> Decision | None:
    """The restore container said what it came back with."""
    ledger, pod = facts.ledger, facts.pod
    if ledger is None or pod is None or pod.restore is None or ledger.pod is None:
        return None
    if ledger.pod.rung is not Rung.RESTORE or _back(ledger):
        return None
    report = pod.restore
    restored = ev.AgentRestored(
        rung=Rung.RESTORE, incarnation=pod.incarnation, reason=f"the sandbox before {pod.name} is gone",
        checkpoint_turn=report.turn, where=report.where, tried=report.tried,
    )  # fmt: skip
    return Decision(
        "restored", _coming(facts, pod), (Append((entry(ledger, f"restored/{pod.incarnation}", restored),)),)
    )


def _back(ledger: AgentState) -> bool:
    return ledger.restored is not None and ledger.restored.incarnation == ledger.incarnation


def rule_pod_coming(facts: AgentFacts) -> Decision | None:
    """The pod's agent container does not run yet: the cluster's own words say why."""
    pod = facts.pod
    if pod is None or pod.agent_running:
        return None
    if (lost := _lost_parent(facts)) is not None:
        return lost
    wait = max(1.0, pod.created_at + STALLED_AFTER - facts.now)
    return Decision("pod_coming", _coming(facts, pod), again_after=wait if _find_trouble(facts, pod) else None)


def _lost_parent(facts: AgentFacts) -> Decision | None:
    """A child that has not begun, whose pod waits for files that nobody has any more."""
    ledger, obj = facts.ledger, facts.object
    if ledger is None or obj is None or ledger.turn is not None or obj.spec.from_ is not StartFrom.PARENT:
        return None
    parent = facts.peers.get(obj.parent)
    if parent is None or not parent.gone or (facts.pod and facts.pod.restore):
        return None
    message = f"the parent {obj.parent} cannot come back"
    return Decision("parent_lost", None, (Append(build_end(ledger, Outcome.LOST, "ParentLost", message)),))


def _find_trouble(facts: AgentFacts, pod: PodFacts) -> Trouble | None:
    """What the pod waits for: in the cluster's words, or in those of its restore container."""
    return pod.trouble or facts.start_wait


def _coming(facts: AgentFacts, pod: PodFacts) -> Standing:
    trouble = _find_trouble(facts, pod)
    if trouble is None:
        return Standing("PodStarting", f"the pod {pod.name} is starting")
    late = facts.now - pod.created_at >= STALLED_AFTER
    return Standing(trouble.reason, trouble.message, stalled=late)


def rule_probe(facts: AgentFacts) -> Decision | None:
    """The container runs: its bridge is asked until it answers and is ready."""
    bridge, pod = facts.bridge, facts.pod
    if pod is None or (bridge is not None and bridge.ready and not facts.bridge_error):
        return None
    if bridge is not None and bridge.reason == SETUP_FAILED and (failed := _fail_setup(facts, bridge.message)):
        return failed
    late = facts.now - pod.created_at >= STALLED_AFTER
    if bridge is not None and not facts.bridge_error:
        reason, message = bridge.reason or "BridgeNotReady", bridge.message or "the bridge is not ready"
        standing = Standing(reason, message, stalled=late or reason == SETUP_FAILED)
    else:
        message = facts.bridge_error or f"the bridge in {pod.name} was not asked yet"
        standing = Standing("BridgeNotAnswering", message, stalled=late)
    return Decision("probe", standing, (Probe(),), again_after=PROBE_INTERVAL)


def _fail_setup(facts: AgentFacts, message: str) -> Decision | None:
    """An agent whose setup failed before its first turn has failed, with the script's last lines."""
    ledger = facts.ledger
    if ledger is None or ledger.state is not LedgerState.PROVISIONING:
        return None
    settled = ev.HandleSettled(outcome=Outcome.FAILED, error_kind=ErrorKind.SETUP, error=message[:MAX_MESSAGE])
    state = ev.AgentStateChanged(state=LedgerState.FAILED, reason=SETUP_FAILED, message=message[:MAX_MESSAGE])
    entries = (entry(ledger, "setup/settled", settled), entry(ledger, "setup/state", state))
    return Decision("setup_failed", Standing(SETUP_FAILED, message, stalled=True), (Append(entries),))


def rule_reattach(facts: AgentFacts) -> Decision | None:
    """A new leader found the bridge answering: nothing restarted, a running turn goes on."""
    ledger, pod = facts.ledger, facts.pod
    if facts.reattached or ledger is None or pod is None:
        return None
    back = ev.AgentRestored(
        rung=Rung.REATTACH, incarnation=pod.incarnation, reason="the operator was restarted",
    )  # fmt: skip
    return Decision("reattach", None, (Append((entry(ledger, f"reattached/{facts.epoch}", back),)),))


def rule_turn_running(facts: AgentFacts) -> Decision | None:
    """A turn runs: its journal is followed. Handing it over again is safe: the bridge knows the turn's id."""
    ledger = facts.ledger
    if ledger is None or ledger.turn is None or not ledger.turn_running:
        return None
    standing = Standing("TurnRunning", f"turn {ledger.turn.number} is running", ready=True)
    return Decision("turn_running", standing, (Drive(ledger.turn.number),))


def rule_turn_due(facts: AgentFacts) -> Decision | None:
    """A prompt waits and nothing stands in its way."""
    ledger, obj = facts.ledger, facts.object
    if ledger is None or obj is None or ledger.state in (LedgerState.BLOCKED, LedgerState.PAUSED):
        return None
    entries = build_turn_start(ledger, obj.spec.prompt)
    return (
        Decision("turn_due", Standing("TurnStarting", "a turn is starting", ready=True), (Append(entries),))
        if entries
        else None
    )


def rule_idle(facts: AgentFacts) -> Decision:
    """Nothing is due: where it stands."""
    ledger = facts.ledger
    if ledger is None:
        return Decision("idle", Standing("Accepted", "the agent was not looked at yet"))
    if ledger.state is LedgerState.BLOCKED:
        return Decision("idle", Standing(ledger.reason, ledger.message, stalled=True))
    reasons = {LedgerState.DONE: "Completed", LedgerState.PAUSED: "Suspended"}
    message = ledger.message or "the agent is where it should be"
    if ledger.restored is not None and ledger.restored.incarnation == ledger.incarnation:
        message += f"; it came back by {ledger.restored.rung}"
    return Decision("idle", Standing(reasons.get(ledger.state, ledger.reason), message, ready=True))
