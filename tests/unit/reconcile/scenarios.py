"""Every way back: what goes wrong in a small swarm at work, from its first moment until all is well again.

The swarm has one agent of each kind: `lead` is done and was saved, `left` is in the middle of a turn with a prompt
waiting behind it, `gather` waits for both. It must not know at which call the operator dies meanwhile.
"""

import hashlib
from collections.abc import Awaitable, Callable, Mapping

from alineod.domain.facts import PodFacts
from alineod.errors import Unavailable
from alineod.kube.objects import SWARMS, Json
from alineod.reconcile.prompts import queue_prompt
from tests.support.memory_bucket import MemoryBucket
from tests.unit.reconcile.simulation import NAMESPACE, Died, Simulation
from tests.unit.reconcile.virtual_time import FakeClock

Scenario = Callable[[Simulation], Awaitable[None]]
FOREVER = float("inf")
LONG = 600.0  # s, longer than anything waits that is not held by another agent
LEAD, LEFT, GATHER = "survey-lead", "survey-left", "survey-gather"
ZOMBIE = "said by a sandbox that has no say any more"
SWARM: Json = {
    "metadata": {"name": "survey", "namespace": NAMESPACE},
    "spec": {
        "defaults": {"harness": {"model": {"provider": "openai", "id": "m"}}, "checkpoint": True},
        "agents": [
            {"name": "lead", "prompt": "plan"},
            {"name": "left", "parent": "lead", "prompt": "HANG over it"},
            {
                "name": "gather",
                "parent": "lead",
                "waitFor": {"agents": ["lead", "left"], "mode": "Settled", "deadline": "1h"},
                "prompt": "report",
            },
        ],
    },
}


async def begin(clock: FakeClock, supervision: Json | None = None) -> Simulation:
    """The swarm at work."""
    simulation = Simulation(bucket=MemoryBucket(clock), clock=clock)
    simulation.kubelets.checkpointers = simulation.kubelets.paced = True
    simulation.gateway.write(SWARMS, {**SWARM, "spec": {**SWARM["spec"], "supervision": supervision or {}}})
    await simulation.settle()
    await prompt(simulation, LEFT, "after that")
    await simulation.settle()
    return simulation


async def prompt(simulation: Simulation, agent: str, text: str) -> None:
    """As a person does who repeats the call with the same key until it is answered."""
    while True:
        try:
            await queue_prompt(simulation.door, f"{NAMESPACE}/{agent}", text, text)
        except (Died, Unavailable):
            await simulation.settle()
        else:
            return


async def recover(simulation: Simulation) -> None:
    """Whatever still runs comes to its end."""
    await simulation.settle(LONG)
    finish(simulation, LEFT)
    await simulation.settle(LONG)


async def end(simulation: Simulation) -> None:
    """A last prompt is answered."""
    await prompt(simulation, LEAD, "what was it?")
    await simulation.settle(FOREVER)


def find_pods(simulation: Simulation, agent: str) -> list[PodFacts]:
    return [pod for _, pod in simulation.kubelets.find(agent)]


def finish(simulation: Simulation, agent: str, text: str = "done at last") -> None:
    """The turn that hangs ends well."""
    for pod in find_pods(simulation, agent):
        if pod.uid in simulation.sandboxes.pods:
            simulation.sandboxes.finish(pod, text)


async def _container_killed(simulation: Simulation) -> None:
    simulation.kubelets.kill(LEFT)


async def _container_crashed(simulation: Simulation) -> None:
    simulation.kubelets.kill(LEFT, exit_code=1)


async def _out_of_memory(simulation: Simulation) -> None:
    simulation.kubelets.kill(LEFT, "OOMKilled")


async def _again_and_again_out_of_memory(simulation: Simulation) -> None:
    """Until it is held after three in a row, and somebody decides."""
    for number in range(4):
        simulation.kubelets.kill(LEFT, "OOMKilled")
        await simulation.settle(FOREVER)
        await prompt(simulation, LEFT, f"HANG once more {number}")
        await simulation.settle(FOREVER)


async def _bridge_hung(simulation: Simulation) -> None:
    simulation.kubelets.hang(LEFT)
    simulation.kubelets.hang(LEAD)


async def _pod_vanished(simulation: Simulation) -> None:
    simulation.kubelets.vanish(LEFT)
    simulation.kubelets.vanish(LEAD)


async def _pod_deleted(simulation: Simulation) -> None:
    simulation.kubelets.delete(LEFT)


async def _node_drained(simulation: Simulation) -> None:
    for agent in (LEAD, LEFT):
        simulation.kubelets.delete(agent, "EvictionByEvictionAPI")


async def _pod_force_deleted(simulation: Simulation) -> None:
    """What ran in it runs on for a while."""
    former = find_pods(simulation, LEFT)
    simulation.kubelets.force_delete(LEFT)
    await simulation.settle()
    for pod in former:
        simulation.sandboxes.finish(pod, ZOMBIE)
    await simulation.run_for(5)
    simulation.kubelets.reap()


async def _evicted_for_its_node(simulation: Simulation) -> None:
    simulation.kubelets.evict(LEFT, "The node was low on resource: memory.")


async def _evicted_for_its_files(simulation: Simulation) -> None:
    simulation.kubelets.evict(LEFT, 'Usage of EmptyDir volume "home" exceeds the limit "1Gi".')


async def _node_lost(simulation: Simulation) -> None:
    """And back after a while, with the old sandbox still talking."""
    former = find_pods(simulation, LEFT)
    node = former[0].node
    simulation.kubelets.cut_node(node)
    await simulation.run_for(90)
    simulation.kubelets.taint_node(node)
    await simulation.run_for(30)
    simulation.kubelets.heal_node(node)
    for pod in former:
        simulation.sandboxes.finish(pod, ZOMBIE)


async def _node_removed(simulation: Simulation) -> None:
    simulation.kubelets.remove_node(find_pods(simulation, LEFT)[0].node)


async def _node_cut_for_a_moment(simulation: Simulation) -> None:
    node = find_pods(simulation, LEFT)[0].node
    simulation.kubelets.cut_node(node)
    await simulation.run_for(20)
    finish(simulation, LEFT)
    simulation.kubelets.heal_node(node)


async def _cluster_rebooted(simulation: Simulation) -> None:
    await simulation.leave()
    simulation.kubelets.kill(LEAD)
    simulation.kubelets.kill(LEFT)
    await simulation.replace_leader()


async def _bucket_away_at_a_restore(simulation: Simulation) -> None:
    _take_bucket(simulation, away=True)
    simulation.kubelets.vanish(LEAD)
    await simulation.run_for(30)
    _take_bucket(simulation, away=False)


async def _bucket_away_at_an_upload(simulation: Simulation) -> None:
    _take_bucket(simulation, away=True)
    finish(simulation, LEFT)
    await simulation.run_for(30)
    _take_bucket(simulation, away=False)


def _take_bucket(simulation: Simulation, *, away: bool) -> None:
    if simulation.bucket is not None:
        simulation.bucket.failure = Unavailable("BucketUnreachable", "the bucket does not answer") if away else None


async def _newest_damaged(simulation: Simulation) -> None:
    await prompt(simulation, LEAD, "a second turn")
    await simulation.settle()
    _damage(simulation, newest=1)
    simulation.kubelets.vanish(LEAD)


async def _all_damaged(simulation: Simulation) -> None:
    _damage(simulation, newest=9)
    simulation.kubelets.vanish(LEAD)


def _damage(simulation: Simulation, newest: int) -> None:
    bucket = simulation.bucket
    if bucket is not None:
        for stored in sorted(bucket.list(""), key=lambda stored: stored.key)[-newest:]:
            if LEAD in stored.key:
                bucket.put(stored.key, hashlib.sha256(stored.key.encode()).digest())


async def _operator_away(simulation: Simulation) -> None:
    """Agents work on: a turn ends, a sandbox goes, a container is restarted."""
    await simulation.leave()
    finish(simulation, LEFT)
    await simulation.settle()
    simulation.kubelets.kill(LEFT)
    simulation.kubelets.vanish(LEAD)
    await simulation.run_for(60)
    await simulation.replace_leader()


async def _api_away(simulation: Simulation) -> None:
    simulation.lose_api()
    simulation.kubelets.vanish(LEAD)
    finish(simulation, LEFT)
    await simulation.run_for(60)
    simulation.mend_api()


async def _nothing_acknowledged(simulation: Simulation) -> None:
    """What is appended stands, and nobody may say so yet."""
    simulation.ledger.fail(Unavailable("BucketUnreachable", "the bucket does not answer"), commits=True)
    finish(simulation, LEFT)
    await simulation.run_for(10)
    simulation.ledger.mend()


async def _never_up_again(simulation: Simulation) -> None:
    """Its container ends as soon as it begins, in one sandbox after another, until a later term tries again."""
    simulation.kubelets.broken.add(LEFT)
    simulation.kubelets.vanish(LEFT)
    await simulation.settle(FOREVER)
    simulation.kubelets.broken.clear()
    await simulation.replace_leader()


async def _deadline_while_away(simulation: Simulation) -> None:
    await simulation.leave()
    await simulation.run_for(4000)
    await simulation.replace_leader()


SCENARIOS: Mapping[str, Scenario] = {
    name.removeprefix("_").replace("_", " "): scenario
    for name, scenario in list(globals().items())
    if name.startswith("_")
    and getattr(scenario, "__module__", "") == __name__
    and name not in ("_damage", "_take_bucket")
}
