"""Pi as a harness: a process per turn, spoken to over its RPC, gone when the turn is over.

Pi runs only while a turn runs: an idle agent costs no harness memory, nothing of Pi writes while an archive is cut, and
the conversation is always read back from disk, which is what a restore does.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from alineod.bridge import pi_config, pi_events, pi_session
from alineod.bridge.harness import Job, Listener, Outcome
from alineod.bridge.pi_process import PiProcess, Record
from alineod.bridge.processes import Children
from alineod.bridge.settings import Settings
from alineod.errors import AlineoError, Unavailable
from alineod.files import sync_file, write_file
from alineod.wire.base import encode
from alineod.wire.turns import ErrorKind, Session, TurnError, TurnState

_START_LIMIT = 60.0  # s until Pi answers at all
_STARTS = 3  # before the prompt is given nothing has happened, so Pi may be started again
_ASK_LIMIT = 60.0  # s for a question about a large session
_ERROR_LIMIT = 20.0  # s of silence after an error that Pi does not try again: it will say nothing more
_ABORT_LIMIT = 10.0  # s for an abort to settle


class Pi:
    """The harness, configured for one agent."""

    name = "Pi"

    def __init__(self, settings: Settings, children: Children) -> None:
        self.settings = settings
        self.children = children
        self.session_id = pi_config.compute_session_id(settings.agent)

    async def probe(self, env: Mapping[str, str]) -> None:
        process = await self.start(env, lambda _: None)
        try:
            state = await process.call("get_state", _START_LIMIT)
        finally:
            await process.close()
        if problem := pi_config.explain_model(self.settings.harness.model, state):
            raise Unavailable("HarnessFailed", problem)

    def begin(self, job: Job, listener: Listener) -> "PiRun":
        return PiRun(self, job, listener)

    def rewind(self, session: Session | None) -> None:
        if session is None:
            for path in (self.settings.home / pi_config.SESSIONS).glob(f"*_{self.session_id}.jsonl"):
                path.unlink()
            return
        path = self.settings.home / session.file
        if path.is_file() and path.stat().st_size > session.bytes:
            os.truncate(path, session.bytes)
            sync_file(path)

    async def start(self, env: Mapping[str, str], on_record: Callable[[Record], None]) -> PiProcess:
        """A Pi process with its configuration written anew."""
        self._write_config()
        env = {**env, "PI_OFFLINE": "1"}
        argv = pi_config.build_command(self.settings.harness.command, self.settings.home, self.session_id)
        return await PiProcess.start(self.children, argv, env, on_record)

    def _write_config(self) -> None:
        directory = self.settings.home / ".pi" / "agent"
        directory.mkdir(parents=True, exist_ok=True)
        for lock in directory.glob("*.lock"):  # of a Pi that was killed: it would delay this one by half a minute
            with contextlib.suppress(OSError):
                lock.rmdir()
        model, credentials = self.settings.harness.model, self.settings.credential_names
        write_file(directory / "models.json", encode(pi_config.build_models(model, credentials)))
        write_file(directory / "settings.json", encode(pi_config.build_settings(model)))


class PiRun:
    """One turn of Pi."""

    def __init__(self, pi: Pi, job: Job, listener: Listener) -> None:
        self._pi = pi
        self._job = job
        self._listener = listener
        self._turn = pi_events.PiTurn()
        self._settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._heard = asyncio.get_running_loop().time()
        self._aborting = False
        self._prompted = False
        self._process: PiProcess | None = None

    async def finish(self) -> Outcome:
        try:
            outcome = await self._converse()
        except AlineoError as error:
            process = self._process
            died = self._prompted and process is not None and process.died
            outcome = self._cut_off(process) if process and died else self._failed(ErrorKind.HARNESS, error.message)
        finally:
            if self._process is not None:
                await self._process.close()
        return self._check_stored(self._with_size(outcome))

    async def abort(self) -> None:
        self._aborting = True
        process = self._process
        if process is None:
            return
        with contextlib.suppress(AlineoError, TimeoutError):
            async with asyncio.timeout(_ABORT_LIMIT):
                # What is queued inside Pi would otherwise be delivered with the next prompt.
                await process.call("clear_queue", _ABORT_LIMIT)
                await process.call("abort", _ABORT_LIMIT)
                await self._until_settled(process)
            return
        await process.kill()

    async def _converse(self) -> Outcome:
        process, state = await self._start()
        self._turn = replace(self._turn, priced=pi_config.has_price(state))
        if problem := pi_config.explain_model(self._pi.settings.harness.model, state):
            return self._failed(ErrorKind.HARNESS, problem)
        if problem := await self._check_session(process, state):
            return self._failed(ErrorKind.SESSION, problem)
        if self._aborting:
            return self._failed(ErrorKind.ABORTED, "aborted before the prompt was given")
        self._prompted = True
        answer = await process.call("prompt", None, message=self._job.prompt)
        if answer.get("disposition") == "handled":  # a command of an extension: no model was asked
            return Outcome(TurnState.CLEAN, session=await self._session(process, state))
        if not await self._until_settled(process):
            raise Unavailable("HarnessFailed", process.explain())
        outcome = pi_events.compute_outcome(self._turn)
        if outcome.state is not TurnState.CLEAN:
            return outcome
        return replace(outcome, session=await self._session(process, state))

    async def _start(self) -> tuple[PiProcess, Record]:
        """A Pi that answers, and its state."""
        for _ in range(_STARTS - 1):
            try:
                return await self._launch()
            except AlineoError:
                if self._aborting:
                    raise
                if self._process is not None:
                    await self._process.close()
        return await self._launch()

    async def _launch(self) -> tuple[PiProcess, Record]:
        process = self._process = await self._pi.start(self._job.env, self._hear)
        return process, await process.call("get_state", _START_LIMIT)

    async def _until_settled(self, process: PiProcess) -> bool:
        """Whether the turn settled; False when Pi has gone before.

        Raises:
            Unavailable: reason `HarnessFailed`; an error has left it where it does not go on.
        """
        either: list[asyncio.Future[Any]] = [self._settled, process.gone]
        clock = asyncio.get_running_loop().time
        while True:
            await asyncio.wait(either, timeout=_ERROR_LIMIT, return_when=asyncio.FIRST_COMPLETED)
            if any(one.done() for one in either):
                return self._settled.done()
            if self._turn.stuck and clock() - self._heard >= _ERROR_LIMIT:
                raise Unavailable("HarnessFailed", f"Pi does not go on after an error: {self._turn.error}")

    async def _check_session(self, process: PiProcess, state: Record) -> str:
        """Why the conversation is not where it must be; empty when it is. Pi itself would silently begin a new one."""
        expected = self._job.expected
        if expected is None:
            return ""
        found = str(state.get("sessionId"))
        try:
            since = await process.call("get_entries", _ASK_LIMIT, since=expected.leaf)
        except AlineoError:
            leaf = (await process.call("get_entries", _ASK_LIMIT)).get("leafId")
            return _explain_session(expected, f"{found} at {leaf}")
        later = [entry for entry in since.get("entries", []) if entry.get("type") == "message"]
        if found != expected.id or (self._job.untouched and later):
            return _explain_session(expected, f"{found} at {since.get('leafId')}")
        return ""

    async def _session(self, process: PiProcess, state: Record) -> Session:
        expected = self._job.expected
        entries = await process.call("get_entries", _ASK_LIMIT, **({"since": expected.leaf} if expected else {}))
        file = _relative(str(state.get("sessionFile") or ""), self._pi.settings.home)
        return Session(id=str(state.get("sessionId")), leaf=str(entries.get("leafId")), file=file)

    def _with_size(self, outcome: Outcome) -> Outcome:
        """Add the size of the session's file, read when Pi is gone, and see that the disk has it: Pi does not."""
        session = outcome.session
        if session is None or not (path := self._pi.settings.home / session.file).is_file():
            return outcome
        sync_file(path)
        return replace(outcome, session=msgspec.structs.replace(session, bytes=path.stat().st_size))

    def _check_stored(self, outcome: Outcome) -> Outcome:
        """See that the conversation can be read back: what was spoilt in the turn is neither saved nor built on."""
        session = outcome.session or self._job.expected
        if session is None or outcome.state not in (TurnState.CLEAN, TurnState.FAILED):
            return outcome
        damage = _find_damage(self._pi.settings.home, session)
        if not damage:
            return outcome
        before = f"; and {outcome.error.message}" if outcome.error else ""
        message = f"the conversation cannot be read back from ~/{session.file}: {damage}{before}"
        why = TurnError(kind=ErrorKind.SESSION, message=message)
        return replace(outcome, state=TurnState.FAILED, error=why, session=None, settled=False)

    def _hear(self, record: Record) -> None:
        self._heard = asyncio.get_running_loop().time()
        self._turn, said = pi_events.observe(self._turn, record)
        for one in said:
            match one:
                case pi_events.Event(name, data):
                    self._listener.event(name, data)
                case pi_events.Delta(text):
                    self._listener.text(text)
                case pi_events.Reset():
                    self._listener.reset()
        if record.get("type") == "extension_ui_request" and record.get("method") in pi_events.DIALOGS:
            self._refuse(record)
        if self._turn.settled and not self._settled.done():
            self._settled.set_result(None)

    def _refuse(self, record: Record) -> None:
        """Nobody sits here to answer a dialog, and an unanswered one would block the turn for ever."""
        if self._process is not None:
            self._process.post({"type": "extension_ui_response", "id": record.get("id"), "cancelled": True})

    def _cut_off(self, process: PiProcess) -> Outcome:
        """How a turn ends in the middle of which its Pi did: by its own fault, or because somebody ended it."""
        kind = ErrorKind.KILLED if process.was_killed else ErrorKind.HARNESS
        outcome = self._failed(kind, process.explain())
        return outcome if outcome.state is TurnState.ABORTED else replace(outcome, state=TurnState.INTERRUPTED)

    def _failed(self, kind: ErrorKind, message: str) -> Outcome:
        if self._aborting:
            kind = ErrorKind.ABORTED
        state = TurnState.ABORTED if kind is ErrorKind.ABORTED else TurnState.FAILED
        turn = self._turn
        error = TurnError(kind=kind, message=message)
        settled = self._settled.done() or not self._prompted
        return Outcome(state, pi_events.surviving_text(turn), error, turn.usage, tools=turn.tools, settled=settled)


def _find_damage(home: Path, session: Session) -> str:
    try:
        return pi_session.find_damage((home / session.file).read_bytes(), session.id, session.leaf)
    except OSError as error:
        return str(error.strerror)


def _relative(file: str, home: Path) -> str:
    path = Path(file)
    return str(path.relative_to(home)) if path.is_relative_to(home) else file


def _explain_session(expected: Session, found: str) -> str:
    return (
        f"the conversation found is {found}, but the last clean turn left it as {expected.id} at {expected.leaf}; "
        "nothing was sent to the model, because an answer without that memory would look like one with it"
    )
