"""What a caller is answered while the ledger acknowledges nothing."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from alineod.clock import SystemClock
from alineod.domain.events import Entry
from alineod.errors import Unavailable
from alineod.http.access import Guard
from alineod.http.routes import build_app
from alineod.ledger.build import Making, build_new
from alineod.ledger.sqlite import Limits, SqliteLedger
from tests.unit.http.conftest import build_health
from tests.unit.http.test_routes import ADA, PROMPT, RESULT
from tests.unit.ledger.conftest import Gate
from tests.unit.reconcile.simulation import Simulation

FULL = Unavailable("LedgerDiskFull", "The volume of the ledger is full. Enlarge it or free space on it.")


def connect(simulation: Simulation) -> httpx.AsyncClient:
    health = build_health()
    health.set_serving()
    app = build_app(simulation.world, Guard(simulation.gateway, simulation.clock), health)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://alineod")


@pytest.mark.behaviour("9.3")
@pytest.mark.parametrize("commits", [False, True])
async def test_a_prompt_is_refused_for_now_and_its_key_gives_the_first_answer(
    simulation: Simulation, commits: bool
) -> None:
    async with connect(simulation) as client:
        simulation.ledger.fail(FULL, commits=commits)
        body = {"prompt": "go on", "idempotencyKey": "k1"}
        answer = await client.post(PROMPT, json=body, headers=ADA)
        assert (answer.status_code, answer.headers["content-type"]) == (503, "application/problem+json")
        assert int(answer.headers["retry-after"]) >= 1
        assert answer.json()["title"] == "NotAcknowledged"
        assert FULL.message in answer.json()["detail"]
        assert answer.json()["detail"].endswith("The same idempotencyKey gives the first answer: k1")
        unnamed = await client.post(PROMPT, json={"prompt": "no key of its own"}, headers=ADA)
        key = unnamed.json()["detail"].rpartition(" ")[2]

        # what is known goes on being answered
        assert (await client.get("/v1/health")).status_code == 200
        assert (await client.get(f"{RESULT}?turn=1", headers=ADA)).json()["result"] == "did: part one"

        simulation.ledger.mend()
        assert (await client.post(PROMPT, json=body, headers=ADA)).json()["turn"] == 2
        repeat = {"prompt": "no key of its own", "idempotencyKey": key}
        assert (await client.post(PROMPT, json=repeat, headers=ADA)).json()["turn"] == 3
        await simulation.settle()
    prompts = [prompt for _, prompt in simulation.sandboxes.asked]
    assert (prompts.count("go on"), prompts.count("no key of its own")) == (1, 1)


@pytest.fixture
async def held(tmp_path: Path) -> AsyncIterator[tuple[SqliteLedger, Gate]]:
    built = build_new(tmp_path / "ledger.db", Making("default", 1, 0, lambda: b"s" * 32))
    gate = Gate(silent=True)
    limits = Limits(append=3600.0, failing=0.2, close=0.1)
    ledger = SqliteLedger(tmp_path / "ledger.db", built.identity, built.state, gate, SystemClock(), limits=limits)
    yield ledger, gate
    await ledger.close()


async def test_no_client_is_held_for_as_long_as_the_bucket_is_away(
    simulation: Simulation, held: tuple[SqliteLedger, Gate]
) -> None:
    """The ledger would wait for an hour; that it fails already is known, or becomes known while a client waits."""
    ledger, gate = held
    rows = simulation.stored.rows
    entries = [Entry(id=row.id, run=row.run, agent=row.agent, body=row.body) for row in rows]
    fill = asyncio.ensure_future(ledger.append(entries))
    gate.let()
    await fill
    simulation.world = replace(simulation.world, ledger=ledger)
    async with connect(simulation) as client, asyncio.timeout(60):
        waits = asyncio.ensure_future(client.post(PROMPT, json={"prompt": "first"}, headers=ADA))
        while gate.calls < 2:  # noqa: ASYNC110  (it waits for another thread)
            await asyncio.sleep(0.005)
        gate.report(FULL)
        answers = [await waits, await client.post(PROMPT, json={"prompt": "second"}, headers=ADA)]
    assert [answer.status_code for answer in answers] == [503, 503]
    assert all(FULL.message in answer.json()["detail"] for answer in answers)
