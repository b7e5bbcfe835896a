"""What a sandbox is told to start from and what is recorded of its checkpoints, over a bucket in memory."""

import asyncio
import hashlib
import json
import threading
from dataclasses import dataclass, replace
from typing import Any

import pytest

from alineod.bucket.port import StoredObject
from alineod.crd.swarm import SupervisionSpec
from alineod.domain import events as ev
from alineod.domain.causes import End, EndKind
from alineod.domain.state import AgentState
from alineod.domain.turn_ends import build_interruption
from alineod.errors import Refused, Unavailable
from alineod.kube.objects import AGENTS, SWARMS, Json
from alineod.reconcile.archives import (
    SandboxPod,
    build_grant,
    build_start_order,
    find_by_pod,
    record_checkpoint,
)  # fmt: skip
from alineod.reconcile.prompts import queue_prompt
from alineod.reconcile.removal import delete_expired
from alineod.wire.archives import CheckpointReport, SourceKind
from tests.support.memory_bucket import MemoryBucket
from tests.unit.reconcile.simulation import NAMESPACE, FakeClock, Simulation

BASE = "default"
MODEL = {"harness": {"model": {"provider": "openai", "id": "m"}}, "checkpoint": True}


def _swarm(**left: Any) -> Json:
    agents = [{"name": "lead", "prompt": "plan"}, {"name": "left", "parent": "lead", "prompt": "part", **left}]
    return {"metadata": {"name": "survey", "namespace": NAMESPACE}, "spec": {"defaults": MODEL, "agents": agents}}


async def _settled(swarm: Json, bucket: MemoryBucket | None = None, clock: FakeClock | None = None) -> Simulation:
    simulation = Simulation(bucket=bucket, clock=clock)
    simulation.gateway.write(SWARMS, swarm)
    await simulation.settle()
    return simulation


def _agent(simulation: Simulation, alias: str) -> AgentState:
    return simulation.ledger.state.agents[f"{NAMESPACE}/survey-{alias}"]


def _key(turn: int, incarnation: int, alias: str = "lead") -> str:
    return f"{BASE}/checkpoints/{NAMESPACE}/survey-{alias}/{turn:06d}-{incarnation}.tar.zst"


def _report(turn: int, body: bytes, **change: Any) -> CheckpointReport:
    fields: dict[str, Any] = {
        "turn": turn, "turn_id": f"t{turn}", "incarnation": 1, "snapshot_ref": f"{turn:06d}-1.tar.zst",
        "sha256": hashlib.sha256(body).hexdigest(), "md5": hashlib.md5(body).hexdigest(), "bytes": len(body),
        "key": _key(turn, 1),
    }  # fmt: skip
    return CheckpointReport(**(fields | change))


async def _reach(simulation: Simulation, turn: int) -> None:
    """Have the agent end its turns cleanly up to this one."""
    while (last := _agent(simulation, "lead").turn) is not None and last.number < turn:
        await queue_prompt(simulation.world, _agent(simulation, "lead").key, "go on", f"turn {last.number + 1}")
        await simulation.settle()


async def _record(simulation: Simulation, report: CheckpointReport) -> bool:
    await _reach(simulation, report.turn)
    return (await record_checkpoint(simulation.world, _agent(simulation, "lead"), report)).done


@pytest.mark.behaviour("6.1")
async def test_a_child_starts_from_a_copy_of_its_parent_s_files() -> None:
    simulation = await _settled(_swarm(), MemoryBucket())
    child = _agent(simulation, "left")
    order = await build_start_order(simulation.world, replace(child, turn=None))
    assert [source.kind for source in order.sources] == [SourceKind.FORK]
    later = await build_start_order(simulation.world, child)
    assert later.sources == [], "a turn has begun: without a checkpoint there is nothing to come back to"


@pytest.mark.behaviour("6.2")
async def test_a_fresh_child_starts_from_the_image_alone() -> None:
    simulation = await _settled(_swarm(**{"from": "Fresh"}), MemoryBucket())
    assert (await build_start_order(simulation.world, _agent(simulation, "left"))).sources == []


async def test_inputs_are_those_of_the_wait_whatever_came_later() -> None:
    simulation = await _settled(_swarm(waitFor=["lead"]))
    before = (await build_start_order(simulation.world, _agent(simulation, "left"))).inputs
    lead = _agent(simulation, "lead")
    message = ev.InboxQueued(id="m", kind="prompt", text="another")
    await simulation.ledger.append([ev.Entry(id="m", run=lead.run, agent=lead.key, body=message)])
    await simulation.settle()
    assert _agent(simulation, "lead").handle.result == "did: another"
    after = (await build_start_order(simulation.world, _agent(simulation, "left"))).inputs
    assert after == before
    assert {file.path: file.text for file in before}["/inputs/lead.txt"] == "did: plan"
    assert json.loads(before[-1].text) == {"lead": {"path": "/inputs/lead.txt", "outcome": "success"}}


@pytest.mark.behaviour("4.7", "2.16")
async def test_a_checkpoint_is_recorded_once_it_was_seen_in_the_bucket() -> None:
    bucket = MemoryBucket()
    simulation = await _settled(_swarm(), bucket)
    bucket.put(_key(1, 1), b"archive")
    assert await _record(simulation, _report(1, b"archive"))
    assert await _record(simulation, _report(1, b"archive"))
    (checkpoint,) = _agent(simulation, "lead").checkpoints
    assert (checkpoint.turn, checkpoint.remote_ref) == (1, _key(1, 1))
    await simulation.settle()
    said = {c["type"]: c for c in simulation.read(AGENTS, "survey-lead")["status"]["conditions"]}
    assert said["Checkpointed"]["status"] == "True"


@pytest.mark.parametrize(
    ("stored", "report", "words"),
    [
        (None, _report(1, b"archive"), "no object"),
        (b"another", _report(1, b"archive"), "not the archive"),
        (b"archive", _report(1, b"archive", key=_key(9, 9)), "went to"),
    ],
)
async def test_what_is_not_in_the_bucket_is_not_called_so(
    stored: bytes | None, report: CheckpointReport, words: str
) -> None:
    bucket = MemoryBucket()
    simulation = await _settled(_swarm(), bucket)
    if stored is not None:
        bucket.put(_key(1, 1), stored)
    assert not await _record(simulation, report)
    (checkpoint,) = _agent(simulation, "lead").checkpoints
    assert checkpoint.remote_ref is None
    assert words in (checkpoint.upload_error or "")


@pytest.mark.behaviour("4.8")
async def test_an_upload_that_failed_is_recorded_and_later_mended() -> None:
    bucket = MemoryBucket()
    simulation = await _settled(_swarm(), bucket)
    assert not await _record(simulation, _report(1, b"archive", key="", upload_error="connection refused"))
    await simulation.settle()
    said = {c["type"]: c for c in simulation.read(AGENTS, "survey-lead")["status"]["conditions"]}["Checkpointed"]
    assert (said["status"], said["reason"], said["message"]) == ("False", "UploadFailed", "turn 1: connection refused")
    bucket.put(_key(1, 1), b"archive")
    assert await _record(simulation, _report(1, b"archive"))
    kinds = [type(row.body) for row in simulation.stored.rows if row.agent == f"{NAMESPACE}/survey-lead"]
    assert kinds.count(ev.AgentCheckpointed) == kinds.count(ev.AgentCheckpointUploaded) == 1
    assert _agent(simulation, "lead").checkpoints[0].remote_ref == _key(1, 1)


async def test_a_pod_of_a_former_incarnation_has_no_say() -> None:
    bucket = MemoryBucket()
    simulation = await _settled(_swarm(), bucket)
    pod = _agent(simulation, "lead").pod
    assert pod is not None
    simulation.delete_pod("survey-lead")
    await simulation.settle()
    bucket.put(_key(1, 1), b"archive")
    assert await _record(simulation, _report(1, b"archive"))
    assert _agent(simulation, "lead").checkpoints == ()
    with pytest.raises(Unavailable):
        find_by_pod(simulation.world, SandboxPod(pod.uid))
    with pytest.raises(Refused, match="not the sandbox of lead any more"):
        find_by_pod(simulation.world, SandboxPod(pod.uid, NAMESPACE, "survey-lead-1"))
    with pytest.raises(Unavailable):
        find_by_pod(simulation.world, SandboxPod("new", NAMESPACE, "survey-lead-3"))


@dataclass
class SlowBucket(MemoryBucket):
    """It answers for an object only when it is let to."""

    def __post_init__(self) -> None:
        super().__init__()
        self.asked, self.free = threading.Event(), threading.Event()

    def head(self, key: str) -> StoredObject | None:
        self.asked.set()
        assert self.free.wait(60)
        return super().head(key)


async def test_a_pod_that_went_while_the_bucket_was_asked_has_no_say() -> None:
    bucket = SlowBucket()
    simulation = await _settled(_swarm(), bucket)
    bucket.put(_key(1, 1), b"archive")
    asking = asyncio.create_task(_record(simulation, _report(1, b"archive")))
    await asyncio.to_thread(bucket.asked.wait)
    simulation.delete_pod("survey-lead")
    await simulation.settle()
    assert _agent(simulation, "lead").incarnation == 2
    bucket.free.set()
    assert await asking
    assert not [row for row in simulation.stored.rows if isinstance(row.body, ev.AgentCheckpointed)]


async def test_only_a_turn_that_the_ledger_calls_clean_has_a_checkpoint() -> None:
    """The pod may think otherwise: its turn was recorded as cut before anybody heard of its end."""
    bucket = MemoryBucket()
    simulation = await _settled(_swarm(), bucket)
    await queue_prompt(simulation.world, _agent(simulation, "lead").key, "HANG", "turn 2")
    await simulation.settle()
    bucket.put(_key(2, 1), b"archive")
    with pytest.raises(Unavailable, match="the end of turn 2 is not in the ledger yet"):
        await record_checkpoint(simulation.world, _agent(simulation, "lead"), _report(2, b"archive"))
    lead = _agent(simulation, "lead")
    cut = build_interruption(lead, SupervisionSpec(), End(EndKind.DISRUPTION, "JournalLost", "the journal is gone"))
    await simulation.ledger.append(cut)
    recorded = await record_checkpoint(simulation.world, _agent(simulation, "lead"), _report(2, b"archive"))
    assert recorded.done
    assert "turn 2 did not end cleanly" in recorded.message
    never = await record_checkpoint(simulation.world, _agent(simulation, "lead"), _report(3, b"archive"))
    assert never.done
    assert _agent(simulation, "lead").checkpoints == ()


async def test_the_newest_checkpoint_is_tried_first() -> None:
    bucket = MemoryBucket()
    simulation = await _settled(_swarm(), bucket)
    for turn in (1, 2):
        bucket.put(_key(turn, 1), b"%d" % turn)
        assert await _record(simulation, _report(turn, b"%d" % turn))
    order = await build_start_order(simulation.world, _agent(simulation, "lead"))
    assert [source.turn for source in order.sources] == [2, 1]


@pytest.mark.behaviour("4.13", "4.14")
async def test_the_operator_deletes_what_is_neither_among_the_newest_nor_young() -> None:
    clock = FakeClock()
    bucket = MemoryBucket(clock)
    simulation = await _settled(_swarm(), bucket, clock)
    for turn in range(1, 6):
        bucket.put(_key(turn, 1), b"x")
        clock.advance(601 if turn < 4 else 1)
        assert await _record(simulation, _report(turn, b"x"))
    kept = [stored.key for stored in bucket.list(f"{BASE}/checkpoints/")]
    assert kept == [_key(turn, 1) for turn in (3, 4, 5)]


async def test_a_bucket_in_which_nothing_may_be_deleted_keeps_no_checkpoint_from_being_recorded() -> None:
    clock = FakeClock()
    bucket = MemoryBucket(clock)
    simulation = await _settled(_swarm(), bucket, clock)
    bucket.write_once = True
    for turn in range(1, 6):
        bucket.put(_key(turn, 1), b"x")
        clock.advance(601)
        assert await _record(simulation, _report(turn, b"x"))
    assert [stored.key for stored in bucket.list(f"{BASE}/checkpoints/")] == [_key(turn, 1) for turn in range(1, 6)]


async def _store(simulation: Simulation, bucket: MemoryBucket, *turns: int) -> None:
    for turn in turns:
        bucket.put(_key(turn, 1), b"x")
        assert await _record(simulation, _report(turn, b"x"))


async def _come_back(simulation: Simulation, turn: int | None) -> None:
    """As if the agent had come back from the checkpoint of that turn, its incarnations left aside."""
    agent = _agent(simulation, "lead")
    body = ev.AgentRestored(rung=ev.Rung.RESTORE, incarnation=2, reason="gone", checkpoint_turn=turn)
    await simulation.ledger.append([ev.Entry(id=f"back/{simulation.calls}", run=agent.run, agent=agent.key, body=body)])


def _left(bucket: MemoryBucket) -> list[str]:
    return [stored.key for stored in bucket.list(f"{BASE}/checkpoints/")]


@pytest.mark.behaviour("4.14", "4.16")
async def test_damaged_newer_ones_push_no_good_older_one_out() -> None:
    """Turns 2 to 4 are damaged and turn 1 serves; it must stay until three newer ones are there that count."""
    clock = FakeClock()
    bucket = MemoryBucket(clock)
    simulation = await _settled(_swarm(), bucket, clock)
    await _store(simulation, bucket, 1, 2, 3)
    await _come_back(simulation, 1)
    clock.advance(3600)
    await _store(simulation, bucket, 4, 5)
    clock.advance(3600)
    await delete_expired(simulation.world, _agent(simulation, "lead").key)
    assert _left(bucket) == [_key(turn, 1) for turn in (1, 2, 3, 4, 5)]
    await _store(simulation, bucket, 6)
    assert _left(bucket) == [_key(turn, 1) for turn in (2, 3, 4, 5, 6)], "those set aside have their seven days"
    clock.advance(7 * 86400 - 7201)
    await delete_expired(simulation.world, _agent(simulation, "lead").key)
    assert _key(2, 1) in _left(bucket)
    clock.advance(2)
    await delete_expired(simulation.world, _agent(simulation, "lead").key)
    assert _left(bucket) == [_key(turn, 1) for turn in (4, 5, 6)]


@pytest.mark.behaviour("4.16", "4.24")
async def test_those_set_aside_are_tried_last_and_before_a_blank_start() -> None:
    bucket = MemoryBucket()
    simulation = await _settled(_swarm(), bucket)
    await _store(simulation, bucket, 1, 2, 3)
    await _come_back(simulation, 1)
    await _store(simulation, bucket, 4)
    order = await build_start_order(simulation.world, _agent(simulation, "lead"))
    assert [source.turn for source in order.sources] == [4, 1, 3, 2]


@pytest.mark.behaviour("4.25")
async def test_a_release_that_names_no_bucket_any_more_starts_nobody_blank() -> None:
    bucket = MemoryBucket()
    simulation = await _settled(_swarm(), bucket)
    await _store(simulation, bucket, 1)
    without = replace(simulation.world, bucket=None)
    with pytest.raises(Unavailable, match="none is configured"):
        await build_start_order(without, _agent(simulation, "lead"))


async def test_a_grant_is_for_one_object_and_needs_a_bucket() -> None:
    simulation = await _settled(_swarm(), MemoryBucket())
    grant = build_grant(simulation.world, _agent(simulation, "lead"), 3, 1)
    assert grant is not None
    assert (grant.method, grant.key) == ("PUT", _key(3, 1))
    assert build_grant((await _settled(_swarm())).world, _agent(simulation, "lead"), 3, 1) is None
