"""A bridge that is asked to end comes to its end, whatever it can no longer write."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from alineod.bridge.cut import Packer
from alineod.bridge.harness import Job, Listener, Outcome
from alineod.bridge.journal import Journal
from alineod.bridge.prepare import Preparation
from alineod.bridge.turns import Turns
from alineod.wire.turns import JournalRecord, Session, TurnRequest, TurnState


class EndlessRun:
    """A job that ends when it is ended."""

    def __init__(self) -> None:
        self._over = asyncio.Event()

    async def finish(self) -> Outcome:
        await self._over.wait()
        return Outcome(TurnState.ABORTED)

    async def abort(self) -> None:
        self._over.set()


class EndlessHarness:
    """Its jobs never end by themselves."""

    name = "endless"

    async def probe(self, env: Mapping[str, str]) -> None:
        pass

    def begin(self, job: Job, listener: Listener) -> EndlessRun:
        return EndlessRun()

    def rewind(self, session: Session | None) -> None:
        pass


class Ready:
    """Everything is there."""

    def read_environment(self) -> dict[str, str]:
        return {}


class FullJournal(Journal):
    """Its disk is full when the end of a turn is to be written."""

    def append(self, turn: int, turn_id: str, event: str, data: dict[str, Any]) -> JournalRecord:
        if event == "turn.ended":
            raise OSError(28, "No space left on device")
        return super().append(turn, turn_id, event, data)


async def test_a_shutdown_ends_where_the_end_of_the_turn_cannot_be_written(tmp_path: Path) -> None:
    journal = FullJournal(tmp_path, lambda: 0.0)
    preparation, packer = cast("Preparation", Ready()), cast("Packer", None)
    clock = asyncio.get_running_loop().time
    turns = Turns(journal, EndlessHarness(), preparation, packer, lambda: None, clock)
    turns.start(TurnRequest(turn=1, turn_id="t1", prompt="never end"))
    async with asyncio.timeout(10):
        await turns.drain(0.0, 0.0)
    assert isinstance(await turns.broken, OSError)
    journal.close()
