"""The agent's setup script: once per incarnation, before the harness, in the agent's container."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from alineod.bridge.pipes import Tail, drain, open_reader
from alineod.bridge.processes import Children
from alineod.errors import Refused
from alineod.files import write_file
from alineod.wire.turns import BridgeReason

_LINES = 20  # of the script's output, shown when it fails


class _Done(msgspec.Struct, frozen=True):
    incarnation: int
    code: int
    lines: list[str]


class SetupScript:
    """Runs `script` unless the marker in `control` says that this incarnation has run it."""

    def __init__(self, script: str, control: Path, incarnation: int, children: Children) -> None:
        self._script = script
        self._control = control
        self._incarnation = incarnation
        self._children = children
        self._draining: asyncio.Task[None] | None = None

    async def run(self, env: Mapping[str, str]) -> None:
        """Run it to its end; what it leaves running in the background is left running.

        Raises:
            Refused: reason `SetupFailed`; it failed, now or before the bridge was restarted.
        """
        if not self._script.strip():
            return
        marker = self._control / "setup.json"
        done = _read_marker(marker, self._incarnation) or await self._execute(env)
        write_file(marker, msgspec.json.encode(done))
        if done.code != 0:
            how = f"killed by signal {-done.code}" if done.code < 0 else f"exit code {done.code}"
            said = "\n".join(done.lines) or "(it said nothing)"
            raise Refused(BridgeReason.SETUP_FAILED, f"sandbox.setup failed with {how}; its last lines:\n{said}")

    async def _execute(self, env: Mapping[str, str]) -> _Done:
        path = self._control / "setup.sh"
        write_file(path, self._script.encode(), 0o700)
        argv = [str(path)] if self._script.startswith("#!") else ["/bin/sh", "-e", str(path)]
        null, (ours, theirs) = os.open(os.devnull, os.O_RDONLY), os.pipe()
        try:
            child = self._children.spawn(argv, env, {0: null, 1: theirs, 2: theirs}, leaves_group=True)
        except BaseException:
            os.close(ours)
            raise
        finally:
            os.close(null)
            os.close(theirs)
        tail = Tail()
        # Read for as long as anyone writes: a service the script started must not break on a closed pipe.
        reader, _ = await open_reader(ours)
        self._draining = asyncio.create_task(drain(reader, tail))
        try:
            code = await asyncio.shield(child.exited)
        except asyncio.CancelledError:
            child.kill_group()
            raise
        await asyncio.wait([self._draining], timeout=0.2)
        return _Done(self._incarnation, code, tail.lines(_LINES))


def _read_marker(path: Path, incarnation: int) -> _Done | None:
    try:
        done = msgspec.json.decode(path.read_bytes(), type=_Done)
    except (FileNotFoundError, msgspec.DecodeError):
        return None
    return done if done.incarnation == incarnation else None
