"""Child processes without asyncio's own watcher: one place reaps, so that orphans are reaped and no status is stolen.

As PID 1 of its container the bridge inherits every orphan there. A watcher per child and a `waitpid(-1)` for the rest
would race; here every exit passes through `Children.reap`, which knows its own.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from alineod.errors import Unavailable


class Child:
    """A process we started, leader of a session and a group of its own. `exited` gives its code; -N for signal N."""

    def __init__(self, pid: int, leaves_group: bool) -> None:
        self.pid = pid
        self.leaves_group = leaves_group
        self.exited: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def send(self, signum: int) -> None:
        """Signal it; nothing once it has exited. Until it is reaped its pid is nobody else's."""
        if not self.exited.done():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signum)

    def kill_group(self) -> None:
        """End it and what it started that stayed in its group."""
        if not self.exited.done():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)

    async def wait(self, seconds: float) -> bool:
        """Whether it exited within that time."""
        done, _ = await asyncio.wait([self.exited], timeout=seconds)
        return bool(done)


class Children:
    """Starts children and reaps every process that ends below us."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._children: dict[int, Child] = {}

    def install(self) -> None:
        """Reap from now on, in the running loop."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, self.reap)
        self.reap()

    def spawn(
        self, argv: Sequence[str], env: Mapping[str, str], fds: Mapping[int, int], *, leaves_group: bool = False
    ) -> Child:
        """Start `argv` in the workspace. `fds` maps the child's descriptors to ours; others are closed.

        Args:
            leaves_group: what stays in its group when it ends is left alone; else it is killed.

        Raises:
            Unavailable: reason `HarnessFailed`; the program is not there or cannot be run.
        """
        actions = [(os.POSIX_SPAWN_DUP2, ours, theirs) for theirs, ours in fds.items()]
        program = _find(argv[0], env)
        try:
            os.chdir(self._directory)  # posix_spawn knows no directory of its own; every child of ours works here
            # posix_spawn, not fork: only it undoes our blocked signals without running Python in the child.
            pid = os.posix_spawn(
                program,
                list(argv),
                dict(env),
                file_actions=actions,
                setsid=True,
                setsigmask=[],
                setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],
            )
        except OSError as error:
            raise Unavailable("HarnessFailed", f"cannot start {argv[0]} in {self._directory}: {error}") from error
        child = Child(pid, leaves_group)
        self._children[pid] = child
        return child

    def reap(self) -> None:
        """Collect whatever ended. A child of ours is looked at before it is reaped: its group is still its own."""
        while True:
            try:
                info = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if info is None:
                return
            child = self._children.pop(info.si_pid, None)
            if child is not None and not child.leaves_group:
                child.kill_group()
            _, status = os.waitpid(info.si_pid, 0)
            if child is not None:
                child.exited.set_result(os.waitstatus_to_exitcode(status))


def _find(program: str, env: Mapping[str, str]) -> str:
    """The path of a program, by the PATH its process will have."""
    if "/" in program:
        return program
    for directory in env.get("PATH", os.defpath).split(":"):
        path = os.path.join(directory or ".", program)  # noqa: PTH118  a Path would drop the leading "./"
        if os.access(path, os.X_OK):
            return path
    raise Unavailable("HarnessFailed", f"there is no program {program} in PATH; the image of the agent must have it")
