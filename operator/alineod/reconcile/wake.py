"""Whom a ledger event concerns: the keys to look at again."""

from collections.abc import Callable, Mapping, Sequence

from alineod.domain import events as ev
from alineod.domain.events import LedgerState, Row
from alineod.domain.state import AgentState, State
from alineod.kube.objects import AGENTS, SWARMS, Ref, build_ref, read_ref
from alineod.kube.store import Store

# Events after which the swarm and those of its agents that wait have to look again.
FAR_REACHING = (ev.AgentSpawned, ev.AgentProvisioned, ev.AgentStateChanged, ev.HandleSettled, ev.AgentEnded)


def compute_wakes(rows: Sequence[Row], state: State) -> set[Ref]:
    """The keys of the agents and swarms that these events concern."""
    wakes: set[Ref] = set()
    starts, news = set[str](), dict[str, set[str]]()
    for row in rows:
        if row.agent is not None and not isinstance(row.body, ev.HarnessEvent):
            wakes.add(build_ref(AGENTS, row.agent))
        if isinstance(row.body, FAR_REACHING) and row.agent is not None and row.agent in state.agents:
            news.setdefault(row.run, set()).add(state.agents[row.agent].alias)
        if isinstance(row.body, (ev.RunStarted, ev.RunDeleted, *FAR_REACHING)):
            wakes.add(build_ref(SWARMS, row.run))
        if isinstance(row.body, ev.RunStarted):
            starts.add(row.run)
    if starts or news:
        wakes.update(
            build_ref(AGENTS, a.key) for a in state.agents.values() if a.run in starts or _waits(a, news.get(a.run))
        )
    return wakes


def _waits(agent: AgentState, news: set[str] | None) -> bool:
    """Whether it is held by one of these agents of its run."""
    if not news or agent.state not in (LedgerState.SPAWNING, LedgerState.LOST):
        return False
    wait = agent.spec.get("waitFor") or ()
    named = wait.get("agents") or () if isinstance(wait, Mapping) else wait
    return agent.spec.get("parent") in news or not news.isdisjoint(named)


def wake_all(rows: Sequence[Row], state: State, store: Store, wake: Callable[[Ref], None]) -> None:
    """Wake everyone these events concern."""
    for ref in compute_wakes(rows, state) | find_early(rows, store):
        wake(ref)


def find_counting(rows: Sequence[Row]) -> set[Ref]:
    """The swarms whose status counts these events; that can wait for a while."""
    return {build_ref(SWARMS, run) for run in {row.run for row in rows}}


def find_early(rows: Sequence[Row], store: Store) -> set[Ref]:
    """Agents that were applied before their swarm: the ledger does not know them, and they wait for its start."""
    starts = [row.run.split("/") for row in rows if isinstance(row.body, ev.RunStarted)]
    return {read_ref(AGENTS, agent) for start in starts for agent in store.find_by_swarm(AGENTS, *start)}
