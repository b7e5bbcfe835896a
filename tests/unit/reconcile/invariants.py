"""What is true of a ledger and of a cluster at rest, whatever went wrong before, and what is compared of two lives."""

from collections import Counter
from typing import Any

from alineod.domain import events as ev
from alineod.domain.events import Row, Rung
from alineod.domain.state import Handle
from alineod.kube.objects import AGENTS, PODS
from tests.unit.reconcile.simulation import Simulation

TURN_ENDS = (ev.AgentTurnEnded, ev.AgentTurnFailed, ev.AgentTurnInterrupted)


def check_rows(rows: list[Row]) -> None:
    """Nothing is there twice, and nothing of a sandbox that has no say any more."""
    assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
    _check_once(rows, ev.AgentTurnStarted, "turn")
    _check_once(rows, ev.AgentProvisioned, "incarnation")
    ends = Counter((row.agent, row.body.turn) for row in rows if isinstance(row.body, TURN_ENDS))
    assert set(ends.values()) <= {1}, f"a turn ended twice: {ends}"
    settled = Counter(
        (row.agent, row.body.turn)
        for row in rows
        if isinstance(row.body, ev.HandleSettled) and row.body.turn is not None
    )
    assert set(settled.values()) <= {1}, f"a handle settled twice for a turn: {settled}"
    _check_order(rows)


def _check_once(rows: list[Row], kind: type, field: str) -> None:
    found = Counter((row.agent, getattr(row.body, field)) for row in rows if isinstance(row.body, kind))
    assert set(found.values()) <= {1}, f"{kind.__name__} stands twice: {found}"


def _check_order(rows: list[Row]) -> None:
    """Per agent: incarnations and turns only grow, one turn runs at a time, a former sandbox says nothing."""
    pods, turns, running = dict[str, str](), dict[str, int](), dict[str, int]()
    incarnations: dict[str, int] = {}
    for row in rows:
        agent = row.agent or ""
        match row.body:
            case ev.AgentProvisioned(incarnation=number, uid=uid):
                assert number > incarnations.get(agent, 0)
                incarnations[agent], pods[agent] = number, uid
            case ev.AgentTurnStarted(turn=number):
                assert number > turns.get(agent, 0), f"{agent} was given turn {number} again"
                assert agent not in running, f"{agent} was given turn {number} while {running[agent]} runs"
                turns[agent] = running[agent] = number
            case (
                ev.AgentTurnEnded(turn=number) | ev.AgentTurnFailed(turn=number) | ev.AgentTurnInterrupted(turn=number)
            ):
                assert running.pop(agent, None) == number, f"turn {number} of {agent} ended and did not run"
            case ev.HarnessEvent(incarnation=number, data=data):
                assert number == incarnations.get(agent), f"{agent}: what incarnation {number} said came late"
                assert data.get("pod", pods[agent]) == pods[agent], f"{agent}: a former sandbox was heard"
            case _:
                pass


def check_model(simulation: Simulation) -> None:
    """No prompt reached a model twice: a further attempt is a turn of its own number."""
    starts = Counter(simulation.sandboxes.starts)
    assert set(starts.values()) <= {1}, f"a prompt reached the model twice: {starts}"


def check_rest(simulation: Simulation) -> None:
    """At rest no turn is left open, and a person reads what the ledger says."""
    for key, agent in simulation.ledger.state.agents.items():
        assert not agent.turn_running, f"{key}: turn {agent.turn} has no end"
    for obj in simulation.gateway.read_all(AGENTS):
        agent = simulation.ledger.state.agents[f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"]
        shown = obj["status"].get("turn", {}).get("number")
        assert shown == (agent.turn.number if agent.turn else None)


def summarise(simulation: Simulation) -> dict[str, Any]:
    """What may not depend on when the process died."""
    agents = simulation.ledger.state.agents
    return {
        "agents": {a.alias: (a.state, a.outcome, [m.id for m in a.inbox]) for a in agents.values()},
        "handles": {a.alias: _tell_handle(a.handle) for a in agents.values()},
        "incarnations": {a.alias: a.incarnation for a in agents.values()},
        "turns": {key: _tell_turns(simulation.stored.rows, key) for key in agents},
        "rungs": {key: _tell_rungs(simulation.stored.rows, key) for key in agents},
        "pods": sorted(pod["metadata"]["name"] for pod in simulation.gateway.read_all(PODS)),
        "phases": {obj["metadata"]["name"]: obj["status"]["phase"] for obj in simulation.gateway.read_all(AGENTS)},
        "asked": sorted(prompt.rsplit("\n", 1)[-1] for _, prompt in simulation.sandboxes.asked),
    }


def _tell_handle(handle: Handle) -> tuple[Any, ...]:
    """How it settled, without what the prompt was told of an interruption: that says who had heard of it."""
    return handle.outcome, handle.result.rsplit("\n", 1)[-1], handle.error_kind


def _tell_turns(rows: list[Row], key: str) -> list[tuple[Any, ...]]:
    """Every turn's number, prompt and attempt, and how it ended."""
    starts = {r.body.turn: r.body for r in rows if r.agent == key and isinstance(r.body, ev.AgentTurnStarted)}
    ends = {r.body.turn: type(r.body).__name__ for r in rows if r.agent == key and isinstance(r.body, TURN_ENDS)}
    return [(number, start.prompt, start.attempt, ends.get(number)) for number, start in sorted(starts.items())]


def _tell_rungs(rows: list[Row], key: str) -> list[tuple[Rung, int, int | None]]:
    """Every way back but Reattach, which each new leader finds by itself."""
    bodies = (r.body for r in rows if r.agent == key and isinstance(r.body, ev.AgentRestored))
    return [(b.rung, b.incarnation, b.checkpoint_turn) for b in bodies if b.rung is not Rung.REATTACH]
