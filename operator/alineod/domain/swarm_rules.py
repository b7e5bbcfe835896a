"""What to do about one swarm: is it ours, is it a new run, which Agent objects are missing or too many."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from alineod.crd.agent import CHANGE_SENTENCE
from alineod.crd.swarm import DeletionPolicy
from alineod.domain import events as ev
from alineod.domain.actions import (
    Action,
    AdoptAgent,
    Append,
    CreateAgent,
    Decision,
    DeleteAgent,
    DeleteArchives,
    Standing,
    UpdateAgent,
)
from alineod.domain.events import Entry, Outcome
from alineod.domain.facts import MemberObject, Owner, SwarmFacts
from alineod.domain.life_rules import ENTRY_REMOVED
from alineod.domain.state import AgentState, RunState, is_of_run
from alineod.domain.turn_ends import build_end
from alineod.wire.heard import NOTHING

Rule = Callable[[SwarmFacts], Decision | None]
DONE: Mapping[type[Action], str] = {
    CreateAgent: "made", UpdateAgent: "changed", AdoptAgent: "taken over", DeleteAgent: "removed",
}  # fmt: skip
WRITTEN_AT_ONCE = 50  # Agent objects made or changed by one decision; the rest by the next


def decide_swarm(facts: SwarmFacts) -> Decision:
    """The first rule's answer; where no rule has one, the swarm stands where it should."""
    for rule in RULES:
        if (decision := rule(facts)) is not None:
            return decision
    return _stand(facts)


def rule_deleted(facts: SwarmFacts) -> Decision | None:
    """The object is gone from the cluster it was in: the run ends. From another cluster it is still to be brought."""
    run = facts.ledger
    if facts.object is not None or facts.invalid is not None:
        return None
    if run is None or run.deleted or run.cluster_uid != facts.cluster_uid or facts.kind_renewed:
        return Decision("gone", None)
    return Decision("deleted", None, _end_run(facts, run, "Deleted", "the Swarm object was deleted"))


def _end_run(facts: SwarmFacts, run: RunState, reason: str, message: str) -> tuple[Action, ...]:
    live = [agent for agent in facts.agents.values() if not agent.closed]
    entries: list[Entry] = []
    for agent in live:
        remains = facts.heard[agent.key].remains if agent.key in facts.heard else NOTHING
        entries += build_end(agent, Outcome.ABORTED, reason, message, remains)
    deleted = ev.RunDeleted(uid=run.uid, reason=reason, deletion_policy=run.deletion_policy)
    append = Append((*entries, Entry(id=f"{run.uid}/deleted", run=run.key, agent=None, body=deleted)))
    if run.deletion_policy == DeletionPolicy.DELETE:
        return (append, DeleteArchives(tuple(sorted(facts.agents))))
    return (append,)


def rule_invalid(facts: SwarmFacts) -> Decision | None:
    """The spec cannot be used as it stands. What runs already goes on."""
    if facts.invalid is None:
        return None
    return Decision("invalid", Standing(facts.invalid.reason, facts.invalid.message, stalled=True))


def rule_other_instance(facts: SwarmFacts) -> Decision | None:
    """The swarm belongs to another release: it says so itself, and is left alone."""
    return Decision("other_instance", None) if is_of_other(facts) else None


def is_of_other(facts: SwarmFacts) -> bool:
    """Whether another release has put its name on the swarm."""
    return facts.object is not None and facts.object.instance not in ("", facts.instance)


def rule_leaving(facts: SwarmFacts) -> Decision | None:
    """The object is being deleted and something else holds it: nothing new is begun."""
    if facts.object is None or not facts.object.deleting:
        return None
    return Decision("leaving", Standing("Deleting", "the Swarm is being deleted"))


def rule_start(facts: SwarmFacts) -> Decision | None:
    """A new run; or the old one under another object: from another cluster, or applied again after its CRD was."""
    obj, run = facts.object, facts.ledger
    if obj is None or (run is not None and run.uid == obj.uid and not run.deleted):
        return None
    brought_over = run is not None and (run.cluster_uid != facts.cluster_uid or facts.kind_renewed)
    adopted = run is not None and not run.deleted and (obj.adopt or brought_over)
    ending: tuple[Action, ...] = ()
    if run is not None and not run.deleted and not adopted:
        ending = _end_run(facts, run, "Replaced", "another Swarm object has taken the name")
    started = ev.RunStarted(
        uid=obj.uid, cluster_uid=facts.cluster_uid, instance=facts.instance,
        deletion_policy=str(obj.spec.deletion_policy), adopted=adopted,
    )  # fmt: skip
    before = run.resumed_seq if run else 0
    start = Append((Entry(id=f"{obj.uid}/started/{before}", run=facts.key, agent=None, body=started),))
    return Decision("start", Standing("Accepted", "the swarm was accepted"), (*ending, start))


def rule_members(facts: SwarmFacts) -> Decision | None:
    """An Agent for every entry, as it is now; none for one that was removed; a former object's go, or come along."""
    if facts.object is None or facts.ledger is None:
        return None
    brought_over = facts.ledger.resumed_seq != facts.ledger.started_seq
    wanted = [entry.name for entry in facts.object.spec.agents]
    children = [member for member in facts.members if member.owner is not Owner.NOBODY]
    made = [member for member in children if not member.deleting]
    have = {member.alias for member in children}
    # To make an agent again that somebody deleted would run its prompts again, unasked. One whose entry was removed
    # and is written anew is asked for.
    ended = {a.alias for a in facts.agents.values() if _is_over(a, facts.ledger)}
    missing = [alias for alias in wanted if alias not in {*have, *ended, *facts.leaving}]
    makeable = [alias for alias in missing if _object_name(facts, alias) not in facts.taken]
    actions: tuple[Action, ...] = (
        *(DeleteAgent(m.name, m.uid, m.version) for m in made if m.alias not in wanted or _is_left(m, brought_over)),
        *(AdoptAgent(m.name, m.uid, m.version) for m in made if brought_over and _is_to_come(m, wanted)),
        *(CreateAgent(alias) for alias in makeable[:WRITTEN_AT_ONCE]),
        *[_update(m) for m in made if m.outdated and not m.fixed and m.alias in wanted][:WRITTEN_AT_ONCE],
    )
    return Decision("members", Standing("ChangingAgents", _describe(actions)), actions) if actions else None


def _update(member: MemberObject) -> UpdateAgent:
    return UpdateAgent(member.alias, member.name, member.uid, member.version, control=not member.controlled)


def _describe(actions: Sequence[Action]) -> str:
    counts = Counter(type(action) for action in actions)
    return ", ".join(f"{number} agents are being {DONE[kind]}" for kind, number in counts.items())


def _is_left(member: MemberObject, brought_over: bool) -> bool:
    """A former object's child goes with it, even where the cluster has not got to it yet."""
    return member.owner is Owner.FORMER and not brought_over


def _is_to_come(member: MemberObject, wanted: Sequence[str]) -> bool:
    """A former object's child whose run was brought over, and which is still wanted."""
    return member.owner is Owner.FORMER and member.alias in wanted


def _is_over(agent: AgentState, run: RunState) -> bool:
    return agent.closed and agent.reason != ENTRY_REMOVED and is_of_run(agent, run)


def _object_name(facts: SwarmFacts, alias: str) -> str:
    return f"{facts.key.split('/')[1]}-{alias}"


def _stand(facts: SwarmFacts) -> Decision:
    if facts.taken:
        message = f"the names {', '.join(facts.taken)} are taken by other Agents: delete those, or rename the swarm"
        return Decision("idle", Standing("AgentNameTaken", message, stalled=True))
    if fixed := [
        f"{m.alias}: {', '.join(m.fixed)} {CHANGE_SENTENCE}" for m in facts.members if m.fixed and not m.deleting
    ]:
        return Decision("idle", Standing("ImmutableField", "; ".join(fixed[:10]), stalled=True))
    if facts.stuck:
        shown = ", ".join(facts.stuck[:10])
        return Decision("idle", Standing("AgentStalled", f"stalled: {shown}: see their conditions", stalled=True))
    ended = _find_deleted(facts)
    shown = f"; not made again, since somebody deleted them: {', '.join(ended[:10])}" if ended else ""
    return Decision("idle", Standing("Observed", f"every agent is where it should be{shown}", ready=True))


def _find_deleted(facts: SwarmFacts) -> list[str]:
    """Agents that have ended while their entry stays."""
    run = facts.ledger
    if facts.object is None or run is None:
        return []
    listed = {entry.name for entry in facts.object.spec.agents} - {member.alias for member in facts.members}
    return sorted(agent.alias for agent in facts.agents.values() if agent.alias in listed and _is_over(agent, run))


RULES: tuple[Rule, ...] = (
    rule_deleted,
    rule_invalid,
    rule_other_instance,
    rule_leaving,
    rule_start,
    rule_members,
)
