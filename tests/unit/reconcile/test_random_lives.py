"""Random lives of a small swarm: whatever people, the cluster and the operator do, after each step the same is true."""

import asyncio
import contextlib
import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from alineod.domain.fold import fold
from alineod.domain.state import State
from alineod.errors import Conflict, NotFound, Unavailable
from alineod.kube.objects import AGENTS, SWARMS, Json, Ref
from alineod.reconcile.prompts import queue_prompt
from tests.support.memory_bucket import MemoryBucket
from tests.unit.reconcile.invariants import check_model, check_rest, check_rows
from tests.unit.reconcile.simulation import NAMESPACE, Died, Simulation
from tests.unit.reconcile.virtual_time import FakeClock, VirtualLoop

LIVES = int(os.environ.get("ALINEO_EXAMPLES", "25"))
STEPS = 12
ROUNDS = 5000
LONG = 3700.0  # s
NAMES = st.sampled_from(("a", "b", "c"))
ENTRIES: tuple[Json, ...] = (
    {"name": "a", "prompt": "p"},
    {"name": "b", "parent": "a", "prompt": "HANG"},
    {"name": "c", "parent": "a", "waitFor": ["b"], "prompt": "p"},
    {"name": "d", "parent": "b", "prompt": "p"},
)
EVICTIONS = st.sampled_from(("The node was low on resource: memory.", "usage exceeds the limit"))


class Lives(RuleBasedStateMachine):
    """One life: each step is something that happens, and what the swarm makes of it in a while."""

    def __init__(self) -> None:
        super().__init__()
        clock = FakeClock()
        self.runner = asyncio.Runner(loop_factory=lambda: VirtualLoop(clock))
        self.simulation = Simulation(bucket=MemoryBucket(clock), clock=clock)
        self.simulation.kubelets.checkpointers = self.simulation.kubelets.paced = True
        self.seen, self.state, self.prompts = 0, State(), 0

    @initialize(policy=st.sampled_from(("Settle", "Ask", "Retry")), entries=st.integers(1, 3))
    def begin(self, policy: str, entries: int) -> None:
        self.policy = policy
        self._write(entries)
        self._pass_time(5)

    def _write(self, entries: int) -> None:
        model = {"harness": {"model": {"provider": "openai", "id": "m"}}, "checkpoint": True}
        spec = {"defaults": model, "agents": ENTRIES[:entries], "supervision": {"onInterruption": self.policy}}
        self.entries = entries
        self.simulation.gateway.write(SWARMS, {"metadata": {"name": "s", "namespace": NAMESPACE}, "spec": spec})

    def _pass_time(self, seconds: float) -> None:
        self.runner.run(self.simulation.run_for(seconds))

    @precondition(lambda self: not self.simulation.away)
    @rule(name=NAMES, text=st.sampled_from(("go on", "HANG", "FAIL")))
    def prompt(self, name: str, text: str) -> None:
        self.prompts += 1
        with contextlib.suppress(Conflict, NotFound, Unavailable, Died):
            self.runner.run(queue_prompt(self.simulation.door, f"{NAMESPACE}/s-{name}", text, str(self.prompts)))

    @rule(entries=st.integers(1, 4))
    def change_entries(self, entries: int) -> None:
        self._write(entries)

    @rule(name=NAMES)
    def delete_agent(self, name: str) -> None:
        ref = Ref(AGENTS, NAMESPACE, f"s-{name}")
        if ref in self.simulation.gateway.objects:
            self.simulation.gateway.remove(ref)

    @rule(name=NAMES)
    def finish_turn(self, name: str) -> None:
        for _, pod in list(self.simulation.kubelets.find(f"s-{name}")):
            if pod.uid in self.simulation.sandboxes.pods:
                self.simulation.sandboxes.finish(pod, f"done by {pod.uid}")

    @rule(name=NAMES, reason=st.sampled_from(("OOMKilled", "Error")), code=st.sampled_from((1, 137)))
    def kill_container(self, name: str, reason: str, code: int) -> None:
        self.simulation.kubelets.kill(f"s-{name}", reason, code)

    @rule(name=NAMES)
    def hang(self, name: str) -> None:
        self.simulation.kubelets.hang(f"s-{name}")

    @rule(name=NAMES)
    def lose_journal(self, name: str) -> None:
        """A bridge that runs on would write it anew from what it knows."""
        for _, pod in self.simulation.kubelets.find(f"s-{name}"):
            if pod.uid in self.simulation.sandboxes.pods:
                self.simulation.sandboxes.pods[pod.uid].forget()
        self.simulation.kubelets.kill(f"s-{name}")

    @rule(name=NAMES, how=st.sampled_from(("vanish", "delete", "force_delete")))
    def remove_pod(self, name: str, how: str) -> None:
        getattr(self.simulation.kubelets, how)(f"s-{name}")

    @rule(name=NAMES, message=EVICTIONS)
    def evict(self, name: str, message: str) -> None:
        self.simulation.kubelets.evict(f"s-{name}", message)

    @precondition(lambda self: all(self.simulation.kubelets.nodes.values()))
    @rule(node=st.sampled_from(("n1", "n2")))
    def cut_node(self, node: str) -> None:
        self.simulation.kubelets.cut_node(node)

    @precondition(lambda self: not all(self.simulation.kubelets.nodes.values()))
    @rule()
    def heal_nodes(self) -> None:
        for node, up in self.simulation.kubelets.nodes.items():
            if not up:
                self.simulation.kubelets.heal_node(node)

    @rule(away=st.booleans())
    def take_bucket(self, away: bool) -> None:
        bucket = self.simulation.bucket
        assert bucket is not None
        bucket.failure = Unavailable("BucketUnreachable", "away") if away else None

    @rule(away=st.booleans())
    def take_api(self, away: bool) -> None:
        if away:
            self.simulation.lose_api()
        else:
            self.simulation.mend_api()

    @rule(changes=st.integers(1, 12))
    def die_soon(self, changes: int) -> None:
        self.simulation.die_after = self.simulation.effects + changes

    @rule()
    def replace_leader(self) -> None:
        self.runner.run(self.simulation.replace_leader())

    @rule()
    def take_leader(self) -> None:
        self.runner.run(self.simulation.leave())

    @rule(seconds=st.sampled_from((1, 30, 100, 700)))
    def wait(self, seconds: int) -> None:
        self._pass_time(seconds)

    @invariant()
    def nothing_is_wrong(self) -> None:
        rows = self.simulation.stored.rows
        check_rows(rows)
        check_model(self.simulation)
        before, self.state = self.state, fold(self.state, rows[self.seen :])
        self.seen = len(rows)
        for key, agent in self.state.agents.items():
            former = before.agents.get(key)
            if former is None:
                continue
            assert agent.incarnation >= former.incarnation
            if former.uid == agent.uid:
                assert agent.usage.input_tokens >= former.usage.input_tokens
                assert (agent.alias, agent.parent) == (former.alias, former.parent)

    def teardown(self) -> None:
        """In the end all is well again, and comes to rest."""
        try:
            self.runner.run(self._mend())
            self.nothing_is_wrong()
            check_rest(self.simulation)
        finally:
            self.runner.close()

    async def _mend(self) -> None:
        simulation = self.simulation
        assert simulation.bucket is not None
        simulation.bucket.failure, simulation.die_after = None, 0
        for node in simulation.kubelets.nodes:
            simulation.kubelets.heal_node(node)
        simulation.kubelets.reap()
        simulation.mend_api()
        if simulation.away:
            await simulation.replace_leader()
        for _ in range(3 * STEPS):
            await simulation.settle(LONG, rounds=ROUNDS)
            running = simulation.kubelets.find_running()
            for pod in running:
                simulation.sandboxes.finish(pod, "done")
            if not running:
                return
        pytest.fail("one turn followed another without end")


Lives.TestCase.settings = settings(
    max_examples=LIVES, stateful_step_count=STEPS, deadline=None, database=None,
    derandomize="ALINEO_EXAMPLES" not in os.environ, suppress_health_check=list(HealthCheck),
)  # fmt: skip
TestLives = Lives.TestCase
