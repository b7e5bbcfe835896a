"""What a term opens is closed again when the rest does not open."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from alineod.app import opening
from alineod.errors import Denied


class LedgerSoFar:
    """A ledger that was opened, or is being opened, beside the rest."""

    def __init__(self, after: asyncio.Event) -> None:
        self.closed, self._after = False, after

    async def open(self, *_: object) -> Any:
        await self._after.wait()
        return self

    async def close(self) -> None:
        self.closed = True


async def see(*_: object) -> None:
    """The CRDs are there."""


@pytest.fixture
def ledger(monkeypatch: pytest.MonkeyPatch) -> LedgerSoFar:
    after = asyncio.Event()
    after.set()
    made = LedgerSoFar(after)
    monkeypatch.setattr(opening, "_begin_to_see", see)
    monkeypatch.setattr(opening, "_begin_ledger", made.open)
    return made


async def open_all() -> opening.Opened:
    nothing: Any = SimpleNamespace()
    return await opening.open_all(nothing, nothing, nothing, 1, nothing)


async def test_a_stop_while_the_cluster_is_identified_closes_the_ledger(
    ledger: LedgerSoFar, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = asyncio.Event()

    async def identify(*_: object) -> str:
        asked.set()
        await asyncio.Event().wait()
        return ""

    monkeypatch.setattr(opening, "_identify", identify)
    task = asyncio.create_task(open_all())
    await asked.wait()
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ledger.closed


async def test_a_part_that_cannot_be_opened_closes_the_ledger(
    ledger: LedgerSoFar, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def identify(*_: object) -> str:
        await asyncio.sleep(0.01)
        raise Denied("Forbidden", "no")

    monkeypatch.setattr(opening, "_identify", identify)
    with pytest.raises(ExceptionGroup):
        await open_all()
    assert ledger.closed


async def test_what_is_whole_stays_open(ledger: LedgerSoFar, monkeypatch: pytest.MonkeyPatch) -> None:
    async def identify(*_: object) -> str:
        return "cluster"

    monkeypatch.setattr(opening, "_identify", identify)
    assert (await open_all()).cluster == "cluster"
    assert not ledger.closed
