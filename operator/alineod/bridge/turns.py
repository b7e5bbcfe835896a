"""Runs turns: one at a time, each journaled from start to end, each clean one checkpointed behind a shut gate."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import msgspec

from alineod.bridge.cut import Packer, cut
from alineod.bridge.freeze import frozen
from alineod.bridge.harness import Harness, Job, Outcome
from alineod.bridge.journal import Journal
from alineod.bridge.memory import (
    Answer,
    KnownTurn,
    Memory,
    Situation,
    build_end,
    build_interruption,
    build_start,
    decide_answer,
    is_untouched,
    needs_rewind,
    recall,
    remember,
)
from alineod.bridge.prepare import Preparation
from alineod.bridge.proc import end_marked
from alineod.bridge.watch import Stop, TurnWatch
from alineod.errors import AlineoError, NotFound, Unavailable
from alineod.wire.archives import CutRequest
from alineod.wire.turns import (
    ErrorKind,
    Grant,
    JournalEvent,
    Session,
    TurnAccepted,
    TurnError,
    TurnRequest,
    TurnResult,
    TurnState,
)

MARKS = ("ALINEO_TURN_ID", "ALINEO_AGENT")
"""Variables that mark every process started by a turn of this sandbox."""
_ABORT_WAIT = 30.0  # s an abort's answer waits for the turn's end
_TOLD_WAIT = 60.0  # s a shutdown waits for a reader of the turn that it waited for
_log = logging.getLogger("alineod.bridge")


@dataclass(frozen=True)
class _Running:
    turn: int
    watch: TurnWatch
    ended: "asyncio.Future[None]"


class Turns:
    """The turns of this pod. `restored` says where the conversation stood when the pod began; `clock` is monotonic.

    `broken` is done when the journal cannot be written any more: the process must end, it can promise nothing.
    """

    def __init__(
        self,
        journal: Journal,
        harness: Harness | None,
        preparation: Preparation,
        packer: Packer,
        restored: Callable[[], Session | None],
        clock: Callable[[], float],
    ) -> None:
        self.draining = False
        self.broken: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        self._journal = journal
        self._harness = harness
        self._preparation = preparation
        self._packer = packer
        self._clock = clock
        self._memory = recall(journal.records())
        self._restored = restored
        self._running: _Running | None = None
        self._gate_owner: int | None = None  # the turn whose archive is being cut
        self._task: asyncio.Task[None] | None = None
        self._ended = 0  # the record of the last end of a turn that this process has written

    @property
    def memory(self) -> Memory:
        return self._memory

    @property
    def gate_shut(self) -> bool:
        return self._gate_owner is not None

    def mend(self) -> None:
        """What the bridge before us left: a turn without an end gets one, half a turn is taken from the conversation.

        A clean turn whose archive was not cut gets it cut now; its grant is gone, the checkpointer fetches another.
        A turn that had begun and is not in the journal any more is noted as lost.
        """
        mark = self._journal.mark
        if mark.turn > self._newest:
            self._lose(mark.turn, mark.turn_id, self._journal.seq + 1, mark.reserved)
        latest = self._memory.latest
        if latest is not None and latest.state is TurnState.RUNNING:
            why = "the container of the agent ended in the middle of the turn"
            result = build_interruption(latest, self._journal.records(), self._journal.surviving_text, why)
            self._record(latest.turn, latest.turn_id, JournalEvent.TURN_ENDED, build_end(result, settled=False))
            self._mark()
        self._rewind()
        latest = self._memory.latest
        if latest is not None and not latest.saved:
            self._gate_owner = latest.turn
            self._begin(self._checkpoint(latest, None))

    def decide(self, request: TurnRequest) -> Answer:
        """What `request` is to be answered with as things stand."""
        ready = self._preparation.standing.ready and self._harness is not None
        now = Situation(self.draining, ready, self._running is not None, self.gate_shut, self._journal.seq)
        return decide_answer(self._memory, request, now)

    def start(self, request: TurnRequest) -> TurnAccepted:
        """Begin a turn that `decide` said may start; it is on disk when this returns.

        Raises:
            Unavailable: a credential went away, or the journal cannot be written.
        """
        harness = self._harness
        if harness is None:
            raise NotFound("HarnessUnsupported", "there is no harness to start a turn with")
        env = {**self._preparation.read_environment(), "ALINEO_TURN_ID": request.turn_id}
        self._rewind()
        expected, untouched = self._session(), is_untouched(self._memory)
        job = Job(request.turn, request.turn_id, request.text, env, expected, untouched)
        try:
            record = self._journal.begin_turn(request.turn, request.turn_id, build_start(request), self._memory.anchor)
        except OSError as error:
            raise Unavailable("JournalUnwritable", f"the journal of this pod cannot be written: {error}") from error
        self._memory = remember(self._memory, record)
        self._mark()
        watch = TurnWatch(request, self._journal, self._clock)
        self._running = _Running(request.turn, watch, asyncio.get_running_loop().create_future())
        self._begin(self._run(request, harness, job, watch))
        return self._known(request.turn).accepted

    def lose(self, request: TurnRequest) -> None:
        """Take note that the records which `request` speaks of are gone; on disk when this returns.

        Raises:
            Unavailable: the journal cannot be written.
        """
        known = self._memory.turns.get(request.turn)
        if known is not None and known.lost:
            return
        first = known.ended if known is not None and known.ended else self._journal.seq + 1
        try:
            self._lose(request.turn, request.turn_id, min(first, request.heard), request.heard)
        except OSError as error:
            raise Unavailable("JournalUnwritable", f"the journal of this pod cannot be written: {error}") from error
        if self._running is not None:  # whoever asked holds it to be over
            self._running.watch.stop(Stop(ErrorKind.INTERRUPTED, "the journal of the turn is gone"))

    async def abort(self, turn_id: str, reason: str) -> TurnAccepted:
        """End a turn; returns how it stands once it has ended, or after half a minute.

        Raises:
            NotFound: this pod knows no such turn.
        """
        known = self._memory.find(turn_id)
        if known is None:
            raise NotFound("TurnNotFound", f"this pod knows no turn with the id {turn_id}")
        if self._running is not None and self._running.turn == known.turn:
            self._running.watch.stop(Stop(ErrorKind.ABORTED, reason))
            await asyncio.wait([self._running.ended], timeout=_ABORT_WAIT)
        return self._known(known.turn).accepted

    async def drain(self, grace: float, cut_grace: float) -> None:
        """Take no more turns. The running one has `grace` seconds, then it is interrupted; a cut has `cut_grace` more.

        The end of the last turn is kept for whoever reads of it, as long as that time is not over: an operator may be
        on its way to another node, too.
        """
        self.draining = True
        deadline = self._clock() + grace + cut_grace
        if self._task is not None and not self._task.done():
            await self._see_out(self._task, grace, cut_grace)
        await self._journal.until_told(self._ended, min(_TOLD_WAIT, deadline - self._clock()))

    async def _see_out(self, task: "asyncio.Task[None]", grace: float, cut_grace: float) -> None:
        await asyncio.wait([task], timeout=grace)
        if self._running is not None:
            message = "the sandbox was shut down in the middle of the turn"
            self._running.watch.stop(Stop(ErrorKind.INTERRUPTED, message))
            # The task ends without an end of the turn where that cannot be written.
            await asyncio.wait([self._running.ended, task], return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait([task], timeout=cut_grace)
        task.cancel()  # the next container of this pod cuts it, if there is one
        await asyncio.gather(task, return_exceptions=True)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        self._task = asyncio.create_task(work)
        self._task.add_done_callback(self._finished)

    def _finished(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (error := task.exception()) and not self.broken.done():
            self.broken.set_result(error)

    async def _run(self, request: TurnRequest, harness: Harness, job: Job, watch: TurnWatch) -> None:
        try:
            outcome = await watch.see_out(harness.begin(job, watch))
            if not outcome.settled:  # a tool that it had started may go on by itself, beside the next turn
                await end_marked({name: job.env[name] for name in MARKS})
        except Exception as error:  # a fault of ours ends the turn as failed; it must not leave it running for ever
            _log.exception("turn %s failed in the bridge", request.turn)
            why = TurnError(kind=ErrorKind.HARNESS, message=f"the bridge failed: {error!r}")
            outcome = Outcome(TurnState.FAILED, self._journal.surviving_text, why, settled=False)
        if outcome.state is TurnState.CLEAN and request.checkpoint:
            self._gate_owner = request.turn  # before anyone can read of the end and send the next turn
        self._end(request, outcome)
        if self.gate_shut:
            await self._checkpoint(self._known(request.turn), request.grant)

    def _end(self, request: TurnRequest, outcome: Outcome) -> None:
        clean = outcome.state is TurnState.CLEAN
        result = TurnResult(
            turn=request.turn,
            turn_id=request.turn_id,
            state=outcome.state,
            text=outcome.text,
            error=outcome.error,
            usage=outcome.usage,
            session=outcome.session if clean else None,
            tools=[] if clean else list(outcome.tools),
        )
        self._record(request.turn, request.turn_id, JournalEvent.TURN_ENDED, build_end(result, outcome.settled))
        self._mark()
        if self._running is not None:
            self._running.ended.set_result(None)
            self._running = None

    async def _checkpoint(self, known: KnownTurn, grant: Grant | None) -> None:
        """Have the archive cut while everyone else stands still. However that goes, the gate opens."""
        request = CutRequest(turn=known.turn, turn_id=known.turn_id, session=known.session, grant=grant)
        try:
            async with frozen():
                result = await cut(self._packer, request)
            data = {"sha256": result.sha256, "bytes": result.bytes}
            self._record(known.turn, known.turn_id, JournalEvent.CHECKPOINT_CUT, data)
        except AlineoError as error:
            data = {"reason": error.reason, "message": error.message}
            self._record(known.turn, known.turn_id, JournalEvent.CHECKPOINT_FAILED, data)
        finally:
            self._gate_owner = None

    def _rewind(self) -> None:
        if self._harness is not None and needs_rewind(self._memory):
            self._harness.rewind(self._session())

    def _session(self) -> Session | None:
        """Where the conversation stood after the last clean turn, of this pod or of those before it."""
        return self._memory.session or self._restored()

    def _record(self, turn: int, turn_id: str, event: str, data: dict[str, Any]) -> None:
        self._memory = remember(self._memory, self._journal.append(turn, turn_id, event, data))
        if (
            event == JournalEvent.TURN_ENDED and data["state"] != TurnState.ABORTED
        ):  # whoever aborts a turn knows of its end
            self._ended = self._journal.seq

    def _mark(self) -> None:
        """Keep beside the journal how it stands after a turn's start, or end."""
        if (latest := self._memory.latest) is not None:
            halfway = latest.state is TurnState.RUNNING or needs_rewind(self._memory)
            self._journal.mark_turn(latest.turn, latest.turn_id, self._session(), halfway)

    def _lose(self, turn: int, turn_id: str, first: int, last: int) -> None:
        """What the mark says of the conversation counts, unless the journal knows more."""
        mark = self._journal.mark
        marked = 0 < mark.turn >= self._newest
        session, halfway = (mark.session, mark.halfway) if marked else (self._memory.session, False)
        data = {"session": msgspec.to_builtins(session), "halfway": halfway}
        self._memory = remember(self._memory, self._journal.lose(turn, turn_id, first, last, data))

    @property
    def _newest(self) -> int:
        return self._memory.latest.turn if self._memory.latest else 0

    def _known(self, turn: int) -> KnownTurn:
        return self._memory.turns[turn]
