"""Watches one turn of the harness: its events into the journal, its limits, and the ways it is ended from outside."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from alineod.bridge.harness import Outcome, Run
from alineod.bridge.journal import Journal
from alineod.wire.turns import ErrorKind, JournalEvent, TurnError, TurnLimits, TurnRequest, TurnState


@dataclass(frozen=True)
class Stop:
    """Why a turn is ended before the harness settles."""

    kind: ErrorKind
    message: str

    @property
    def state(self) -> TurnState:
        match self.kind:
            case ErrorKind.ABORTED:
                return TurnState.ABORTED
            case ErrorKind.INTERRUPTED:
                return TurnState.INTERRUPTED
            case _:
                return TurnState.FAILED


def apply_stop(outcome: Outcome, stop: Stop) -> Outcome:
    """The outcome of a turn that was stopped. One that had ended well before the stop arrived did end well."""
    if outcome.state is TurnState.CLEAN:
        return outcome
    return replace(outcome, state=stop.state, error=TurnError(kind=stop.kind, message=stop.message))


def build_timeout(limits: TurnLimits) -> Stop:
    return Stop(ErrorKind.TIMEOUT, f"the turn ran longer than turnMax, {limits.turn_max:g} s; its text so far is kept")


class TurnWatch:
    """Hears one turn, and ends it where it must be ended. `clock` is monotonic, in seconds."""

    def __init__(self, request: TurnRequest, journal: Journal, clock: Callable[[], float]) -> None:
        self._request = request
        self._journal = journal
        self._clock = clock
        self._heard = clock()
        self._latest: str = JournalEvent.TURN_STARTED
        self._silent = False
        self._stop: asyncio.Future[Stop] = asyncio.get_running_loop().create_future()

    def event(self, name: str, data: dict[str, Any]) -> None:
        self._hear(name)
        self._keep(lambda: self._journal.append(self._request.turn, self._request.turn_id, name, data))

    def text(self, delta: str) -> None:
        self._hear(JournalEvent.TEXT_DELTA)
        self._keep(lambda: self._journal.add_text(self._request.turn, self._request.turn_id, delta))

    def reset(self) -> None:
        self._hear(JournalEvent.TEXT_RESET)
        self._journal.reset_text(self._request.turn, self._request.turn_id)

    def stop(self, stop: Stop) -> None:
        """End the turn soon; the first reason given counts."""
        if not self._stop.done():
            self._stop.set_result(stop)

    async def see_out(self, run: Run) -> Outcome:
        """Wait for the turn's end: its own, or the one that a stop or its time limit gives it."""
        finishing = asyncio.ensure_future(run.finish())
        try:
            stop = await self._until_stopped(finishing)
            if stop is None:
                return finishing.result()
            await run.abort()
            return apply_stop(await finishing, stop)
        finally:
            finishing.cancel()

    async def _until_stopped(self, finishing: "asyncio.Future[Outcome]") -> Stop | None:
        """The stop that came before the end, or None."""
        limits = self._request.limits
        deadline = self._clock() + limits.turn_max
        either: list[asyncio.Future[Any]] = [finishing, self._stop]
        while True:
            until = deadline if self._silent else min(deadline, self._heard + limits.prompt_inactivity)
            await asyncio.wait(either, timeout=max(0.0, until - self._clock()), return_when=asyncio.FIRST_COMPLETED)
            if finishing.done():
                return None
            if self._stop.done():
                return self._stop.result()
            if self._clock() >= deadline:
                return build_timeout(limits)
            self._note_silence()

    def _keep(self, write: Callable[[], object]) -> None:
        """Events that cannot be kept end the turn: nobody would ever hear of them."""
        try:
            write()
        except OSError as error:
            self.stop(Stop(ErrorKind.HARNESS, f"the journal cannot be written: {error}"))

    def _note_silence(self) -> None:
        """Silence is no end: tools may say nothing for hours. It is noted once, so that a person can see what it is."""
        seconds = self._clock() - self._heard
        if seconds >= self._request.limits.prompt_inactivity and not self._silent:
            self.event(JournalEvent.SILENCE, {"seconds": round(seconds, 1), "since": self._latest})
            self._silent = True

    def _hear(self, name: str) -> None:
        self._heard = self._clock()
        self._latest = name
        self._silent = False
