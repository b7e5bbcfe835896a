"""What a sandbox asks of the operator about archives: how to start, where to upload, what was uploaded.

The operator alone holds the bucket's keys. It signs one request for one object at a time, and looks at the object
before it records it.
"""

import asyncio
import hashlib
import hmac
import logging
from dataclasses import dataclass

from alineod.checkpoints.keys import build_checkpoint_key, build_fork_key
from alineod.crd.agent import StartFrom
from alineod.crd.parse import parse_agent_spec
from alineod.domain import events as ev
from alineod.domain.kept import Verdict, judge_report
from alineod.domain.state import AgentState, Checkpoint
from alineod.domain.turn_ends import entry
from alineod.domain.waits import build_inputs
from alineod.errors import AlineoError, Refused, Unavailable
from alineod.reconcile.objects import find_agent
from alineod.reconcile.pods import find_pod
from alineod.reconcile.prompts import find_settled
from alineod.reconcile.removal import delete_expired
from alineod.reconcile.world import World
from alineod.wire.archives import (
    CHECKPOINTER_PORT,
    CheckpointReport,
    ForkRequest,
    InputFile,
    Recorded,
    Source,
    SourceKind,
    StartOrder,
)  # fmt: skip
from alineod.wire.turns import Grant

log = logging.getLogger(__name__)

GRANT_SECONDS = 6 * 3600
PARENT_SESSIONS = (".alineo",)  # below home: the parent's conversation stays behind


@dataclass(frozen=True)
class SandboxPod:
    """Who asks, by the cluster's word on its token."""

    uid: str
    namespace: str = ""
    name: str = ""


def find_by_pod(world: World, pod: SandboxPod) -> AgentState:
    """The agent whose pod, by the ledger, is this one.

    Raises:
        Refused: reason `StalePod`; the agent has another sandbox by now, or none any more.
        Unavailable: reason `PodNotRecorded`; the ledger does not hold this pod yet.
    """
    agents = world.ledger.state.agents
    for agent in agents.values():
        if agent.pod is not None and agent.pod.uid == pod.uid and not agent.closed:
            return agent
    name, _, incarnation = pod.name.rpartition("-")
    known = agents.get(f"{pod.namespace}/{name}")
    # Names follow from agent and incarnation, and no incarnation is used twice.
    if known is not None and incarnation.isdecimal() and int(incarnation) <= known.incarnation:
        raise Refused("StalePod", f"the pod {pod.name} is not the sandbox of {known.alias} any more")
    raise Unavailable("PodNotRecorded", "the ledger does not hold this pod as any agent's sandbox")


def check_turn(agent: AgentState, turn: int) -> None:
    """Only a turn that the agent has had can have a checkpoint.

    Raises:
        Refused: reason `UnknownTurn`.
    """
    if agent.turn is None or not 1 <= turn <= agent.turn.number:
        raise Refused("UnknownTurn", f"the agent has had no turn {turn}")


def build_grant(world: World, agent: AgentState, turn: int, incarnation: int) -> Grant | None:
    """The request that uploads one checkpoint; None without a bucket."""
    if world.bucket is None:
        return None
    return world.bucket.grant_put(_checkpoint_key(world, agent, turn, incarnation), GRANT_SECONDS)


def _checkpoint_key(world: World, agent: AgentState, turn: int, incarnation: int) -> str:
    namespace, name = agent.key.split("/")
    return build_checkpoint_key(world.release.base, namespace, name, turn, incarnation)


async def build_start_order(world: World, agent: AgentState) -> StartOrder:
    """How the agent's pod starts.

    Raises:
        Unavailable: the parent's files are still being copied, or its sandbox does not answer.
    """
    if agent.pod is None:
        raise Unavailable("PodNotRecorded", "the agent has no pod")
    sources = _build_sources(world, agent)
    # Once a turn has begun there is something that only a checkpoint could bring back: without one it comes back blank.
    if not sources and agent.turn is None and (parent := _find_parent(world, agent)) is not None:
        sources = [await _cut_fork(world, agent, parent)]
    return StartOrder(
        bridge_token=world.bridge_token(agent.pod.uid), sources=sources, inputs=await _read_inputs(world, agent)
    )


def _build_sources(world: World, agent: AgentState) -> list[Source]:
    """Every checkpoint that may serve, newest first; at the end those that were set aside.

    Raises:
        Unavailable: reason `NoBucket`; there are some, and this release names no bucket to read them from.
    """
    bucket = world.bucket
    there = [c for c in (*(one.checkpoint for one in agent.set_aside), *agent.checkpoints) if c.remote_ref]
    if bucket is None and there:
        raise Unavailable("NoBucket", "its checkpoints are in a bucket and none is configured: set bucket.name")
    if bucket is None:
        return []
    return [
        Source(
            kind=SourceKind.CHECKPOINT, turn=c.turn, sha256=c.sha256, bytes=c.bytes,
            get=bucket.grant_get(c.remote_ref, GRANT_SECONDS), snapshot_ref=c.snapshot_ref, session=c.session,
        )
        for c in reversed(there)
        if c.remote_ref
    ]  # fmt: skip


def _find_parent(world: World, agent: AgentState) -> AgentState | None:
    if agent.parent is None or parse_agent_spec(agent.spec).from_ is not StartFrom.PARENT:
        return None
    return world.ledger.state.agents.get(agent.parent)


async def _cut_fork(world: World, child: AgentState, parent: AgentState) -> Source:
    pod = find_pod(world, parent)
    if pod is None or not pod.agent_running:
        raise Unavailable("ParentNotReady", f"the sandbox of the parent {parent.alias} is not up")
    fork = f"{child.key.split('/')[1]}-{child.incarnation}-{world.release.epoch}"
    put = get = None
    if world.bucket is not None:
        namespace, name = child.key.split("/")
        key = build_fork_key(world.release.base, namespace, name, fork)
        put, get = world.bucket.grant_put(key, GRANT_SECONDS), world.bucket.grant_get(key, GRANT_SECONDS)
    read_token = _sign(world, f"fork/{fork}")
    request = ForkRequest(fork_id=fork, read_token=read_token, exclude=list(PARENT_SESSIONS), grant=put)
    cut = await world.bridges.cut_fork(pod, world.bridge_token(pod.uid), request)
    if get is None or not cut.uploaded:
        url = f"http://{pod.ip}:{CHECKPOINTER_PORT}/v1/forks/{fork}"
        get = Grant(method="GET", url=url, headers={"authorization": f"Bearer {read_token}"})
    return Source(kind=SourceKind.FORK, turn=None, sha256=cut.sha256, bytes=cut.bytes, get=get)


def _sign(world: World, text: str) -> str:
    return hmac.new(world.ledger.secret, text.encode(), hashlib.sha256).hexdigest()


async def _read_inputs(world: World, agent: AgentState) -> list[InputFile]:
    """The inputs as they were when the wait was resolved, whatever those agents did since."""
    resolved = agent.wait_resolved
    if resolved is None:
        return []
    results = {alias: await _read_result(world, agent.run, alias, turn) for alias, turn in resolved.turns.items()}
    return build_inputs(resolved, results)


async def _read_result(world: World, run: str, alias: str, turn: int) -> str:
    peer = find_agent(world, run, alias)
    if peer is None:
        return ""
    if peer.handle.settled and peer.handle.turn == turn:
        return peer.handle.result
    settled = await find_settled(world, peer, turn)
    return settled.result if settled else ""


async def record_checkpoint(world: World, agent: AgentState, report: CheckpointReport) -> Recorded:
    """Look at the object, then record the checkpoint, unless it does not count: then the sidecar may forget it.

    Raises:
        Unavailable: the bucket does not answer, or the turn's end is not in the ledger yet.
    """
    if refusal := _refuse(agent, report):
        return refusal
    remote_ref, error = None, report.upload_error
    if report.key:
        remote_ref, error = await _verify(world, agent, report)
    agent = world.ledger.state.agents[agent.key]  # much may have happened while the bucket was asked
    if refusal := _refuse(agent, report):
        return refusal
    await _append_report(world, agent, report, remote_ref, error)
    if remote_ref is not None:
        await _tidy_up(world, agent.key)
    return Recorded(done=remote_ref is not None or world.bucket is None, message=error)


async def _tidy_up(world: World, key: str) -> None:
    """Remove what retention keeps no longer. What cannot be removed now is looked at again with the next checkpoint."""
    try:
        await delete_expired(world, key)
    except AlineoError as error:
        log.warning("old checkpoints of %s stay in the bucket: %s", key, error)


def _refuse(agent: AgentState, report: CheckpointReport) -> Recorded | None:
    verdict, why = judge_report(agent, report.turn, report.incarnation)
    match verdict:
        case Verdict.TAKE:
            return None
        case Verdict.LATER:
            raise Unavailable("TurnNotRecorded", why)
        case Verdict.NEVER:
            return Recorded(done=True, message=f"{why}; the report is not taken")


async def _append_report(
    world: World, agent: AgentState, report: CheckpointReport, remote_ref: str | None, error: str
) -> None:
    known = _find_checkpoint(agent, report)
    if known is None:
        await world.ledger.append([_build_checkpointed(agent, report, remote_ref, error)])
    elif known.remote_ref is None and remote_ref is not None:
        body = ev.AgentCheckpointUploaded(turn=report.turn, incarnation=report.incarnation, remote_ref=remote_ref)
        await world.ledger.append([entry(agent, f"checkpoint/{report.turn}-{report.incarnation}/uploaded", body)])


def _find_checkpoint(agent: AgentState, report: CheckpointReport) -> Checkpoint | None:
    at = (report.turn, report.incarnation)
    return next((c for c in agent.checkpoints if (c.turn, c.incarnation) == at), None)


def _build_checkpointed(agent: AgentState, report: CheckpointReport, remote_ref: str | None, error: str) -> ev.Entry:
    body = ev.AgentCheckpointed(
        turn=report.turn, incarnation=report.incarnation, snapshot_ref=report.snapshot_ref, sha256=report.sha256,
        bytes=report.bytes, remote_ref=remote_ref, upload_error=error or None, session=report.session,
    )  # fmt: skip
    return entry(agent, f"checkpoint/{report.turn}-{report.incarnation}", body)


async def _verify(world: World, agent: AgentState, report: CheckpointReport) -> tuple[str | None, str]:
    """The key, if the object there is the one reported; else why not."""
    bucket, expected = world.bucket, _checkpoint_key(world, agent, report.turn, report.incarnation)
    if bucket is None:
        return None, "no bucket is configured"
    if report.key != expected:
        return None, f"the upload went to {report.key} and not to {expected}"
    head = await asyncio.to_thread(bucket.head, expected)
    if head is None:
        return None, f"there is no object {expected} in the bucket"
    if head.size != report.bytes or head.etag != report.md5:
        return None, f"the object {expected} is not the archive that was cut ({head.size} of {report.bytes} bytes)"
    return expected, ""
