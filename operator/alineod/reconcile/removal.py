"""What goes from the bucket: archives that retention keeps no longer, and all of them with their run.

The operator alone deletes, and only what it listed in its own term.
"""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

from alineod.bucket.port import Bucket
from alineod.checkpoints.keys import build_checkpoint_prefix, build_fork_prefix, parse_checkpoint_name
from alineod.checkpoints.retention import KnownCheckpoint, decide_expired
from alineod.domain.state import AgentState
from alineod.reconcile.world import World


async def delete_expired(world: World, key: str) -> None:
    """Remove what retention no longer keeps.

    Raises:
        Denied, Unavailable: the bucket's word, or the term is over.
    """
    bucket, agent = world.bucket, world.ledger.state.agents.get(key)
    if bucket is None or agent is None:
        return
    await asyncio.to_thread(_delete_expired, world, bucket, agent)


def _delete_expired(world: World, bucket: Bucket, agent: AgentState) -> None:
    namespace, name = agent.key.split("/")
    prefix = build_checkpoint_prefix(world.release.base, namespace, name)
    world.check_term()
    stored = [found for found in bucket.list(prefix) if is_own_archive(agent, found.key)]
    expired = decide_expired(
        stored, _read_known(agent), world.clock.now(), keep=world.pods.keep, min_age=world.remote_min_age
    )
    # With a checkpoint of its own an agent needs the copy of its parent's files no more.
    _delete_objects(world, bucket, (*expired, *_find_forks(world, bucket, agent)))


def _read_known(agent: AgentState) -> list[KnownCheckpoint]:
    known = [KnownCheckpoint(c.remote_ref) for c in agent.checkpoints if c.remote_ref]
    for one in agent.set_aside:
        known.append(KnownCheckpoint(one.checkpoint.remote_ref or "", datetime.fromtimestamp(one.since, UTC)))
    return known


def _find_forks(world: World, bucket: Bucket, agent: AgentState) -> list[str]:
    if agent.parent is None:
        return []
    namespace, name = agent.key.split("/")
    return [stored.key for stored in bucket.list(build_fork_prefix(world.release.base, namespace, name))]


async def delete_archives(world: World, agents: Sequence[str]) -> None:
    """Remove every archive of these agents from the bucket."""
    if world.bucket is not None:
        await asyncio.to_thread(_delete_all, world, world.bucket, agents)


def _delete_all(world: World, bucket: Bucket, agents: Sequence[str]) -> None:
    for key in agents:
        namespace, name = key.split("/")
        agent = world.ledger.state.agents.get(key)
        world.check_term()
        archives = bucket.list(build_checkpoint_prefix(world.release.base, namespace, name))
        own = [stored.key for stored in archives if agent is None or is_own_archive(agent, stored.key)]
        forks = bucket.list(build_fork_prefix(world.release.base, namespace, name))
        _delete_objects(world, bucket, (*own, *(stored.key for stored in forks)))


def _delete_objects(world: World, bucket: Bucket, keys: Sequence[str]) -> None:
    """Remove them, each in this term only. The keys were listed in it: what comes later under other keys stays."""
    for key in keys:
        world.check_term()
        bucket.delete(key)


def is_own_archive(agent: AgentState, key: str) -> bool:
    """Whether the checkpoint is this agent's: a former one of the same name had its own run and its own policy."""
    name = parse_checkpoint_name(key)
    return name is not None and agent.first_incarnation <= name.incarnation <= agent.incarnation
