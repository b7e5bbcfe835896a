"""What is done about a sandbox that is no good any more: the Restore rung, or why there is no use in it.

Its turn was cut off; a fresh sandbox is made when there is a place. When it ended by the agent's own fault there is a
rest before, and when that happened too often somebody has to decide. Sandboxes that never come up are given up.
"""

from collections.abc import Iterable

from alineod.domain import events as ev
from alineod.domain.actions import Action, Append, CreatePod, Decision, DeletePod, Standing
from alineod.domain.causes import End, judge_removed
from alineod.domain.ends import find_end
from alineod.domain.events import Entry, LedgerState, Outcome
from alineod.domain.facts import AgentFacts, PodFacts, Trouble
from alineod.domain.state import AgentState
from alineod.domain.turn_ends import (
    MAX_MESSAGE,
    TOO_MANY_FAILURES,
    build_breaker,
    build_end,
    build_interruption,
    drop_inbox,
    entry,
)
from alineod.domain.turn_starts import find_decision
from alineod.wire.turns import TurnState

PLACE_INTERVAL = 1.0  # s until the making of a pod is looked at
WAIT_INTERVAL = 10.0  # s between looks for a place among those that are brought back, should nobody give one up
REFUSED_AGAIN = 30.0  # s until what the API server refused is asked for again
STOP_GRACE = 10  # s that a sandbox has which nobody waits for
MAX_SANDBOXES = 3  # sandboxes in a row that never came up, before the agent is given up
BACK_OFF = (10.0, 300.0)  # s between sandboxes that end by the agent's own fault: at first, doubled each time, at most
POD_TAKEN, POD_INVALID = "PodNameTaken", "Invalid"
FINISHED = (LedgerState.DONE, LedgerState.FAILED)


def rule_sandbox_gone(facts: AgentFacts) -> Decision | None:
    """The sandbox is no good any more: its turn was cut off, and a fresh one is needed, unless that is no use."""
    ledger, end = facts.ledger, find_end(facts)
    if ledger is None or end is None:
        return None
    pod = facts.pod
    if _is_held(ledger):
        return Decision("held", Standing(ledger.reason, ledger.message, stalled=True), remove_pod(pod))
    if pod is not None and not pod.over and (waiting := _wait_for_place(facts, ledger)):
        return waiting  # it may still come back meanwhile
    if cut := rule_turn_cut(facts):
        return cut
    if ledger.pod is not None and end.own_fault and (stop := _stop_trying(facts, ledger, end)):
        return stop
    return _make_next(facts, ledger, end)


def rule_turn_cut(facts: AgentFacts) -> Decision | None:
    """The sandbox went in the middle of a turn: that is recorded before anything else follows."""
    ledger, end = facts.ledger, find_end(facts)
    if ledger is None or end is None or not (cut := cut_turn(facts, ledger, end)):
        return None
    return Decision("turn_cut", Standing("Restoring", "its sandbox went in the middle of a turn"), (Append(cut),))


def _is_held(ledger: AgentState) -> bool:
    """It failed too often by its own fault: no further sandbox before somebody decides."""
    held = ledger.state is LedgerState.BLOCKED and ledger.reason == TOO_MANY_FAILURES
    return held and find_decision(ledger) is None


def _stop_trying(facts: AgentFacts, ledger: AgentState, end: End) -> Decision | None:
    """What to do about sandboxes that end by the agent's own fault: leave them, ask somebody, or take a rest."""
    count = ledger.sandbox_faults + 1
    if facts.pod is not None and not facts.pod.over and count >= MAX_SANDBOXES:
        return _give_up(facts, ledger, end, count)
    if count >= facts.run.supervision.max_consecutive_failures:
        if ledger.state in FINISHED:  # it keeps its outcome; a prompt counts as the decision
            message = f"{count} sandboxes in a row ended by its own fault, the last: {end.message}"
            return Decision("held", Standing(TOO_MANY_FAILURES, message, stalled=True), remove_pod(facts.pod))
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
    message = f"{count} sandboxes in a row ended by its own fault, and the last did not come up: {end.message}"
    message = message[:MAX_MESSAGE]
    if ledger.turn is None:
        failed = build_end(ledger, Outcome.FAILED, "ProvisioningFailed", message)
        return Decision("provisioning_failed", None, (Append(failed),))
    if ledger.state in FINISHED and ledger.turn.state is not TurnState.INTERRUPTED:
        released = entry(ledger, "released", ev.AgentReleased(reason="RestoreFailed", message=message))
        dropped = drop_inbox(ledger, "released/dropped", "RestoreFailed")
        return Decision("release", None, (Append((released, *dropped)), *remove_pod(facts.pod)))
    lost = build_end(ledger, Outcome.LOST, "RestoreFailed", message, epoch=facts.epoch)
    return Decision("lost", None, (Append(lost),))


def _make_next(facts: AgentFacts, ledger: AgentState, end: End) -> Decision:
    pod = facts.pod
    if (refusal := facts.refusal) is not None:
        standing = Standing(refusal.reason, refusal.message, stalled=refusal.reason in (POD_TAKEN, POD_INVALID))
        actions: tuple[Action, ...] = (*remove_pod(pod), CreatePod(ledger.incarnation + 1))
        return Decision("refused", standing, actions, again_after=REFUSED_AGAIN)
    if waiting := _wait_for_place(facts, ledger):
        return waiting
    # One that still runs goes when the next is recorded.
    clean = remove_pod(pod) if pod is not None and pod.over else ()
    create: tuple[Action, ...] = (*clean, CreatePod(ledger.incarnation + 1))
    if ledger.pod is None:
        return Decision("pod_gone", Standing("Provisioning", "a sandbox is being made"), create)
    standing = Standing("Restoring", f"{end.message}; a fresh sandbox is being made")
    return Decision("pod_gone", standing, create, PLACE_INTERVAL)


def _wait_for_place(facts: AgentFacts, ledger: AgentState) -> Decision | None:
    if ledger.pod is None or facts.restores_left > 0:
        return None
    message = f"the sandbox {ledger.pod.name} is gone; others are being brought back first"
    return Decision("wait_for_place", Standing("WaitingForPlace", message), again_after=WAIT_INTERVAL, queues=True)


def cut_turn(facts: AgentFacts, ledger: AgentState, end: End | None) -> tuple[Entry, ...]:
    """The entries for a turn that ran in the sandbox, which is given up with it."""
    end = end or judge_removed(ledger.pod.name if ledger.pod else "its pod")
    return build_interruption(ledger, facts.run.supervision, end, facts.heard.remains, outside=True)


def remove_pod(pod: PodFacts | None) -> tuple[DeletePod, ...]:
    """The end of a sandbox that nobody waits for; one that is given a long time for its turn is given less."""
    if pod is None or (pod.deleting and pod.grace <= STOP_GRACE):
        return ()
    return (DeletePod(pod.name, pod.uid, pod.version, STOP_GRACE),)


def remove_pods(pods: Iterable[PodFacts | None]) -> tuple[DeletePod, ...]:
    """The end of all of them."""
    return tuple(action for pod in pods for action in remove_pod(pod))


def build_taken(pod: str) -> Trouble:
    """What is wrong where a pod of somebody else has the name of ours."""
    return Trouble(POD_TAKEN, f"the name {pod} is taken by a pod of somebody else: delete it, or rename the agent")
