"""Rules about an agent outside its sandbox: is it there and ours, was it spawned, has it ended, what holds it."""

from alineod.crd.agent import StartFrom, Wait
from alineod.domain import events as ev
from alineod.domain.actions import AbortTurn, Action, Append, Decision, Standing
from alineod.domain.events import Entry, LedgerState, Outcome
from alineod.domain.facts import AgentFacts, AgentObject, RunFacts
from alineod.domain.gone_rules import remove_pod, remove_pods
from alineod.domain.state import AgentState
from alineod.domain.turn_ends import build_end, build_parent_lost, entry
from alineod.domain.waits import decide_wait

DELETED, ENTRY_REMOVED = "Deleted", "EntryRemoved"
GONE = "the Agent object was deleted"
ENDED = "the agent has ended"
PARENT_INTERVAL = 1.0  # s between looks at a parent whose sandbox is not up


def rule_not_ours(facts: AgentFacts) -> Decision | None:
    """Another release's swarm: leave everything alone."""
    if facts.run.exists and not facts.run.ours:
        return Decision("not_ours", None)
    return None


def rule_deleted(facts: AgentFacts) -> Decision | None:
    """The object is gone: the agent ends, its record stays; its pod goes with the object."""
    ledger = facts.ledger
    if facts.object is not None or facts.invalid is not None:
        return None
    if ledger is None or ledger.closed or not _was_deleted(facts.run, ledger):
        return Decision("gone", None, _remove_pods(facts, ENDED) if ledger is not None and ledger.closed else ())
    removed = facts.run.exists and not facts.run.listed
    reason, message = (ENTRY_REMOVED, "it has no entry in its swarm any more") if removed else (DELETED, GONE)
    return Decision(
        "deleted", None, (Append(build_end(ledger, Outcome.ABORTED, reason, message, facts.heard.remains)),)
    )


def _was_deleted(run: RunFacts, ledger: AgentState) -> bool:
    """Whether an object that is not there was deleted, and is not one that is still to come back with its run."""
    state = run.state
    if state is None or state.deleted:
        return True
    coming = run.exists and (run.uid != state.uid or ledger.claimed_seq < state.resumed_seq)
    return run.here and not run.kind_renewed and not coming


def rule_invalid(facts: AgentFacts) -> Decision | None:
    """The spec cannot be used as it stands. What runs already goes on."""
    if facts.invalid is None:
        return None
    return Decision("invalid", Standing(facts.invalid.reason, facts.invalid.message, stalled=True))


def rule_no_swarm(facts: AgentFacts) -> Decision | None:
    """GitOps applies in any order: an Agent may come before its Swarm."""
    if facts.run.exists and facts.run.state is not None and not facts.run.state.deleted:
        return None
    swarm = facts.object.swarm if facts.object else ""
    return Decision(
        "no_swarm", Standing("SwarmNotFound", f"the Swarm {swarm} is not there yet: apply it, or correct spec.swarm")
    )


def rule_leaving(facts: AgentFacts) -> Decision | None:
    """The object is being deleted and something else holds it: nothing new is begun."""
    if facts.object is None or not facts.object.deleting:
        return None
    return Decision("leaving", Standing("Deleting", "the Agent is being deleted"))


def rule_namespace_going(facts: AgentFacts) -> Decision | None:
    """A namespace that is deleted never comes back. Its pods go first, and a running turn would hold up the rest."""
    if facts.ledger is None or not facts.namespace_going:
        return None
    message = "its namespace is being deleted"
    return Decision("namespace_going", Standing("NamespaceTerminating", message), _remove_pods(facts, message))


def rule_spawn(facts: AgentFacts) -> Decision | None:
    """A new agent, a new one under an old name, or the old one brought over under another object."""
    obj, ledger, run = facts.object, facts.ledger, facts.run.state
    if obj is None or run is None or (ledger is not None and ledger.uid == obj.uid):
        return None
    adopted = ledger is not None and (obj.adopt or run.started_seq != run.resumed_seq > ledger.spawned_seq)
    if facts.alias_holder:
        message = f"{facts.alias_holder} is called {obj.alias} in the swarm already: choose another spec.alias"
        return Decision("alias_taken", Standing("AliasTaken", message, stalled=True))
    entries: tuple[Entry, ...] = ()
    former: tuple[Action, ...] = ()
    if ledger is not None and not adopted:
        message = "another Agent object has taken the name"
        former = _remove_pods(facts, message)
        if not ledger.closed:
            entries = build_end(ledger, Outcome.ABORTED, "Replaced", message, facts.heard.remains)
    spawned = ev.AgentSpawned(
        uid=obj.uid, alias=obj.alias, parent=_parent_key(facts, obj), spec=obj.spec.dump(), adopted=adopted
    )
    new = Entry(id=f"{obj.uid}/spawned/{run.resumed_seq}", run=run.key, agent=facts.key, body=spawned)
    return Decision("spawn", Standing("Accepted", "the agent was accepted"), (Append((*entries, new)), *former))


def _parent_key(facts: AgentFacts, obj: AgentObject) -> str | None:
    if not obj.parent:
        return None
    peer = facts.peers.get(obj.parent)
    return peer.key if peer else f"{facts.key.split('/')[0]}/{obj.swarm}-{obj.parent}"


def rule_closed(facts: AgentFacts) -> Decision | None:
    """It reached its end: no sandbox is kept."""
    ledger = facts.ledger
    if ledger is None or not ledger.closed:
        return None
    ready = ledger.outcome is not Outcome.LOST
    standing = Standing(ledger.reason, ledger.message or "the agent has ended", ready=ready, stalled=not ready)
    return Decision("closed", standing, _remove_pods(facts, ENDED))


def _remove_pods(facts: AgentFacts, reason: str) -> tuple[Action, ...]:
    """The end of the agent's own pods: the cluster gives them all the time that a turn may take, and nobody needs it.

    A kubelet that has begun to wait for a turn takes no shorter time; so the turn itself is ended, for that `reason`.
    """
    owners = {facts.ledger and facts.ledger.uid, facts.object and facts.object.uid}
    others = [pod for pod in (facts.next_pod, *facts.stale_pods) if pod is not None and pod.owner_uid in owners]
    own = remove_pod(facts.pod if facts.pod is not None and facts.pod.owner_uid in owners else None)
    turn = facts.ledger.turn if facts.ledger else None
    aborted = (AbortTurn(turn.id, reason),) if own and turn is not None else ()
    return (*aborted, *own, *remove_pods(others))


def rule_wait(facts: AgentFacts) -> Decision | None:
    """Held by `waitFor`, or by a parent that cannot be forked yet."""
    ledger, obj = facts.ledger, facts.object
    if ledger is None or obj is None or ledger.state is not LedgerState.SPAWNING:
        return None
    if (wait := obj.spec.wait_for) is not None and ledger.wait_resolved is None:
        return _wait(facts, ledger, wait)
    if obj.parent and (held := _held_by_parent(facts, ledger, obj)) is not None:
        return held
    state = ev.AgentStateChanged(state=LedgerState.PROVISIONING, reason="Provisioning")
    return Decision(
        "provision",
        Standing("Provisioning", "a sandbox is being made"),
        (Append((entry(ledger, f"provisioning/{ledger.ended_epoch}", state),)),),
    )


def _wait(facts: AgentFacts, ledger: AgentState, wait: Wait) -> Decision:
    verdict = decide_wait(wait, facts.peers, ledger.spawned_at, facts.now)
    if verdict.resolved is None:
        again = None if verdict.again_at is None else max(0.0, verdict.again_at - facts.now)
        if verdict.missing:
            message = f"waits for {', '.join(verdict.missing)}, which is not in the swarm yet"
            return Decision("wait", Standing("AgentNotFound", message), again_after=again)
        return Decision("wait", Standing("Waiting", verdict.message, ready=True), again_after=again)
    resolved = entry(ledger, "wait/resolved", verdict.resolved)
    end = build_end(ledger, Outcome.FAILED, "WaitFailed", verdict.message) if verdict.failed else ()
    return Decision(
        "wait_resolved", Standing("WaitResolved", verdict.message or "the wait is over"), (Append((resolved, *end)),)
    )


def _held_by_parent(facts: AgentFacts, ledger: AgentState, obj: AgentObject) -> Decision | None:
    peer = facts.peers.get(obj.parent)
    if peer is None:
        return Decision(
            "parent", Standing("AgentNotFound", f"the parent {obj.parent} is not in the swarm {obj.swarm} yet")
        )
    if peer.gone:
        return Decision("parent_lost", None, (Append(build_parent_lost(ledger, obj.parent, facts.epoch)),))
    if not peer.has_sandbox and obj.spec.from_ is StartFrom.PARENT:
        message = f"waits for the sandbox of its parent {obj.parent}, whose files it starts from"
        return Decision("parent", Standing("ParentNotReady", message, ready=True), again_after=PARENT_INTERVAL)
    return None
