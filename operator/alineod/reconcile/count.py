"""What the ledger's events and states add to the metrics."""

import asyncio
from collections import Counter
from collections.abc import Sequence

from alineod.clock import Clock
from alineod.domain import events as ev
from alineod.domain.events import Row
from alineod.domain.status import PHASES
from alineod.ledger.port import Ledger
from alineod.metrics import Metrics

PERIOD = 5.0  # s


def count_rows(rows: Sequence[Row], metrics: Metrics) -> None:
    """Count which rung held."""
    for row in rows:
        if isinstance(row.body, ev.AgentRestored):
            metrics.count_return(str(row.body.rung))


def observe_ledger(ledger: Ledger, clock: Clock, metrics: Metrics) -> None:
    """Show how far the ledger is, as often as someone asks."""
    metrics.observe_ledger(
        committed=lambda: ledger.replication.committed_seq,
        acknowledged=lambda: ledger.replication.acknowledged_seq,
        lag=lambda: ledger.replication.compute_lag(clock.monotonic()),
        failing=lambda: ledger.replication.compute_failing(clock.monotonic()),
    )


async def count_states(ledger: Ledger, metrics: Metrics) -> None:
    """Keep the gauge of agents by phase, until cancelled."""
    while True:
        state = ledger.state
        live = (a for a in state.agents.values() if a.run in state.runs and not state.runs[a.run].deleted)
        phases = Counter(str(PHASES[agent.state]) for agent in live)
        metrics.set_agents(dict(phases))
        await asyncio.sleep(PERIOD)
