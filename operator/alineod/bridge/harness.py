"""What the bridge asks of any harness. Pi is the first; nothing here knows it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from alineod.wire.turns import Session, TurnError, TurnState, Usage
from alineod.wire.usage import NO_USAGE


@dataclass(frozen=True)
class Job:
    """One prompt for the harness. `env` is its whole environment.

    `expected` is where the conversation must stand: the session of the last clean turn. `untouched`: nothing was added
    to it since, so that anything behind it is a half turn. Without `expected` the conversation is a new one.
    """

    turn: int
    turn_id: str
    prompt: str
    env: Mapping[str, str]
    expected: Session | None = None
    untouched: bool = False


@dataclass(frozen=True)
class Outcome:
    """How the harness ended a job: clean, failed, aborted, or interrupted by its own death.

    `text` is the last assistant text, or what survived.

    Where it has not `settled`, half a turn may stand in the stored conversation.
    """

    state: TurnState
    text: str = ""
    error: TurnError | None = None
    usage: Usage = NO_USAGE
    session: Session | None = None  # of a clean turn
    tools: tuple[str, ...] = ()
    settled: bool = True


class Listener(Protocol):
    """Hears what happens in a turn, in order. Must not block."""

    def event(self, name: str, data: dict[str, Any]) -> None:
        """One of the journal's events."""

    def text(self, delta: str) -> None:
        """More of the running message."""

    def reset(self) -> None:
        """The text of the running message so far is void: a retry begins it anew."""


class Run(Protocol):
    """A job under way."""

    async def finish(self) -> Outcome:
        """Wait until the harness has settled and its process is gone. A failure is an outcome, not an exception."""

    async def abort(self) -> None:
        """End it: by asking, then by signals. Afterwards `finish` returns soon."""


class Harness(Protocol):
    """One kind of harness, configured."""

    @property
    def name(self) -> str: ...

    async def probe(self, env: Mapping[str, str]) -> None:
        """See that it starts and knows its model.

        Raises:
            AlineoError: reason `HarnessFailed`, with its own words.
        """

    def begin(self, job: Job, listener: Listener) -> Run:
        """Start a job; `finish` tells what came of it."""

    def rewind(self, session: Session | None) -> None:
        """Take from the stored conversation what came after `session`; all of it without one. Nothing may run."""
