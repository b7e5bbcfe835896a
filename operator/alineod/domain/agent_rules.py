"""What to do about one agent: named rules in order; the first that has an answer decides.

The order is the life of an agent: is it there and ours, was it spawned, has it ended, what does it wait for, has it a
sandbox that is any good, does its bridge answer, by which rung did it come back, does a turn run, is one due.
"""

from collections.abc import Callable

from alineod.domain import gone_rules as gone
from alineod.domain import ladder_rules as ladder
from alineod.domain import life_rules as life
from alineod.domain import sandbox_rules as sandbox
from alineod.domain.actions import Decision
from alineod.domain.facts import AgentFacts

Rule = Callable[[AgentFacts], Decision | None]

RULES: tuple[Rule, ...] = (
    life.rule_not_ours,
    life.rule_deleted,
    life.rule_invalid,
    life.rule_no_swarm,
    life.rule_leaving,
    life.rule_namespace_going,
    life.rule_spawn,
    ladder.rule_lost_again,
    life.rule_closed,
    life.rule_wait,
    ladder.rule_pod_made,
    ladder.rule_released,
    gone.rule_sandbox_gone,
    ladder.rule_stale_pods,
    sandbox.rule_pod_leaving,
    ladder.rule_restored,
    sandbox.rule_pod_coming,
    sandbox.rule_paused,
    sandbox.rule_probe,
    ladder.rule_resumed,
    ladder.rule_reattach,
    sandbox.rule_turn_running,
    sandbox.rule_turn_due,
)


def decide_agent(facts: AgentFacts) -> Decision:
    """The first rule's answer; where no rule has one, the agent stands where it should."""
    for rule in RULES:
        if (decision := rule(facts)) is not None:
            return decision
    return sandbox.rule_idle(facts)
