"""What the ledger's events and states add to the metrics."""

import asyncio
from collections import Counter
from collections.abc import Sequence

from alineod.clock import Clock
from alineod.domain import events as ev
from alineod.domain.events import LedgerState, Row, Rung
from alineod.domain.facts import PodPhase
from alineod.domain.state import AgentState
from alineod.domain.status import PHASES
from alineod.kube.objects import PODS, Ref, read_uid
from alineod.ledger.port import Ledger
from alineod.metrics import Metrics
from alineod.reconcile.places import find_holders
from alineod.reconcile.world import World

PERIOD = 5.0  # s
RELEASED, OTHER = "released", "Other"
REASONS = frozenset((
    # of a pod or a container, in the words of Kubernetes
    "Completed", "DeletionByPodGC", "DeletionByTaintManager", "Error", "Evicted", "EvictionByEvictionAPI",
    "NodeShutdown", "OOMKilled", "PreemptionByScheduler", "Terminated", "TerminationByKubelet",
    # ours
    "BridgeTokenLost", "ContainerEnded", "ContainerKilled", "ContainerRestarted", "Deleted", "EntryRemoved", "GivenUp",
    "HarnessFailed", "HarnessStopped", "JournalLost", "NodeLost", "PodEnded", "PodGone", "Replaced", "RestoreFailed",
))  # fmt: skip
"""Why a turn is cut off, as far as it is counted by name: a cluster may have any word of its own."""


def count_rows(rows: Sequence[Row], metrics: Metrics) -> None:
    """Count which rung held, and what came to an end."""
    for row in rows:
        match row.body:
            case ev.AgentRestored() as body:
                metrics.count_return(str(body.rung))
                if body.rung is Rung.RESTORE and body.checkpoint_turn is None:
                    metrics.count_blank_return()
            case ev.AgentEnded() as body:
                metrics.count_end(str(body.outcome))
            case ev.AgentReleased():
                metrics.count_end(RELEASED)
            case ev.AgentTurnInterrupted() as body:
                metrics.count_interruption(body.reason if body.reason in REASONS else OTHER)
            case _:
                pass


def observe_ledger(ledger: Ledger, clock: Clock, metrics: Metrics) -> None:
    """Show how far the ledger is, as often as someone asks."""
    metrics.observe_ledger(
        committed=lambda: ledger.replication.committed_seq,
        acknowledged=lambda: ledger.replication.acknowledged_seq,
        lag=lambda: ledger.replication.compute_lag(clock.monotonic()),
        failing=lambda: ledger.replication.compute_failing(clock.monotonic()),
    )


async def count_states(world: World, metrics: Metrics) -> None:
    """Keep the gauges of agents, until cancelled."""
    while True:
        show_states(world, metrics)
        await asyncio.sleep(PERIOD)


def show_states(world: World, metrics: Metrics) -> None:
    """Show how many agents are in which phase, and how many are being brought back."""
    state = world.ledger.state
    live = [a for a in state.agents.values() if a.run in state.runs and not state.runs[a.run].deleted]
    metrics.set_agents(dict(Counter(str(PHASES[agent.state]) for agent in live)))
    in_flight = find_holders(world)
    waiting = sum(_is_away(world, agent) and agent.key not in in_flight for agent in live)
    metrics.set_restores(len(in_flight), waiting)


def _is_away(world: World, agent: AgentState) -> bool:
    """Whether it is to come back by Restore: its sandbox is gone, or is the next one and not up yet."""
    if agent.pod is None or agent.closed or agent.state is LedgerState.BLOCKED:
        return False
    if agent.is_coming_back:
        return True
    pod = world.store.get(Ref(PODS, agent.key.split("/")[0], agent.pod.name))
    over = (PodPhase.FAILED, PodPhase.SUCCEEDED)
    return pod is None or read_uid(pod) != agent.pod.uid or (pod.get("status") or {}).get("phase") in over
