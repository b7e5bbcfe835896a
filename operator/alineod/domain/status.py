"""What a person reads: the status of an Agent and of a Swarm, computed from the facts and the decision.

Nothing here changes while nothing happens: no clock reading, no counter, no age. A condition keeps the time of its
last transition as long as its status stays.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from alineod.crd.status import (
    MAX_MESSAGE,
    AgentCounts,
    AgentStatus,
    CheckpointStatus,
    Condition,
    ConditionStatus,
    ConditionType,
    LedgerStatus,
    OutcomeWord,
    Phase,
    RestoreStatus,
    RungWord,
    SandboxStatus,
    SwarmStatus,
    TurnPhase,
    TurnStatus,
    UsageStatus,
)  # fmt: skip
from alineod.domain.actions import Standing
from alineod.domain.events import LedgerState, Outcome
from alineod.domain.facts import AgentFacts, PodFacts, SwarmFacts, Trouble
from alineod.domain.fold import CLEAN_TURN_LOST, LOST_TURNS
from alineod.domain.life_rules import ENTRY_REMOVED
from alineod.domain.state import AgentState, Checkpoint, Interruption, RunState, is_of_run
from alineod.wire.turns import Usage
from alineod.wire.usage import add_usage

PHASES: Mapping[LedgerState, Phase] = {
    LedgerState.SPAWNING: Phase.WAITING,
    LedgerState.PROVISIONING: Phase.PROVISIONING,
    LedgerState.RUNNING: Phase.RUNNING,
    LedgerState.PAUSED: Phase.PAUSED,
    LedgerState.BLOCKED: Phase.BLOCKED,
    LedgerState.DONE: Phase.DONE,
    LedgerState.FAILED: Phase.FAILED,
    LedgerState.ABORTED: Phase.ABORTED,
    LedgerState.LOST: Phase.LOST,
}
OUTCOMES: Mapping[Outcome, OutcomeWord] = {
    Outcome.SUCCESS: OutcomeWord.SUCCESS,
    Outcome.FAILED: OutcomeWord.FAILED,
    Outcome.ABORTED: OutcomeWord.ABORTED,
    Outcome.LOST: OutcomeWord.LOST,
    Outcome.BUDGET_EXCEEDED: OutcomeWord.BUDGET_EXCEEDED,
}
MAX_NAMES = 20  # of agents in a message


class Said:
    """A condition's status, reason and message, before it has a time."""

    def __init__(self, status: bool, reason: str, message: str = "") -> None:
        self.status = ConditionStatus.TRUE if status else ConditionStatus.FALSE
        self.reason = reason
        self.message = cut_text(message, MAX_MESSAGE)


def cut_text(text: str, limit: int) -> str:
    """At most `limit` characters."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def format_time(seconds: float) -> str:
    """RFC 3339 in UTC, to the second."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def compute_conditions(
    said: Mapping[ConditionType, Said], before: Iterable[Condition], generation: int, now: float
) -> tuple[Condition, ...]:
    """Conditions in the order given; one whose status did not change keeps its time."""
    times = {(c.type, c.status): c.last_transition_time for c in before}
    return tuple(
        Condition(
            type=kind, status=s.status, reason=s.reason, message=s.message, observed_generation=generation,
            last_transition_time=times.get((kind, s.status), format_time(now)),
        )
        for kind, s in said.items()
    )  # fmt: skip


def _standing_conditions(standing: Standing) -> dict[ConditionType, Said]:
    return {
        ConditionType.READY: Said(standing.ready, standing.reason, standing.message),
        ConditionType.RECONCILING: Said(standing.reconciling, standing.reason, standing.message),
        ConditionType.STALLED: Said(standing.stalled, standing.reason, standing.message),
    }


def compute_agent_status(facts: AgentFacts, standing: Standing, before: AgentStatus) -> AgentStatus:
    """The status that belongs to these facts; `before` lends the times of unchanged conditions."""
    generation = facts.object.generation if facts.object else before.observed_generation
    agent = facts.ledger
    said = _standing_conditions(standing)
    if agent is None:
        conditions = compute_conditions(said, before.conditions, generation, facts.now)
        return AgentStatus(observed_generation=generation, phase=Phase.WAITING, conditions=conditions)
    said |= _ledger_conditions(facts, agent)
    return AgentStatus(
        observed_generation=generation,
        phase=PHASES[agent.state],
        conditions=compute_conditions(said, before.conditions, generation, facts.now),
        turn=_turn(agent),
        sandbox=_sandbox(facts, agent),
        checkpoint=_checkpoint(agent),
        restore=_restore(agent),
        outcome=OUTCOMES[agent.outcome] if agent.outcome else None,
        usage=_usage(agent.usage),
    )


def _ledger_conditions(facts: AgentFacts, agent: AgentState) -> dict[ConditionType, Said]:
    turn, cut = agent.turn, agent.interruption
    running = Said(False, "NoTurn")
    if turn is not None:
        running = Said(agent.turn_running, "TurnRunning" if agent.turn_running else "TurnEnded", f"turn {turn.number}")
    interrupted = Said(False, "NotInterrupted")
    if cut is not None:
        interrupted = Said(True, cut.reason, f"{_describe(cut)}; {_find_last(agent)}")
    lost = agent.state is LedgerState.LOST
    return {
        ConditionType.RUNNING: running,
        ConditionType.INTERRUPTED: interrupted,
        ConditionType.LOST: Said(lost, agent.reason if lost else "NotLost", agent.message if lost else ""),
        ConditionType.CHECKPOINTED: _checkpointed(facts, agent),
    } | (
        {ConditionType.UP_TO_DATE: _up_to_date(facts.pod, outdated=facts.outdated)}
        if facts.pod and facts.pod.made_of
        else {}
    )


def _describe(cut: Interruption) -> str:
    before = f"; before that, {_describe(cut.before)}" if cut.before else ""
    if cut.reason in LOST_TURNS:
        return f"turn {cut.turn} is lost: {cut.message}{before}"
    text = f"{cut.survived} characters" if cut.survived else "none"
    return f"turn {cut.turn} was cut off: {cut.message}; {text} of its text survived{before}"


def _find_last(agent: AgentState) -> str:
    """The last clean turn that it has."""
    if agent.last_clean_turn:
        return f"the last clean turn is {agent.last_clean_turn}"
    return "no clean turn is left" if _has_lost(agent.interruption) else "no turn ended cleanly yet"


def _has_lost(cut: Interruption | None) -> bool:
    return cut is not None and (cut.reason == CLEAN_TURN_LOST or _has_lost(cut.before))


def _checkpointed(facts: AgentFacts, agent: AgentState) -> Said:
    if facts.object is not None and not facts.object.spec.checkpoint:
        return Said(False, "NotRequested", "spec.checkpoint is not true: a lost sandbox loses the conversation")
    newest = agent.checkpoints[-1] if agent.checkpoints else None
    if agent.last_clean_turn is None:
        return Said(False, "Pending", _find_last(agent))
    if not facts.has_bucket:
        message = "no bucket is configured: checkpoints stay in the pod and go with it; set bucket.name in the chart"
        return Said(False, "NoBucket", message)
    if newest is None or newest.turn < agent.last_clean_turn:
        return Said(False, "Pending", f"the checkpoint of turn {agent.last_clean_turn} is not in the bucket yet")
    if newest.upload_error or newest.remote_ref is None:
        return Said(False, "UploadFailed", f"turn {newest.turn}: {newest.upload_error or 'not seen in the bucket'}")
    return Said(True, "Uploaded", f"turn {newest.turn} is in the bucket")


def _up_to_date(pod: PodFacts, *, outdated: bool) -> Said:
    if not outdated:
        return Said(True, "UpToDate")
    message = (
        f"spec.sandbox or spec.harness has changed since the pod {pod.name} was made: that applies at the next"
        " incarnation; delete the pod between two turns to have it now"
    )
    return Said(False, "SpecChanged", message)


def _turn(agent: AgentState) -> TurnStatus | None:
    turn = agent.turn
    if turn is None:
        return None
    state = TurnPhase(str(turn.state).capitalize())
    return TurnStatus(number=turn.number, id=turn.id, state=state, started_at=format_time(turn.started_at))


def _sandbox(facts: AgentFacts, agent: AgentState) -> SandboxStatus | None:
    if agent.pod is None:
        return None
    node, restarts = (facts.pod.node, facts.pod.restarts) if facts.pod else ("", 0)
    return SandboxStatus(pod=agent.pod.name, node=node, incarnation=agent.pod.incarnation, restarts=restarts)


def _checkpoint(agent: AgentState) -> CheckpointStatus | None:
    if not agent.checkpoints:
        return None
    newest: Checkpoint = agent.checkpoints[-1]
    return CheckpointStatus(
        turn=newest.turn, time=format_time(newest.time), bytes=newest.bytes,
        remote_ref=newest.remote_ref or "", upload_error=cut_text(newest.upload_error or "", MAX_MESSAGE),
    )  # fmt: skip


def _restore(agent: AgentState) -> RestoreStatus | None:
    back = agent.restored
    if back is None:
        return None
    return RestoreStatus(
        rung=RungWord(str(back.rung)), turn=back.checkpoint_turn, time=format_time(back.time), reason=back.reason
    )


def _usage(usage: Usage) -> UsageStatus:
    return UsageStatus(input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, usd=usage.usd)


def compute_swarm_status(facts: SwarmFacts, standing: Standing, before: SwarmStatus) -> SwarmStatus:
    """The status that belongs to these facts; `before` lends the times of unchanged conditions."""
    generation = facts.object.generation if facts.object else before.observed_generation
    agents = [a for a in facts.agents.values() if _counts(a, facts.ledger)]
    said = _standing_conditions(standing) | _swarm_conditions(facts, agents)
    newest = facts.ledger.seq if facts.ledger else 0
    usage = Usage()
    for agent in agents:
        usage = add_usage(usage, agent.usage)
    return SwarmStatus(
        observed_generation=generation,
        instance=facts.instance,
        agents=count_agents(agents, len(facts.object.spec.agents) if facts.object else 0),
        conditions=compute_conditions(said, before.conditions, generation, facts.now),
        usage=_usage(usage),
        ledger=LedgerStatus(seq=newest, replicated_seq=min(newest, facts.replicated_seq)),
    )


def _counts(agent: AgentState, run: RunState | None) -> bool:
    """Agents of this run, but for those whose entry was removed: their record stays in the ledger alone."""
    return (run is None or is_of_run(agent, run)) and not (agent.closed and agent.reason == ENTRY_REMOVED)


def _swarm_conditions(facts: SwarmFacts, agents: list[AgentState]) -> dict[ConditionType, Said]:
    cut = sorted(a.alias for a in agents if a.interruption is not None)
    lost = sorted(a.alias for a in agents if a.state is LedgerState.LOST)
    replicated = facts.replicated or Trouble("Replicated", "")
    return {
        ConditionType.INTERRUPTED: Said(bool(cut), "TurnsInterrupted" if cut else "NotInterrupted", _names(cut)),
        ConditionType.LOST: Said(bool(lost), "AgentsLost" if lost else "NotLost", _names(lost)),
        ConditionType.LEDGER_REPLICATED: Said(facts.replicated is None, replicated.reason, replicated.message),
    }


def _names(aliases: list[str]) -> str:
    more = f" and {len(aliases) - MAX_NAMES} more" if len(aliases) > MAX_NAMES else ""
    return f"{', '.join(aliases[:MAX_NAMES])}{more}"


def count_agents(agents: Iterable[AgentState], declared: int) -> AgentCounts:
    """How many are where; an entry whose Agent is not there yet counts into the total alone."""
    counts: dict[str, Any] = {}
    for agent in agents:
        field = PHASES[agent.state].value.lower()
        counts[field] = counts.get(field, 0) + 1
    total = max(declared, sum(counts.values()))
    return AgentCounts(progress=f"{counts.get('done', 0)}/{total}", total=total, **counts)
