"""What a process whose term is over does by itself: it writes over nothing newer, deletes nothing, answers nobody."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from alineod.crd.parse import parse_agent
from alineod.domain.actions import AdoptAgent, DeleteAgent, DeletePod
from alineod.errors import Conflict, NotFound, Unavailable
from alineod.kube.objects import AGENTS, PODS, SWARMS, Json, Ref, Resource
from alineod.podspec import names
from alineod.reconcile.act import apply_owner, delete_object
from alineod.reconcile.gather import gather_agent
from alineod.reconcile.passes import write_status
from alineod.reconcile.removal import delete_archives, delete_expired
from tests.support.memory_bucket import MemoryBucket
from tests.unit.reconcile.simulation import NAMESPACE, Simulation
from tests.unit.reconcile.test_crash_points import SWARM

LEAD = f"{NAMESPACE}/survey-lead"


async def _settled(bucket: MemoryBucket | None = None) -> Simulation:
    simulation = Simulation(bucket=bucket)
    simulation.gateway.write(SWARMS, SWARM)
    await simulation.settle()
    return simulation


async def test_a_status_is_not_written_over_a_newer_object() -> None:
    simulation = await _settled()
    seen = parse_agent(simulation.read(AGENTS, "survey-lead"))
    newer = await simulation.gateway.patch_labels(AGENTS, NAMESPACE, "survey-lead", {"touched": "yes"})
    with pytest.raises(Conflict):
        await write_status(simulation.world, AGENTS, seen, {"phase": "Running"})
    assert simulation.read(AGENTS, "survey-lead") == newer


async def test_an_owner_is_not_written_over_a_newer_object() -> None:
    simulation = await _settled()
    seen = simulation.read(AGENTS, "survey-lead")["metadata"]
    newer = await simulation.gateway.patch_labels(AGENTS, NAMESPACE, "survey-lead", {"touched": "yes"})
    swarm = simulation.world.parsed.swarm(simulation.read(SWARMS, "survey"))
    with pytest.raises(Conflict):
        await apply_owner(simulation.world, swarm, AdoptAgent(seen["name"], seen["uid"], seen["resourceVersion"]))
    assert simulation.read(AGENTS, "survey-lead") == newer


@pytest.mark.parametrize("changed", ["resourceVersion", "uid"])
@pytest.mark.parametrize(
    ("kind", "name", "build"),
    [(PODS, "survey-lead-1", partial(DeletePod, grace=60)), (AGENTS, "survey-lead", DeleteAgent)],
    ids=["a pod", "an Agent"],
)
async def test_nothing_but_what_was_seen_is_deleted(
    kind: Resource, name: str, build: Callable[[str, str, str], DeletePod | DeleteAgent], changed: str
) -> None:
    simulation = await _settled()
    now = simulation.read(kind, name)
    seen = now["metadata"] | {changed: "1"}
    with pytest.raises(Conflict):
        await delete_object(simulation.world, kind, LEAD, build(name, seen["uid"], seen["resourceVersion"]))
    assert simulation.read(kind, name) == now
    await delete_object(
        simulation.world, kind, LEAD, build(name, now["metadata"]["uid"], now["metadata"]["resourceVersion"])
    )
    await simulation.settle()
    with pytest.raises(NotFound):
        simulation.read(kind, name)


async def test_a_pod_of_a_later_epoch_is_not_called_stale() -> None:
    simulation = await _settled()
    for epoch, stale in ((1, ["survey-lead-9"]), (2, [])):
        simulation.store.put(PODS, _build_pod(simulation, epoch))
        facts, _ = await gather_agent(simulation.world, LEAD)
        assert [pod.name for pod in facts.stale_pods] == stale


def _build_pod(simulation: Simulation, epoch: int) -> Json:
    made = simulation.gateway.objects.read(Ref(PODS, NAMESPACE, "survey-lead-1"))
    labels = made["metadata"]["labels"] | {names.INCARNATION: "9"}
    marks = made["metadata"]["annotations"] | {names.EPOCH: str(epoch)}
    metadata = {"name": "survey-lead-9", "uid": "later", "resourceVersion": str(1000 + epoch)}
    metadata |= {"labels": labels, "annotations": marks}
    return {**made, "metadata": made["metadata"] | metadata}


async def test_nothing_is_removed_from_the_bucket_after_the_term() -> None:
    bucket = MemoryBucket()
    simulation = await _settled(bucket)
    keys = [f"default/checkpoints/{NAMESPACE}/survey-lead/{turn:06d}-1.tar.zst" for turn in range(1, 4)]
    for key in keys:
        bucket.put(key, b"archive")
    over = replace(simulation.world, remaining=lambda: 0.0)
    simulation.clock.advance(timedelta(days=1).total_seconds())
    for remove in (delete_expired(over, LEAD), delete_archives(over, [LEAD])):
        with pytest.raises(Unavailable) as caught:
            await remove
        assert caught.value.reason == "LeaseLost"
    assert [stored.key for stored in bucket.list("")] == keys


async def test_a_term_that_ends_while_archives_go_leaves_the_rest() -> None:
    bucket = MemoryBucket()
    simulation = await _settled(bucket)
    keys = [f"default/checkpoints/{NAMESPACE}/survey-lead/{turn:06d}-1.tar.zst" for turn in range(1, 4)]
    for key in keys:
        bucket.put(key, b"archive")
    ends = replace(simulation.world, remaining=lambda: float(len(list(bucket.list(""))) - 2))
    with pytest.raises(Unavailable):
        await delete_archives(ends, [LEAD])
    assert [stored.key for stored in bucket.list("")] == keys[1:]
