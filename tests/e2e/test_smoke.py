"""A swarm that has done its work, as the API server, the control API, the bucket and the ledger show it."""

import hashlib
import json
import re
from typing import Any

import pytest
from pykube.objects import Pod

from hack.demo.api import ControlApi
from tests.e2e.survey import ALIASES, LEAD_SAYS, NAME, REPORT, build_survey
from tests.support.e2e_expect import (
    compute_kstatus,
    find_condition,
    has_checkpoint,
    has_condition,
    has_turn,
    in_phase,
    is_current,
)
from tests.support.e2e_ledger import check_unbroken, names_of, select, the_one
from tests.support.e2e_objects import Agent, Json, Swarm, bash, play, text
from tests.support.e2e_parts import Bucket, ScriptedModel, read_archive
from tests.support.e2e_tables import parse_header, parse_table
from tests.support.e2e_world import World

pytestmark = pytest.mark.smoke

CHAIN = ["agent.spawned", "agent.state_changed", "agent.provisioned", "agent.turn_started", "agent.turn_ended"]


@pytest.fixture(scope="module")
def survey(world: World, space: str) -> dict[str, Json]:
    """The agents by short name, done and saved."""
    world.apply(space, build_survey())
    return {
        alias: world.wait_agent(space, f"{NAME}-{alias}", in_phase("Done") & has_checkpoint(1) & has_condition("Ready"))
        for alias in ALIASES
    }


@pytest.fixture(scope="module")
def rows(world: World, space: str, survey: dict[str, Json]) -> list[Json]:
    """The run's ledger."""
    return world.read_ledger(run=f"{space}/{NAME}")


@pytest.mark.behaviour("1.1", "1.2", "2.6")
def test_every_entry_becomes_an_agent_that_its_swarm_owns(world: World, space: str, survey: dict[str, Json]) -> None:
    swarm = world.wait_swarm(space, NAME, is_current())
    for alias, agent in survey.items():
        assert agent["metadata"]["ownerReferences"][0]["uid"] == swarm["metadata"]["uid"]
        assert agent["metadata"]["labels"]["alineo.dev/swarm"] == NAME
        assert agent["spec"]["alias"] == alias
        assert agent["status"]["outcome"] == "Success"
    assert survey["left"]["metadata"]["labels"]["alineo.dev/parent"] == "lead"


@pytest.mark.behaviour("1.4", "4.10")
def test_a_sandbox_is_a_pod_named_by_its_incarnation_and_holds_no_key_of_the_bucket(
    world: World, space: str, survey: dict[str, Json]
) -> None:
    pods = {pod["metadata"]["name"]: pod for pod in world.read_all(Pod, space)}
    assert sorted(pods) == sorted(f"{NAME}-{alias}-1" for alias in ALIASES)
    for pod in pods.values():
        secrets = set(re.findall(r'"secret": \{[^}]*"name": "([^"]+)"', json.dumps(pod["spec"])))
        assert secrets <= {"model"}
        assert "AWS_" not in json.dumps(pod["spec"])
        assert pod["spec"]["automountServiceAccountToken"] is False


@pytest.mark.behaviour("2.20")
def test_kubectl_get_agents_prints_the_columns(world: World, space: str, survey: dict[str, Json]) -> None:
    printed = world.kubectl(space, "get", "agents")
    assert parse_header(printed) == [
        "NAME", "PHASE", "SWARM", "PARENT", "TURN", "CHECKPOINT", "SAVED", "RUNG", "RESTARTS", "AGE"
    ]  # fmt: skip
    rows = {row["NAME"]: row for row in parse_table(printed)}
    left = rows[f"{NAME}-left"]
    assert {key: left[key] for key in ("PHASE", "SWARM", "PARENT", "TURN", "CHECKPOINT", "RUNG", "RESTARTS")} == {
        "PHASE": "Done", "SWARM": NAME, "PARENT": "lead", "TURN": "1", "CHECKPOINT": "1", "RUNG": "", "RESTARTS": "0"
    }  # fmt: skip
    assert re.fullmatch(r"\d+[smh]\d*s?", left["SAVED"])
    assert re.fullmatch(r"\d+[smh]\d*s?", left["AGE"])
    assert rows[f"{NAME}-lead"]["PARENT"] == ""


@pytest.mark.behaviour("2.21")
def test_kubectl_get_agents_wide_adds_pod_node_and_outcome(world: World, space: str, survey: dict[str, Json]) -> None:
    printed = world.kubectl(space, "get", "agents", "-o", "wide")
    assert parse_header(printed)[-3:] == ["POD", "NODE", "OUTCOME"]
    row = next(row for row in parse_table(printed) if row["NAME"] == f"{NAME}-left")
    pod = world.read(Pod, space, f"{NAME}-left-1")
    assert pod is not None
    assert (row["POD"], row["NODE"], row["OUTCOME"]) == (f"{NAME}-left-1", pod["spec"]["nodeName"], "Success")


@pytest.mark.behaviour("2.22")
def test_kubectl_get_swarms_prints_the_columns(world: World, space: str, survey: dict[str, Json]) -> None:
    world.wait_swarm(space, NAME, is_current())
    printed = world.kubectl(space, "get", "swarms")
    assert parse_header(printed) == ["NAME", "READY", "AGENTS", "INTERRUPTED", "LOST", "AGE"]
    row = parse_table(printed)[0]
    assert [row[key] for key in ("NAME", "READY", "AGENTS", "INTERRUPTED", "LOST")] == [
        NAME, "True", "4/4", "False", "False"
    ]  # fmt: skip
    short, long = (world.kubectl(space, "get", kinds, "-o", "name") for kinds in ("sw,ag", "swarms,agents"))
    assert short == long


@pytest.mark.behaviour("2.11", "2.12", "2.13", "2.14", "2.16", "2.18")
def test_conditions_of_an_agent_say_that_it_is_where_it_should_be(survey: dict[str, Json]) -> None:
    for agent in survey.values():
        seen = {c["type"]: c["status"] for c in agent["status"]["conditions"]}
        assert seen == {
            "Ready": "True", "Reconciling": "False", "Stalled": "False", "Running": "False", "Interrupted": "False",
            "Lost": "False", "Checkpointed": "True", "UpToDate": "True",
        }  # fmt: skip
        for condition in agent["status"]["conditions"]:
            assert condition["observedGeneration"] == agent["metadata"]["generation"]
            assert re.fullmatch(r"[A-Z]\w+", condition["reason"])
            assert condition["lastTransitionTime"].endswith("Z")
        assert compute_kstatus(agent) == "Current"


@pytest.mark.behaviour("2.17", "2.19")
def test_conditions_of_a_swarm_say_that_it_is_done(world: World, space: str, survey: dict[str, Json]) -> None:
    swarm = world.wait_swarm(space, NAME, has_condition("Ready") & has_condition("LedgerReplicated"))
    seen = {c["type"]: c["status"] for c in swarm["status"]["conditions"]}
    assert seen == {
        "Ready": "True", "Reconciling": "False", "Stalled": "False", "Interrupted": "False", "Lost": "False",
        "LedgerReplicated": "True",
    }  # fmt: skip
    assert compute_kstatus(swarm) == "Current"
    world.kubectl(space, "wait", "--for=condition=Ready", f"swarm/{NAME}", "--timeout=5s")


@pytest.mark.behaviour("2.23")
def test_status_is_a_summary(world: World, space: str, survey: dict[str, Json]) -> None:
    for agent in survey.values():
        said = json.dumps(agent["status"])
        assert LEAD_SAYS not in said
        assert "Result of" not in said
        assert len(said) < 8192


@pytest.mark.behaviour("3.1")
def test_the_result_is_the_last_text(api: ControlApi, space: str, survey: dict[str, Json]) -> None:
    answer = api.result(f"{space}/{NAME}-writer")
    assert answer.status == 200
    assert (answer.body["turn"], answer.body["outcome"], answer.body["result"]) == (1, "success", REPORT)


@pytest.mark.behaviour("6.1")
def test_a_child_starts_with_its_parents_files_and_without_its_conversation(
    survey: dict[str, Json], space: str, model: ScriptedModel
) -> None:
    asked = [one for one in model.find("Work on part 1.") if _belongs(one, "Result of left.")][-2:]
    first, second = asked
    assert [said.strip() for said in first["users"]][-1:] == ["Work on part 1."]
    assert not any("Split the question" in said for said in first["users"])
    assert "north\nremembered" in second["tool_results"][-1]


def _belongs(request: Json, words: str) -> bool:
    return words in json.dumps(request) or bool(request["step"])


@pytest.mark.behaviour("6.5", "6.6", "6.3")
def test_who_waited_reads_the_results(survey: dict[str, Json], model: ScriptedModel) -> None:
    read = model.find("Write the report.")[-1]["tool_results"][-1]
    assert "Result of left." in read
    assert "Result of right." in read
    inputs: dict[str, Any] = json.loads(read[read.index("{") :])
    assert inputs["left"]["outcome"] == "success"
    assert inputs["left"]["path"] == "/inputs/left.txt"
    assert inputs["__wait"]["mode"].lower() == "quorum"


@pytest.mark.behaviour("2.1", "6.3", "1.8")
def test_nobody_starts_before_what_it_waits_for(rows: list[Json], space: str) -> None:
    settled = {alias: the_one(rows, "handle.settled", agent=f"{space}/{NAME}-{alias}")["seq"] for alias in ALIASES}
    started = {alias: the_one(rows, "agent.turn_started", agent=f"{space}/{NAME}-{alias}")["seq"] for alias in ALIASES}
    assert started["left"] > settled["lead"]
    assert started["right"] > settled["lead"]
    assert started["writer"] > max(settled["left"], settled["right"])
    made = the_one(rows, "agent.provisioned", agent=f"{space}/{NAME}-left")["seq"]
    assert made > the_one(rows, "wait.resolved", agent=f"{space}/{NAME}-left")["seq"]


@pytest.mark.behaviour("1.3", "3.13", "8.1", "8.2")
def test_the_ledger_tells_an_agents_life_in_order(rows: list[Json], space: str, survey: dict[str, Json]) -> None:
    lead = f"{space}/{NAME}-lead"
    told = names_of(rows, lead)
    assert [name for name in dict.fromkeys(told) if name in CHAIN] == CHAIN
    assert {"agent.checkpointed", "handle.settled"} <= set(told)
    assert the_one(rows, "run.started")["payload"]["uid"]
    turn = the_one(rows, "agent.turn_started", agent=lead)
    assert turn["payload"]["turnId"] == survey["lead"]["status"]["turn"]["id"]
    ended = select(rows, "harness.tool.ended", agent=lead)
    assert f"id={turn['payload']['turnId']}" in json.dumps(ended)


@pytest.mark.behaviour("1.7", "8.3", "8.4")
def test_the_ledger_has_no_gap_and_an_unbroken_chain(world: World, rows: list[Json]) -> None:
    check_unbroken(world.read_ledger())
    leader = world.find_leader()
    command = ("exec", leader, "--container=operator", "--", "alineod", "ledger", "verify")
    assert "chain intact" in world.kubectl(world.release.namespace, *command)


@pytest.mark.behaviour("4.1", "4.2", "4.3", "4.4", "4.7")
def test_a_checkpoint_lies_in_the_bucket_as_the_ledger_says(
    bucket: Bucket, rows: list[Json], space: str, survey: dict[str, Json]
) -> None:
    said = the_one(rows, "agent.checkpointed", agent=f"{space}/{NAME}-left", turn=1)["payload"]
    assert said["remoteRef"] == survey["left"]["status"]["checkpoint"]["remoteRef"]
    archive = bucket.read(said["remoteRef"])
    assert len(archive) == said["bytes"]
    assert hashlib.sha256(archive).hexdigest() == said["sha256"]
    assert bucket.list(f"alineod/checkpoints/{space}/{NAME}-left/") == [said["remoteRef"]]
    files = read_archive(archive)
    assert files["home/mine"] == b"left\n"
    assert files["workspace/plan.md"] == b"north|south\n"
    head, manifest = json.loads(files["alineo/head.json"]), json.loads(files["alineo/manifest.json"])
    assert (head["agent"], head["turn"]) == (f"{space}/{NAME}-left", 1)
    assert head["session"]["leaf"]
    assert manifest["files"] >= 2
    journal = [json.loads(line) for line in files["alineo/journal.jsonl"].splitlines()]
    assert journal[-1]["data"]["text"] == "Result of left."


@pytest.mark.behaviour("7.1", "7.2", "1.3")
def test_a_prompt_becomes_the_next_turn(world: World, api: ControlApi, space: str, survey: dict[str, Json]) -> None:
    key = f"{space}/{NAME}-right"
    accepted = api.prompt(key, play(bash("sleep 1"), text("Second answer.")), key="once")
    assert (accepted.status, accepted.body["turn"]) == (202, 2)
    assert api.result(key, turn=2).status == 202
    assert api.prompt(key, play(bash("sleep 1"), text("Second answer.")), key="once").body["turn"] == 2
    held = api.result(key, turn=2, wait=30)
    assert (held.status, held.body["result"]) == (200, "Second answer.")
    assert api.result(key, turn=1).body["result"] == "Result of right."
    world.wait_agent(space, f"{NAME}-right", has_turn(2, "Clean") & has_checkpoint(2))


@pytest.mark.behaviour("7.11", "7.12", "7.15")
def test_the_control_api_refuses_in_words(world: World, api: ControlApi, space: str, survey: dict[str, Json]) -> None:
    agent = f"/v1/agents/{space}/{NAME}-lead"
    empty = api.call("POST", f"{agent}/prompt", {"prompt": " "})
    assert (empty.status, empty.body["title"]) == (400, "InvalidBody")
    wrong = api.call("POST", f"{agent}/prompt", {"prompt": 7})
    assert wrong.status == 400
    assert "prompt" in wrong.body["detail"]
    assert api.call("GET", f"{agent}/result?wait=soon").status == 400
    assert api.call("GET", f"{agent}/result", token="").status == 401
    assert api.call("GET", f"{agent}/result", token="nobody").status == 401
    stranger = api.call("GET", f"/v1/agents/{world.release.namespace}/x/result")
    assert stranger.status == 403
    assert "agents/result" in stranger.body["detail"]
    assert api.result(f"{space}/nobody").status == 404
    assert api.result(f"{space}%2F{NAME}-lead").status == 200


@pytest.mark.behaviour("11.19")
def test_applying_twice_changes_nothing(world: World, space: str, survey: dict[str, Json]) -> None:
    before = _versions(world, space)
    seq = world.read_ledger()[-1]["seq"]
    assert "unchanged" in world.apply(space, build_survey())
    assert _versions(world, space) == before
    assert world.read_ledger()[-1]["seq"] == seq


def _versions(world: World, space: str) -> dict[str, str]:
    return {
        f"{kind.kind}/{one['metadata']['name']}": one["metadata"]["resourceVersion"]
        for kind in (Swarm, Agent, Pod)
        for one in world.read_all(kind, space)
    }


def test_kubectl_describe_tells_what_happened(world: World, space: str, survey: dict[str, Json]) -> None:
    described = world.kubectl(space, "describe", "agent", f"{NAME}-left")
    for reason in ("Provisioned", "TurnStarted", "TurnEnded"):
        assert reason in described
    assert find_condition(survey["left"], "Ready")["reason"] in described
