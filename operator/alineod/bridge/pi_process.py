"""One Pi process and its RPC: a JSON object a line, commands in, records out. Knows nothing of what they mean."""

import asyncio
import contextlib
import json
import logging
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from alineod.bridge.pipes import LineSplitter, Tail, drain, open_reader, open_writer
from alineod.bridge.proc import count_killed_for_memory
from alineod.bridge.processes import Child, Children
from alineod.errors import Unavailable

_CHUNK = 256 * 1024
_LAST_WORDS = 1.0  # s for what is left in the pipe of a process that has gone; a child of it may hold the pipe open
_EXIT_LIMIT = 5.0  # s to exit after its input is closed
_TERM_LIMIT = 3.0  # s to exit after SIGTERM

_KILLS = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT})
_SIGNALS = frozenset({"agent_start", "agent_end", "turn_start", "turn_end", "tool_execution_update", "entry_appended"})

_log = logging.getLogger("alineod.bridge")

Record = dict[str, Any]


class PiProcess:
    """Start it with `start`, end it with `close`. `gone` is done when it has exited and its last words were heard."""

    def __init__(self, child: Child, writer: asyncio.WriteTransport, on_record: Callable[[Record], None]) -> None:
        self.child = child
        self.gone: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._writer = writer
        self._on_record = on_record
        self._stderr = Tail()
        self._fault = ""
        self._ending = False
        self._killed_before = count_killed_for_memory()
        self._waiting: dict[str, asyncio.Future[Record]] = {}
        self._asked = 0
        self._tasks: list[asyncio.Task[None]] = []
        self._transports: list[asyncio.BaseTransport] = [writer]

    @classmethod
    async def start(
        cls, children: Children, argv: Sequence[str], env: Mapping[str, str], on_record: Callable[[Record], None]
    ) -> "PiProcess":
        """Spawn it; every record that answers no command of ours goes to `on_record`.

        Raises:
            Unavailable: reason `HarnessFailed`; it cannot be started.
        """
        pipes = [os.pipe(), os.pipe(), os.pipe()]
        theirs = [pipes[0][0], pipes[1][1], pipes[2][1]]
        ours = [pipes[0][1], pipes[1][0], pipes[2][0]]
        try:
            child = children.spawn(argv, env, dict(enumerate(theirs)))
        except Unavailable:
            for fd in ours:
                os.close(fd)
            raise
        finally:
            for fd in theirs:
                os.close(fd)
        process = cls(child, await open_writer(ours[0]), on_record)
        await process._listen(ours[1], ours[2])
        return process

    async def call(self, command: str, limit: float | None, **fields: Any) -> Record:
        """Send a command and wait for its answer, at most `limit` seconds; returns the answer's data.

        Raises:
            Unavailable: reason `HarnessFailed`; it refused, was silent, or is gone.
        """
        self._asked += 1
        name = f"alineo-{self._asked}"
        answer: asyncio.Future[Record] = asyncio.get_running_loop().create_future()
        self._waiting[name] = answer
        self.post({"id": name, "type": command, **fields})
        either: list[asyncio.Future[Any]] = [answer, self.gone]
        done, _ = await asyncio.wait(either, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
        self._waiting.pop(name, None)
        if not answer.done():
            raise Unavailable(
                "HarnessFailed", self.explain() if done else f"Pi did not answer {command} in {limit:g} s"
            )
        record = answer.result()
        if not record.get("success"):
            raise Unavailable("HarnessFailed", f"Pi refused {command}: {record.get('error')}")
        return record.get("data") or {}

    def post(self, record: Record) -> None:
        """Send a record that has no answer."""
        self._writer.write(json.dumps(record).encode() + b"\n")

    @property
    def died(self) -> bool:
        """Whether it has ended, and we have not ended it."""
        return self.gone.done() and not self._ending

    @property
    def was_killed(self) -> bool:
        """Whether it was ended by a signal that a process does not send to itself, and not for the memory it used."""
        return self.died and -self.gone.result() in _KILLS and not self._starved

    @property
    def _starved(self) -> bool:
        return self.gone.result() == -signal.SIGKILL and count_killed_for_memory() > self._killed_before

    def explain(self) -> str:
        """How it ended, with its last words."""
        code = self.gone.result() if self.gone.done() else None
        if self._fault:
            return f"what Pi said could not be taken: {self._fault}"
        how = f"was killed by signal {-code}" if code is not None and code < 0 else f"exited with code {code}"
        if code == -signal.SIGKILL:
            memory = "the kernel because memory ran out: raise sandbox.resources.limits.memory"
            how += f" (by {memory if self._starved else 'somebody in the sandbox'})"
        words = "; ".join(self._stderr.lines(10))
        return f"Pi {how}{': ' + words if words else ''}"

    async def close(self) -> None:
        """Let it end, by its input's end, then by signals; returns when it is gone."""
        self._ending = self._ending or not self.gone.done()
        self._writer.close()
        if not await self.child.wait(_EXIT_LIMIT):
            await self.kill()
        await asyncio.wait([self.gone], timeout=_EXIT_LIMIT)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for transport in self._transports:
            transport.close()  # a descendant may hold the other end for ever

    async def kill(self) -> None:
        """End it by signals: first the one it can answer."""
        self._ending = True
        self.child.send(signal.SIGTERM)
        if not await self.child.wait(_TERM_LIMIT):
            self.child.kill_group()

    async def _listen(self, out: int, err: int) -> None:
        (stdout, one), (stderr, two) = await open_reader(out), await open_reader(err)
        self._transports += [one, two]
        reading = asyncio.create_task(self._read(stdout))
        draining = asyncio.create_task(drain(stderr, self._stderr))
        self._tasks = [reading, draining, asyncio.create_task(self._watch(reading, draining))]

    async def _watch(self, *streams: asyncio.Task[None]) -> None:
        code = await self.child.exited
        await asyncio.wait(streams, timeout=_LAST_WORDS)
        self.gone.set_result(code)

    async def _read(self, reader: asyncio.StreamReader) -> None:
        lines = LineSplitter()
        try:
            while chunk := await reader.read(_CHUNK):
                for line in lines.feed(chunk):
                    if record := parse_record(line):
                        self._take(record)
        except Exception as error:  # whatever it is, a turn that nobody listens to must not go on
            _log.exception("cannot take what Pi said")
            self._fault, self._ending = repr(error), True
            self.child.kill_group()

    def _take(self, record: Record) -> None:
        waiting = self._waiting.get(str(record.get("id"))) if record.get("type") == "response" else None
        if waiting is None:
            self._on_record(record)
        elif not waiting.done():
            waiting.set_result(record)


class _Kind(msgspec.Struct):
    type: str = ""


def parse_record(line: bytes) -> Record | None:
    """A line of Pi's output; None for what is no JSON object. Of records that are only signals, nothing but their type.

    `agent_end` alone repeats every message of a run, tens of megabytes that would be built and thrown away.
    """
    with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
        kind = msgspec.json.decode(line, type=_Kind).type
        if kind in _SIGNALS:
            return {"type": kind}
        record = msgspec.json.decode(line)
        return record if isinstance(record, dict) else None
    with contextlib.suppress(ValueError, RecursionError):  # half a surrogate pair: the slower reader takes it
        record = json.loads(line.decode("utf-8", "replace"))
        return record if isinstance(record, dict) else None
    return None
