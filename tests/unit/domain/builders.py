"""Facts and states for tables: a plain case, and what a row changes of it."""

from dataclasses import replace
from typing import Any

from alineod.crd.agent import AgentSpec
from alineod.crd.swarm import SupervisionSpec
from alineod.domain.events import LedgerState
from alineod.domain.facts import AgentFacts, AgentObject, PodFacts, PodPhase, RunFacts
from alineod.domain.state import AgentState, Pod, RunState, Turn
from alineod.wire.turns import BridgeState, TurnState

KEY, RUN, UID, POD_UID, NOW = "research/survey-lead", "research/survey", "uid-a", "uid-p", 1000.0


def build_spec(**change: Any) -> AgentSpec:
    raw = {
        "swarm": "survey",
        "alias": "lead",
        "prompt": "plan",
        "checkpoint": True,
        "harness": {"model": {"provider": "openai", "id": "m"}},
    }
    return AgentSpec.parse(raw | change)


def build_object(**change: Any) -> AgentObject:
    fields: dict[str, Any] = {"uid": UID, "generation": 1, "swarm": "survey", "alias": "lead", "spec": build_spec()}
    return AgentObject(**(fields | change))


def build_run(**change: Any) -> RunFacts:
    fields: dict[str, Any] = {"exists": True, "ours": True, "state": build_run_state(), "uid": "uid-s"}
    return RunFacts(**(fields | change))


def build_run_state(**change: Any) -> RunState:
    fields: dict[str, Any] = {
        "key": RUN, "uid": "uid-s", "cluster_uid": "c", "instance": "default", "started_at": 1.0,
        "started_seq": 1, "resumed_seq": 1,
    }  # fmt: skip
    return RunState(**(fields | change))


def build_ledger(state: LedgerState = LedgerState.DONE, **change: Any) -> AgentState:
    """An agent with a pod that has ended its first turn cleanly."""
    fields: dict[str, Any] = {
        "key": KEY, "run": RUN, "uid": UID, "alias": "lead", "parent": None, "spec": build_spec().dump(),
        "spawned_at": 10.0, "spawned_seq": 2, "claimed_seq": 2, "state": state,
        "pod": Pod("survey-lead-1", POD_UID, 1, None), "incarnation": 1,
        "turn": build_turn(state=TurnState.CLEAN), "last_clean_turn": 1,
    }  # fmt: skip
    return AgentState(**(fields | change))


def build_turn(number: int = 1, **change: Any) -> Turn:
    fields: dict[str, Any] = {
        "number": number, "id": f"{UID}-{number}", "prompt": "plan", "incarnation": 1, "started_at": 20.0,
    }  # fmt: skip
    return Turn(**(fields | change))


def build_pod(**change: Any) -> PodFacts:
    fields: dict[str, Any] = {
        "name": "survey-lead-1", "uid": POD_UID, "owner_uid": UID, "incarnation": 1, "phase": PodPhase.RUNNING,
        "created_at": 990.0, "node": "n1", "ip": "10.0.0.1", "agent_running": True, "bridge_ready": True,
    }  # fmt: skip
    return PodFacts(**(fields | change))


def build_bridge(**change: Any) -> BridgeState:
    fields: dict[str, Any] = {"agent": KEY, "incarnation": 1, "boot": "b", "ready": True}
    return BridgeState(**(fields | change))


def build_facts(**change: Any) -> AgentFacts:
    """An agent at rest: done, its pod up, its bridge ready."""
    fields: dict[str, Any] = {
        "now": NOW, "key": KEY, "epoch": 1, "object": build_object(), "invalid": None, "run": build_run(),
        "ledger": build_ledger(), "pod": build_pod(), "bridge": build_bridge(),
    }  # fmt: skip
    return AgentFacts(**(fields | change))


def running(**change: Any) -> AgentState:
    """An agent in the middle of its first turn."""
    return build_ledger(LedgerState.RUNNING, turn=build_turn(), last_clean_turn=None, **change)


def with_supervision(facts: AgentFacts, **policy: Any) -> AgentFacts:
    return replace(facts, run=replace(facts.run, supervision=SupervisionSpec.parse(policy)))
