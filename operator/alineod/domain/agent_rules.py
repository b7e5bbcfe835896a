"""What to do about one agent: named rules in order; the first that has an answer decides.

The order is the life of an agent: is it there and ours, was it spawned, has it ended, what does it wait for, has it a
sandbox that is any good, does its bridge answer, by which rung did it come back, does a turn run, is one due.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from alineod.domain import gone_rules as gone
from alineod.domain import ladder_rules as ladder
from alineod.domain import life_rules as life
from alineod.domain import sandbox_rules as sandbox
from alineod.domain.actions import Decision
from alineod.domain.facts import AgentFacts

Rule = Callable[[AgentFacts], Decision | None]

GOES_ON: tuple[Rule, ...] = (
    gone.rule_turn_cut,
    ladder.rule_stale_pods,
    sandbox.rule_pod_leaving,
    sandbox.rule_pod_coming,
    sandbox.rule_probe,
    ladder.rule_resumed,
    ladder.rule_reattach,
    sandbox.rule_turn_running,
)
"""What concerns a turn that runs, whatever keeps anything new from beginning."""


def hold_back(rule: Rule) -> Rule:
    """`rule` holds up what would begin; a turn that runs goes on, and its end is recorded."""

    def hold(facts: AgentFacts) -> Decision | None:
        held = rule(facts)
        if held is None or facts.ledger is None or not facts.ledger.turn_running:
            return held
        going = find_answer(GOES_ON, facts)
        return held if going is None else replace(going, standing=held.standing)

    return hold


def find_answer(rules: Sequence[Rule], facts: AgentFacts) -> Decision | None:
    """The answer of the first rule that has one."""
    return next((decision for rule in rules if (decision := rule(facts)) is not None), None)


RULES: tuple[Rule, ...] = (
    life.rule_not_ours,
    life.rule_deleted,
    hold_back(life.rule_invalid),
    life.rule_no_swarm,
    hold_back(life.rule_leaving),
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
    return find_answer(RULES, facts) or sandbox.rule_idle(facts)
