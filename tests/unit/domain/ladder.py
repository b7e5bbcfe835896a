"""Sandboxes that went, and readers of decisions, for the tests of the ladder's rules."""

from dataclasses import replace
from typing import Any

from alineod.domain import events as ev
from alineod.domain.actions import Action, Append, Decision
from alineod.domain.causes import End, EndKind
from alineod.domain.ends import MAX_CRASHES, NODE_LOST_AFTER
from alineod.domain.events import LedgerState
from alineod.domain.facts import Crash, PodPhase, Trouble
from alineod.domain.state import AgentState, Pod
from tests.unit.domain.builders import (
    NOW,
    POD_UID,
    build_ledger,
    build_pod,
    build_spec,
)  # fmt: skip

EVICTED = End(EndKind.OWN_FAULT, "Evicted", 'Usage of EmptyDir volume "home" exceeds the limit "5Mi"')
DRAINED = End(EndKind.DISRUPTION, "EvictionByEvictionAPI", "evicting")
CRASH = Crash(True, MAX_CRASHES, Trouble("CrashLoopBackOff", "container agent"))
CRASHING = build_pod(agent_running=False, bridge_ready=False, crash=CRASH)
SILENT = build_pod(bridge_ready=True, node="n2", node_lost_since=NOW - NODE_LOST_AFTER, unready_since=NOW - 60)
JUST_SILENT = replace(SILENT, node_lost_since=NOW - 1)
WAITS = build_spec(sandbox={"onNodeLost": "Wait"})
LEAVING = build_pod(deleting=True, deletes_at=NOW + 600, grace=650, end=DRAINED)
OVER = build_pod(phase=PodPhase.FAILED, agent_running=False, end=EVICTED)


def bodies(decision: Decision) -> list[ev.AnyBody]:
    return [e.body for action in decision.actions if isinstance(action, Append) for e in action.entries]


def has(decision: Decision, kind: type[Action]) -> bool:
    return any(isinstance(action, kind) for action in decision.actions)


def build_held(**change: Any) -> Pod:
    return replace(Pod("survey-lead-1", POD_UID, 1, None), **change)


def build_blocked(reason: str, **change: Any) -> AgentState:
    return build_ledger(LedgerState.BLOCKED, reason=reason, message="why", state_since=NOW - 5, **change)
