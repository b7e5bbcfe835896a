"""Follows running turns: hands the turn over, reads the journal into the ledger, ends when the turn has ended.

One task per agent. It may die after any line: the next one hands over the same turn id and reads on after the last
journal record that the ledger holds.
"""

import asyncio
import contextlib
import logging
from collections.abc import Iterable

from alineod.domain.causes import End, EndKind
from alineod.domain.ends import find_deletion
from alineod.domain.facts import PodFacts, Trouble
from alineod.domain.journal import Batch, compute_batch
from alineod.domain.state import AgentState
from alineod.domain.turn_ends import build_interruption
from alineod.domain.turn_starts import build_preface
from alineod.errors import AlineoError, Conflict, Unavailable
from alineod.kube.objects import AGENTS, build_ref
from alineod.reconcile.archives import build_grant
from alineod.reconcile.bridges import USED_NUMBER
from alineod.reconcile.groups import group_records
from alineod.reconcile.objects import read_spec, read_supervision
from alineod.reconcile.pods import find_pod
from alineod.reconcile.recall import find_heard, recall_heard
from alineod.reconcile.world import World
from alineod.wire.turns import BridgeReason, ErrorKind, JournalEvent, JournalRecord, TurnLimits, TurnRequest, TurnState

RETRY = 1.0  # s after the sandbox did not answer, doubled each time
LONGEST_RETRY = 30.0
KUBELET_LIMIT, KUBELET_LOOK = 10.0, 0.2  # s that the kubelet may take to say how a container ended, and between looks
SANDBOX = ("BridgeNotAnswering", "BridgeBusy")  # reasons that are the sandbox's, not the ledger's
log = logging.getLogger(__name__)


class Drivers:
    """The tasks that follow turns, one per agent."""

    def __init__(self) -> None:
        self._tasks: dict[str, tuple[int, asyncio.Task[None]]] = {}

    def ensure(self, world: World, key: str, turn: int) -> None:
        """See to it that a task follows this turn; one that still follows an earlier turn has nothing left to hear."""
        known, running = self._tasks.get(key, (0, None))
        if running is not None and not running.done():
            if known == turn:
                return
            running.cancel()
        task = asyncio.create_task(drive_turn(world, key, turn), name=f"turn {turn} of {key}")
        self._tasks[key] = (turn, task)
        task.add_done_callback(lambda done: self._finish(world, key, done))

    async def close(self) -> None:
        """Stop following. The turns go on in their sandboxes."""
        tasks = [task for _, task in self._tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _finish(self, world: World, key: str, done: asyncio.Task[None]) -> None:
        if self._tasks.get(key, (0, None))[1] is done:
            del self._tasks[key]
        if not done.cancelled() and (error := done.exception()) is not None:
            log.error("%s: following its turn failed", key, exc_info=error)
        world.wake(build_ref(AGENTS, key))


async def drive_turn(world: World, key: str, number: int) -> None:
    """Follow the turn until the ledger holds its end, or its pod is gone and the pass has to decide."""
    pause = RETRY
    while (agent := _find_running(world, key, number)) is not None:
        pod = find_pod(world, agent)
        if pod is None or pod.over or agent.turn is None or agent.turn.incarnation != agent.incarnation:
            return
        before = agent.journal_seq
        try:
            if not pod.deleting:
                await _hand_over(world, agent, pod)
            await _follow(world, key, number, pod)
        except Exception as error:  # whatever a sandbox says, its turn is followed on, and nobody else is kept waiting
            _note(world, key, pod.uid, error)
        heard_more = world.ledger.state.agents[key].journal_seq > before
        pause = RETRY if heard_more or _is_held(world) else min(pause * 2, LONGEST_RETRY)
        if _find_running(world, key, number) is not None:
            await asyncio.sleep(pause)
        # The sandbox keeps its journal; there is no use in reading it before it can be recorded.
        while _is_held(world):  # noqa: ASYNC110  (another thread ends it)
            await asyncio.sleep(RETRY)


async def _hand_over(world: World, agent: AgentState, pod: PodFacts) -> None:
    """Give the sandbox the turn. Where it cannot say any more whether it ran, that stands in its journal.

    One that has used the turn's number for something else has a past that the ledger does not know: it is given up.
    """
    try:
        await world.bridges.start_turn(pod, world.bridge_token(pod.uid), _build_request(world, agent))
    except Conflict as error:
        if error.reason in USED_NUMBER:
            end = End(EndKind.DISRUPTION, error.reason, f"its sandbox has a past of its own: {error.message}")
            cut = build_interruption(agent, read_supervision(world, agent), end, outside=True)
            await world.ledger.append(cut)
        elif error.reason != BridgeReason.JOURNAL_RESET:
            raise
        log.warning("%s: %s", agent.key, error.message)


def _is_held(world: World) -> bool:
    return world.ledger.replication.failing is not None


def _note(world: World, key: str, pod_uid: str, error: Exception) -> None:
    """Say why the turn could not be followed: once, and on the agent where its sandbox is the cause."""
    if not isinstance(error, AlineoError):
        log.error("%s: following its turn failed", key, exc_info=error)
    said = Trouble("JournalUnreadable", f"its journal cannot be read: {error!r}")
    if isinstance(error, AlineoError):
        said = Trouble(error.reason, error.message)
    if world.term.errors.get(pod_uid) == said or (isinstance(error, Unavailable) and error.reason not in SANDBOX):
        return
    log.info("%s: %s", key, said.message)
    world.term.errors[pod_uid] = said
    world.wake(build_ref(AGENTS, key))


def _find_running(world: World, key: str, number: int) -> AgentState | None:
    agent = world.ledger.state.agents.get(key)
    running = agent is not None and agent.turn_running and agent.turn is not None and agent.turn.number == number
    return agent if running else None


def _build_request(world: World, agent: AgentState) -> TurnRequest:
    turn = agent.turn
    if turn is None:
        raise Conflict("NoTurn", f"{agent.key} has no turn")
    spec = read_spec(world, agent)
    grant = build_grant(world, agent, turn.number, agent.incarnation) if spec.checkpoint else None
    return TurnRequest(
        turn=turn.number, turn_id=turn.id, prompt=turn.prompt, preface=build_preface(agent.interruption),
        epoch=world.release.epoch, heard=agent.journal_seq,
        limits=TurnLimits(turn_max=spec.limits.turn_max, prompt_inactivity=spec.limits.prompt_inactivity),
        checkpoint=spec.checkpoint, grant=grant,
    )  # fmt: skip


async def _follow(world: World, key: str, number: int, pod: PodFacts) -> None:
    """Read the pod's journal into the ledger until the turn's end is in it."""
    heard = find_heard(world, key, number)
    after = world.ledger.state.agents[key].journal_seq
    records = world.bridges.follow(pod, world.bridge_token(pod.uid), after)
    async with contextlib.aclosing(group_records(records)) as groups:
        async for records_heard in groups:
            end = await _wait_container_end(world, key, records_heard)
            current = world.ledger.state.agents[key]
            if current.pod is None or current.pod.uid != pod.uid:
                return  # what this pod still says is of a former incarnation
            if any(record.event == JournalEvent.LOST for record in records_heard):
                heard = await recall_heard(world, current)
            batch: Batch = compute_batch(current, heard, records_heard, read_supervision(world, current), end)
            if batch.heard.silence != heard.silence:
                world.wake(build_ref(AGENTS, key))  # a person is told
            heard = batch.heard
            world.term.turns[key] = (number, heard)
            if batch.entries:
                await world.ledger.append(batch.entries)
            if batch.torn:
                return  # its end may be among what is missing: the sandbox is asked how it stands
            if _find_running(world, key, number) is None:
                world.term.turns.pop(key, None)
                return


async def _wait_container_end(world: World, key: str, records: Iterable[JournalRecord]) -> End | None:
    """How the agent's container ended, where a turn was cut: the next one's bridge may be faster than the kubelet."""
    agent, due = world.ledger.state.agents[key], asyncio.get_running_loop().time() + KUBELET_LIMIT
    cut = any(_is_cut_with_container(record) for record in records)
    while (end := _find_container_end(world, agent)) is None and cut and asyncio.get_running_loop().time() < due:
        pod = find_pod(world, agent)
        if pod is None or pod.over:
            break
        await asyncio.sleep(KUBELET_LOOK)
    return end


def _is_cut_with_container(record: JournalRecord) -> bool:
    error = record.data.get("error")
    kind = error.get("kind") if isinstance(error, dict) else ""
    interrupted = record.data.get("state") == TurnState.INTERRUPTED
    return record.event == JournalEvent.TURN_ENDED and interrupted and kind not in (ErrorKind.HARNESS, ErrorKind.KILLED)


def _find_container_end(world: World, agent: AgentState) -> End | None:
    """How the agent's container ended since its last rung held."""
    pod = find_pod(world, agent)
    if pod is not None and (deletion := find_deletion(pod)) is not None:
        return deletion
    restarted = pod is not None and agent.pod is not None and pod.restarts > agent.pod.restarts
    return pod.container_end if pod is not None and restarted else None
