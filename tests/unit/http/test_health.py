"""`GET /v1/health` of every process at every time, and what is served beside it."""

from dataclasses import replace

import httpx
import pytest
from starlette.types import ASGIApp

from alineod.http.access import Guard
from alineod.http.routes import build_app, build_standby_app
from alineod.kube.health import Health
from tests.unit.http.conftest import build_health
from tests.unit.http.test_routes import ADA, PROMPT, RESULT
from tests.unit.reconcile.simulation import Simulation

COUNTS = {"epoch", "agents", "running", "seq"}


async def ask(app: ASGIApp, path: str = "/v1/health", method: str = "GET") -> httpx.Response:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://alineod") as client:
        return await client.request(method, path, headers=ADA)


def build(simulation: Simulation, health: Health) -> ASGIApp:
    return build_app(simulation.world, Guard(simulation.gateway, simulation.clock), health)


@pytest.mark.behaviour("5.19")
async def test_a_standby_answers_for_itself() -> None:
    answer = await ask(build_standby_app(lambda: "ask the Service", build_health(leads=False), "default"))
    assert answer.status_code == 200
    assert answer.json() == {
        "leader": False, "phase": "standby", "message": "Standing by.", "instance": "default",
        "reconnected": 0, "toReconnect": 0,
    }  # fmt: skip


@pytest.mark.behaviour("5.19")
async def test_a_leader_that_is_opening_says_what_it_waits_for() -> None:
    health = build_health()
    health.set_waiting("the bucket", "it cannot be reached.")
    app = build_standby_app(lambda: "ask the Service", health, "default")
    body = (await ask(app)).json()
    assert (body["leader"], body["phase"]) == (True, "opening")
    assert body["message"] == "Leading, but waiting: the bucket: it cannot be reached."
    assert (await ask(app, RESULT)).status_code == 503


@pytest.mark.behaviour("5.19")
async def test_a_leader_that_reconnects_tells_how_far_it_is_and_keeps_people_waiting(simulation: Simulation) -> None:
    health, done = build_health(), 1
    health.set_reconnecting(lambda: (done, 3))
    app = build(simulation, health)
    body = (await ask(app)).json()
    assert (body["phase"], body["reconnected"], body["toReconnect"]) == ("reconnecting", 1, 2)
    assert body["message"] == "Leading, and reconnecting: 1 of 3 agents are."
    for method, path in (("GET", RESULT), ("POST", PROMPT)):
        refused = await ask(app, path, method)
        assert (refused.status_code, refused.json()["title"]) == (503, "Reconnecting")
        assert "1 of 3 agents" in refused.json()["detail"]
        assert int(refused.headers["retry-after"]) >= 1
    done = 2
    assert (await ask(app)).json()["reconnected"] == 2


async def test_a_leader_that_serves_counts_what_its_ledger_holds(simulation: Simulation, health: Health) -> None:
    health.set_reconnecting(lambda: (3, 3))
    health.set_serving()
    body = (await ask(build(simulation, health))).json()
    assert (body["phase"], body["message"], body["reconnected"], body["toReconnect"]) == ("serving", "Leading.", 3, 0)
    assert (body["epoch"], body["agents"], body["running"]) == (1, 3, 0)
    assert body["seq"] == simulation.ledger.acknowledged_seq


async def test_a_leader_after_its_term_is_none_and_counts_nothing_from_memory(simulation: Simulation) -> None:
    over = replace(simulation.world, remaining=lambda: 0.0)
    body = (await ask(build_app(over, Guard(simulation.gateway, simulation.clock), build_health(leads=False)))).json()
    assert (body["leader"], body["phase"]) == (False, "standby")
    assert not COUNTS & body.keys()
