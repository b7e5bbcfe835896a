"""Whom a ledger event concerns: the keys to look at again."""

from collections.abc import Callable, Sequence

from alineod.domain import events as ev
from alineod.domain.events import LedgerState, Row
from alineod.domain.state import State
from alineod.kube.objects import AGENTS, SWARMS, Ref, read_ref
from alineod.kube.store import Store

# Events after which the swarm and those of its agents that wait have to look again.
FAR_REACHING = (ev.AgentSpawned, ev.AgentProvisioned, ev.AgentStateChanged, ev.HandleSettled, ev.AgentEnded)


def compute_wakes(rows: Sequence[Row], state: State) -> set[Ref]:
    """The keys of the agents and swarms that these events concern."""
    wakes: set[Ref] = set()
    for row in rows:
        if row.agent is not None and not isinstance(row.body, ev.HarnessEvent):
            wakes.add(_ref(row.agent))
        if isinstance(row.body, FAR_REACHING):
            wakes.update(_ref(a.key) for a in state.agents.values() if a.run == row.run and _waits(a.state))
        if isinstance(row.body, (ev.RunStarted, ev.RunDeleted, *FAR_REACHING)):
            namespace, name = row.run.split("/")
            wakes.add(Ref(SWARMS, namespace, name))
        if isinstance(row.body, ev.RunStarted):
            wakes.update(_ref(a.key) for a in state.agents.values() if a.run == row.run)
    return wakes


def _waits(state: LedgerState) -> bool:
    return state is LedgerState.SPAWNING


def _ref(key: str) -> Ref:
    namespace, name = key.split("/")
    return Ref(AGENTS, namespace, name)


def wake_all(rows: Sequence[Row], state: State, store: Store, wake: Callable[[Ref], None]) -> None:
    """Wake everyone these events concern."""
    for ref in compute_wakes(rows, state) | find_early(rows, store):
        wake(ref)


def find_early(rows: Sequence[Row], store: Store) -> set[Ref]:
    """Agents that were applied before their swarm: the ledger does not know them, and they wait for its start."""
    starts = [row.run.split("/") for row in rows if isinstance(row.body, ev.RunStarted)]
    return {read_ref(AGENTS, agent) for start in starts for agent in store.find_by_swarm(AGENTS, *start)}
