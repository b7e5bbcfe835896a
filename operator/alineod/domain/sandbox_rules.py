"""Rules about a sandbox that is there: does it come up, does its bridge answer, does a turn run, is one due."""

from datetime import UTC, datetime

from alineod.crd.agent import StartFrom
from alineod.domain import events as ev
from alineod.domain.actions import Action, Append, Decision, Drive, Probe, Standing
from alineod.domain.ends import BRIDGE_DENIED, END_MARGIN, TRIES, is_abandoned
from alineod.domain.events import LedgerState, Outcome
from alineod.domain.facts import AgentFacts, PodFacts, Trouble
from alineod.domain.ladder_rules import rule_reattach
from alineod.domain.state import AgentState
from alineod.domain.turn_ends import MAX_MESSAGE, build_parent_lost, entry
from alineod.domain.turn_starts import build_turn_start
from alineod.wire.turns import BridgeReason, ErrorKind

PROBE_INTERVAL = 2.0  # s between questions to a bridge that is not ready
NODE_INTERVAL = 10.0  # s between questions to one on a node that nobody hears of
STALLED_AFTER = 300.0  # s a pod may take to come up before somebody should look


def rule_pod_leaving(facts: AgentFacts) -> Decision | None:
    """Somebody deletes the pod: what it still says is heard, nothing new is given to it."""
    ledger, pod = facts.ledger, facts.pod
    if ledger is None or pod is None or not pod.deleting:
        return None
    actions: tuple[Action, ...] = _follow(ledger)
    again = max(pod.deletes_at + END_MARGIN - facts.now, NODE_INTERVAL)
    if pod.node_lost_since or is_abandoned(pod, facts.now):  # is it lost? Then nobody will ever end it
        actions, again = (Probe(), *actions), NODE_INTERVAL
    standing = Standing("PodDeleting", f"the pod {pod.name} is being deleted{_describe_rest(ledger, pod)}")
    return Decision("pod_leaving", standing, actions, again)


def _describe_rest(ledger: AgentState, pod: PodFacts) -> str:
    if ledger.turn is None or not ledger.turn_running:
        return ""
    until = datetime.fromtimestamp(pod.deletes_at, UTC)
    return f"; turn {ledger.turn.number} may run on for sandbox.drainGrace, at most until {until:%H:%M:%S} UTC"


def _follow(ledger: AgentState | None) -> tuple[Drive, ...]:
    """A turn that runs is followed, whatever else is so."""
    return (Drive(ledger.turn.number),) if ledger and ledger.turn and ledger.turn_running else ()


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
    return Decision("parent_lost", None, (Append(build_parent_lost(ledger, obj.parent, facts.epoch)),))


def _find_trouble(facts: AgentFacts, pod: PodFacts) -> Trouble | None:
    """What the pod waits for: in the cluster's words, or in those of its restore container."""
    return pod.trouble or facts.start_wait


def _coming(facts: AgentFacts, pod: PodFacts) -> Standing:
    trouble = _find_trouble(facts, pod)
    if trouble is None:
        return Standing("PodStarting", f"the pod {pod.name} is starting")
    late = facts.now - pod.created_at >= STALLED_AFTER
    return Standing(trouble.reason, trouble.message, stalled=late)


def rule_paused(facts: AgentFacts) -> Decision | None:
    """A paused agent cannot answer: it is taken as it is."""
    ledger, pod = facts.ledger, facts.pod
    if ledger is None or ledger.state is not LedgerState.PAUSED or pod is None or not pod.agent_running:
        return None
    return rule_reattach(facts) or Decision("paused", Standing("Suspended", "the agent is paused", ready=True))


def rule_probe(facts: AgentFacts) -> Decision | None:
    """The container runs: its bridge is asked until it answers and is ready."""
    bridge, pod = facts.bridge, facts.pod
    if pod is None or (bridge is not None and bridge.ready and not facts.bridge_error):
        return None
    if (
        bridge is not None
        and bridge.reason == BridgeReason.SETUP_FAILED
        and (failed := _fail_setup(facts, bridge.message))
    ):
        return failed
    late = facts.now - pod.created_at >= STALLED_AFTER
    if bridge is not None and not facts.bridge_error:
        reason, message = bridge.reason or "BridgeNotReady", bridge.message or "the bridge is not ready"
        if reason == BridgeReason.SETUP_FAILED:  # it came up before: nothing but another sandbox tries the script again
            message += "; mend sandbox.setup of the Agent, and it gets another sandbox"
        standing = Standing(reason, message, stalled=late or reason == BridgeReason.SETUP_FAILED)
        return Decision("probe", standing, (Probe(), *_follow(facts.ledger)), again_after=PROBE_INTERVAL)
    silence, again = _describe_silence(facts, pod)
    standing = Standing(silence.reason, silence.message, stalled=late or silence.reason == BRIDGE_DENIED)
    if not facts.reattached and 0 < facts.tries < TRIES and (left := facts.asked_at + again - facts.now) > 0:
        return Decision("probe", standing, again_after=left, answers=False)  # woken too early for the second question
    # A node that nobody hears of is said, and asked about seldom: that is an answer.
    answers = pod.node_lost_since > 0 or bridge is not None or facts.tries + 1 >= TRIES
    return Decision("probe", standing, (Probe(),), again_after=again, answers=answers)


def _describe_silence(facts: AgentFacts, pod: PodFacts) -> tuple[Trouble, float]:
    """Why the bridge may not answer, and in how many seconds it is asked again."""
    said = facts.bridge_error
    error = said.message if said else f"the bridge in {pod.name} was not asked yet"
    if pod.node_lost_since:
        return Trouble(
            "NodeNotReady", f"the node {pod.node} of the pod {pod.name} does not report: {error}"
        ), NODE_INTERVAL
    if said is not None and said.reason == BRIDGE_DENIED:
        what = (
            f"the bridge in {pod.name} does not accept this operator's token, as if the pod was made under another"
            " ledger; if so, delete the pod: the agent comes back from its newest checkpoint"
        )
        return Trouble(BRIDGE_DENIED, what), PROBE_INTERVAL
    if facts.tries < TRIES:
        return Trouble("BridgeNotAnswering", error), facts.retry_delay
    if pod.bridge_ready:
        what = f"the kubelet finds the bridge in {pod.name} ready, but the operator cannot reach it ({error}): "
        return Trouble("BridgeUnreachable", f"{what}look at the NetworkPolicies between them"), PROBE_INTERVAL
    if facts.ledger is not None and _is_known(facts.ledger):
        what = f"the bridge in {pod.name} does not answer: the kubelet restarts its container ({error})"
        return Trouble("Resuming", what), PROBE_INTERVAL
    return Trouble("BridgeNotAnswering", error), PROBE_INTERVAL


def _is_known(ledger: AgentState) -> bool:
    """Whether this sandbox was at work before."""
    return ledger.turn is not None and ledger.turn.incarnation == ledger.incarnation


def _fail_setup(facts: AgentFacts, message: str) -> Decision | None:
    """An agent whose setup failed before its first turn has failed, with the script's last lines."""
    ledger = facts.ledger
    if ledger is None or ledger.state is not LedgerState.PROVISIONING:
        return None
    settled = ev.HandleSettled(outcome=Outcome.FAILED, error_kind=ErrorKind.SETUP, error=message[:MAX_MESSAGE])
    state = ev.AgentStateChanged(
        state=LedgerState.FAILED, reason=BridgeReason.SETUP_FAILED, message=message[:MAX_MESSAGE]
    )
    entries = (entry(ledger, "setup/settled", settled), entry(ledger, "setup/state", state))
    return Decision("setup_failed", Standing(BridgeReason.SETUP_FAILED, message, stalled=True), (Append(entries),))


def rule_turn_running(facts: AgentFacts) -> Decision | None:
    """A turn runs: its journal is followed. Handing it over again is safe: the bridge knows the turn's id."""
    drive = _follow(facts.ledger)
    if not drive:
        return None
    standing = Standing("TurnRunning", f"turn {drive[0].turn} is running", ready=True)
    if silence := facts.heard.silence:
        message = f"{standing.message}; {silence[:MAX_MESSAGE]} (limits.promptInactivity; limits.turnMax ends it)"
        standing = Standing("TurnInactive", message, ready=True)
    return Decision("turn_running", standing, drive)


def rule_turn_due(facts: AgentFacts) -> Decision | None:
    """A prompt waits and nothing stands in its way."""
    ledger, obj = facts.ledger, facts.object
    if ledger is None or obj is None or ledger.state is LedgerState.PAUSED:
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
    if ledger.restored is not None and ledger.is_back:
        message += f"; it came back by {ledger.restored.rung}"
    return Decision("idle", Standing(reasons.get(ledger.state, ledger.reason), message, ready=True))
