"""The thin API over a swarm in memory: who is let in, what is answered, and in what words it is refused."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import httpx
import pytest

from alineod.http.access import Guard
from alineod.http.routes import build_app, build_standby_app
from alineod.kube.gateway import Identity
from alineod.kube.health import Health
from alineod.kube.objects import PODS, SWARMS
from alineod.reconcile.places import find_holders
from tests.unit.http.conftest import build_health
from tests.unit.reconcile.simulation import NAMESPACE, Simulation
from tests.unit.reconcile.test_crash_points import SWARM

PROMPT = f"/v1/agents/{NAMESPACE}/survey-left/prompt"
RESULT = f"/v1/agents/{NAMESPACE}/survey-left/result"
ADA = {"authorization": "Bearer ada"}


@pytest.fixture
async def client(simulation: Simulation, health: Health) -> AsyncIterator[httpx.AsyncClient]:
    app = build_app(simulation.world, Guard(simulation.gateway, simulation.clock), health)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://alineod") as client:
        yield client


async def test_a_prompt_becomes_a_turn_and_its_result_is_waited_for(
    client: httpx.AsyncClient, simulation: Simulation
) -> None:
    answer = await client.post(PROMPT, json={"prompt": "go on", "idempotencyKey": "k1"}, headers=ADA)
    assert (answer.status_code, answer.json()["turn"]) == (202, 2)
    waiting = asyncio.create_task(client.get(f"{RESULT}?turn=2&wait=60", headers=ADA))
    await asyncio.sleep(0)
    await simulation.settle()
    result = (await waiting).json()
    assert (result["turn"], result["outcome"], result["result"]) == (2, "success", "did: go on")


async def test_a_repeat_gives_the_first_answer_and_another_body_is_refused(
    client: httpx.AsyncClient, simulation: Simulation
) -> None:
    body = {"prompt": "go on", "idempotencyKey": "k1"}
    first = await client.post(PROMPT, json=body, headers=ADA)
    await simulation.settle()
    assert (await client.post(PROMPT, json=body, headers=ADA)).json() == first.json()
    await simulation.settle()
    assert [prompt for _, prompt in simulation.sandboxes.asked].count("go on") == 1
    other = await client.post(PROMPT, json=body | {"prompt": "something else"}, headers=ADA)
    assert (other.status_code, other.json()["title"]) == (409, "IdTaken")


async def test_the_result_of_a_prompt_is_asked_for_by_its_key(
    client: httpx.AsyncClient, simulation: Simulation
) -> None:
    await client.post(PROMPT, json={"prompt": "go on", "idempotencyKey": "k1"}, headers=ADA)
    await simulation.settle()
    assert (await client.get(f"{RESULT}?idempotencyKey=k1", headers=ADA)).json()["result"] == "did: go on"
    both = await client.get(f"{RESULT}?idempotencyKey=k1&turn=2", headers=ADA)
    assert (both.status_code, both.json()["title"]) == (400, "InvalidQuery")
    never = await client.get(f"{RESULT}?idempotencyKey=k9", headers=ADA)
    assert (never.status_code, never.json()["title"]) == (404, "PromptNotFound")


async def test_a_result_that_is_not_there_yet(client: httpx.AsyncClient) -> None:
    answer = await client.get(f"{RESULT}?turn=2", headers=ADA)
    assert (answer.status_code, answer.json()["outcome"]) == (202, None)
    never = await client.get(f"{RESULT}?turn=9", headers=ADA)
    assert (never.status_code, never.json()["title"]) == (404, "TurnNotFound")
    assert (await client.get(f"{RESULT}?turn=1", headers=ADA)).json()["result"] == "did: part one"


async def test_an_ended_agent_is_not_live(client: httpx.AsyncClient, simulation: Simulation) -> None:
    swarm = simulation.read(SWARMS, "survey")
    await simulation.gateway.delete(SWARMS, NAMESPACE, "survey", uid=swarm["metadata"]["uid"])
    await simulation.settle()
    answer = await client.post(PROMPT, json={"prompt": "go on"}, headers=ADA)
    assert (answer.status_code, answer.json()["title"]) == (409, "NotLive")
    assert not simulation.gateway.read_all(PODS)


@pytest.mark.parametrize(
    ("path", "headers", "body", "status", "title", "words"),
    [
        (PROMPT, {}, {"prompt": "p"}, 401, "Unauthenticated", "kubectl create token"),
        (PROMPT, {"authorization": "Bearer eve"}, {"prompt": "p"}, 401, "Unauthenticated", "token"),
        (PROMPT, ADA, {"prompt": " "}, 400, "InvalidBody", "prompt is empty"),
        (PROMPT, ADA, {}, 400, "InvalidBody", "prompt"),
        (PROMPT, ADA, {"prompt": 7}, 400, "InvalidBody", "$.prompt"),
        (PROMPT.replace("left", "nobody"), ADA, {"prompt": "p"}, 404, "AgentNotFound", "kubectl get agents"),
        (PROMPT, ADA, {"prompt": "p" * 131_073}, 413, "RecordTooLarge", "131072 are the most"),
        ("/v1/agents/a/b/prompt", ADA, {"prompt": "p" * (2 << 20)}, 413, "RecordTooLarge", "larger"),
    ],
)
async def test_refusals(
    client: httpx.AsyncClient, path: str, headers: dict[str, str], body: object, status: int, title: str, words: str
) -> None:
    answer = await client.post(path, json=body, headers=headers)
    assert answer.headers["content-type"] == "application/problem+json"
    assert (answer.status_code, answer.json()["title"]) == (status, title)
    assert words in answer.json()["detail"]


async def test_text_that_a_ledger_cannot_hold_is_replaced_and_runs_once(
    client: httpx.AsyncClient, simulation: Simulation
) -> None:
    body = {"prompt": "nul\x00 line\u2028end", "idempotencyKey": "k\u2028"}
    first = await client.post(PROMPT, json=body, headers=ADA)
    assert first.status_code == 202
    assert (await client.post(PROMPT, json=body, headers=ADA)).json() == first.json()
    await simulation.settle()
    assert [prompt for _, prompt in simulation.sandboxes.asked].count("nul\ufffd line\nend") == 1


async def test_a_new_run_does_not_answer_with_the_former_one_s_results(
    client: httpx.AsyncClient, simulation: Simulation
) -> None:
    swarm = simulation.read(SWARMS, "survey")
    await simulation.gateway.delete(SWARMS, NAMESPACE, "survey", uid=swarm["metadata"]["uid"])
    await simulation.settle()
    slow = [{**entry, "prompt": "HANG"} for entry in SWARM["spec"]["agents"][:2]]
    slow[1].pop("waitFor")
    simulation.gateway.write(SWARMS, {**SWARM, "spec": {**SWARM["spec"], "agents": slow}})
    await simulation.settle()
    assert (await client.get(f"{RESULT}?turn=1", headers=ADA)).status_code == 202


async def test_a_misspelt_field_and_an_unknown_path_are_said(client: httpx.AsyncClient) -> None:
    answer = await client.post(PROMPT, json={"prompt": "p", "idempotencykey": "q"}, headers=ADA)
    assert (answer.status_code, answer.json()["title"]) == (400, "InvalidBody")
    assert "idempotencykey" in answer.json()["detail"]
    for answer in (await client.get("/v1/nothing"), await client.get(PROMPT)):
        assert answer.headers["content-type"] == "application/problem+json"
    long = await client.get(f"{RESULT}?turn={'9' * 5000}", headers=ADA)
    assert long.status_code == 400


async def test_the_cluster_s_rules_decide_who_may(client: httpx.AsyncClient, simulation: Simulation) -> None:
    simulation.gateway.allows = lambda query: query.subresource == "result"
    answer = await client.post(PROMPT, json={"prompt": "p"}, headers=ADA)
    assert answer.status_code == 403
    assert "resources [agents/prompt] and verbs [create]" in answer.json()["detail"]
    assert (await client.get(RESULT, headers=ADA)).status_code == 200


async def test_a_number_that_is_none(client: httpx.AsyncClient) -> None:
    answer = await client.get(f"{RESULT}?turn=-1", headers=ADA)
    assert (answer.status_code, answer.json()["title"]) == (400, "InvalidQuery")


async def test_a_pod_that_the_ledger_does_not_hold_is_told_to_come_back(
    client: httpx.AsyncClient, simulation: Simulation
) -> None:
    extra = {"authentication.kubernetes.io/pod-uid": ("stale",)}
    simulation.gateway.tokens["pod"] = Identity("system:serviceaccount:x", extra=extra, audiences=("alineod",))
    answer = await client.post("/v1/sandbox/start", json={"incarnation": 1}, headers={"authorization": "Bearer pod"})
    assert (answer.status_code, answer.json()["title"]) == (425, "PodNotRecorded")


@pytest.mark.parametrize(("left", "resting", "reason"), [(0, False, "WaitingForPlace"), (1, True, "RestoreWaiting")])
async def test_a_restore_that_has_to_wait_is_told_to_come_back(
    simulation: Simulation, health: Health, *, left: int, resting: bool, reason: str
) -> None:
    simulation.kubelets.slow = True
    simulation.delete_pod("survey-left")
    for _ in range(9):
        await simulation.step()
    (pod,) = [pod for pod in simulation.gateway.read_all(PODS) if pod["metadata"]["name"] == "survey-left-2"]
    extra = {"authentication.kubernetes.io/pod-uid": (pod["metadata"]["uid"],)}
    simulation.gateway.tokens["pod"] = Identity("system:serviceaccount:x", extra=extra, audiences=("alineod",))
    world = replace(simulation.world, restores_at_once=left)
    transport = httpx.ASGITransport(build_app(world, Guard(simulation.gateway, simulation.clock), health))
    body = {"incarnation": 2, "waitingFor": "the bucket", "resting": resting}
    async with httpx.AsyncClient(transport=transport, base_url="http://alineod") as client:
        answer = await client.post("/v1/sandbox/start", json=body, headers={"authorization": "Bearer pod"})
    assert (answer.status_code, answer.json()["title"]) == (425, reason)
    assert simulation.world.term.start_waits[pod["metadata"]["uid"]].reason == reason
    assert not find_holders(simulation.world)


async def test_a_pod_that_was_replaced_is_told_so_and_nothing_is_recorded(
    client: httpx.AsyncClient, simulation: Simulation
) -> None:
    (old,) = [pod for pod in simulation.gateway.read_all(PODS) if pod["metadata"]["name"] == "survey-left-1"]
    prefix = "authentication.kubernetes.io/pod"
    extra = {f"{prefix}-uid": (old["metadata"]["uid"],), f"{prefix}-name": ("survey-left-1",)}
    simulation.gateway.tokens["pod"] = Identity(
        f"system:serviceaccount:{NAMESPACE}:default", extra=extra, audiences=("alineod",)
    )
    holder = {"authorization": "Bearer pod"}
    simulation.delete_pod("survey-left")
    await simulation.settle()
    before = len(simulation.stored.rows)
    grant = await client.post("/v1/sandbox/grants", json={"turn": 1, "incarnation": 1}, headers=holder)
    assert (grant.status_code, grant.json()["title"]) == (400, "StalePod")
    report = await client.post("/v1/sandbox/checkpoints", json={}, headers=holder)
    assert (report.status_code, report.json()["done"]) == (200, True)
    assert len(simulation.stored.rows) == before


async def test_who_does_not_lead_says_so() -> None:
    transport = httpx.ASGITransport(build_standby_app(lambda: "ask the Service", build_health(leads=False), "default"))
    async with httpx.AsyncClient(transport=transport, base_url="http://alineod") as client:
        answer = await client.get("/v1/agents/a/b/result")
    assert (answer.status_code, answer.json()["title"]) == (503, "NotLeader")
    assert int(answer.headers["retry-after"]) >= 1


@pytest.mark.parametrize("path", [RESULT, "/v1/sandbox/start", PROMPT])
async def test_a_leader_after_its_term_answers_nothing_from_memory(
    simulation: Simulation, health: Health, path: str
) -> None:
    over = replace(simulation.world, remaining=lambda: 0.0)
    transport = httpx.ASGITransport(build_app(over, Guard(simulation.gateway, simulation.clock), health))
    async with httpx.AsyncClient(transport=transport, base_url="http://alineod") as client:
        answer = await client.request("GET" if path == RESULT else "POST", path, headers=ADA)
    assert (answer.status_code, answer.json()["title"]) == (503, "LeaseLost")
    assert answer.headers["retry-after"]
