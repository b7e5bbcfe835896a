"""The small decisions of the fault matrix: who is at rest, what was struck, what the scene is made of."""

import json
from pathlib import Path
from typing import Any

import pytest

from hack.faults.collect import build_look, join_logs, parse_turn
from hack.faults.groups import find_group
from hack.faults.operators import choose_victim
from hack.faults.rest import NO_TURN, find_unrest
from hack.faults.sandboxes import is_harness, is_replaced
from hack.faults.scene import FIRST, Needs, build_ask, build_first_swarm, build_late_agents, build_struck, name_of
from hack.faults.strike_bucket import damage
from hack.faults.table import LATER_COLUMNS, Column

Json = dict[str, Any]


def agent(phase: str = "Done", state: str = "Clean", ready: str = "True", saved: str = "True", words: str = "") -> Json:
    conditions = [
        {"type": "Ready", "status": ready, "reason": "R", "message": "words"},
        {"type": "Checkpointed", "status": saved, "reason": "C", "message": words},
    ]
    return {"status": {"phase": phase, "turn": {"number": 1, "state": state}, "conditions": conditions}}


def pod(ready: str = "True", container: str = "containerd://new", **metadata: str) -> Json:
    statuses = [{"name": "agent", "containerID": container}]
    conditions = [{"type": "Ready", "status": ready}]
    return {
        "metadata": metadata,
        "status": {"phase": "Running", "conditions": conditions, "containerStatuses": statuses},
    }


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        ((agent(), pod()), ""),
        ((agent("Failed", "Interrupted"), pod()), ""),
        *(((agent(saved="False", words=words), pod()), "") for words in NO_TURN),
        ((None, pod()), "object is gone"),
        ((agent("Lost"), pod()), "phase is Lost"),
        ((agent(ready="False"), pod()), "not Ready: R: words"),
        ((agent(state="Running"), pod()), "turn is not over"),
        ((agent(saved="False", words="turn 2: no"), pod()), "not saved: turn 2: no"),
        ((agent(), None), "pod is not up"),
        ((agent(), pod("False")), "pod is not up"),
        ((agent(), pod(deletionTimestamp="now")), "pod is not up"),
    ],
)
def test_rest_is_where_nothing_is_under_way(seen: tuple[Json | None, Json | None], words: str) -> None:
    found = find_unrest(*seen)
    assert (words in found) if words else found == ""


@pytest.mark.parametrize(
    ("found", "so"),
    [
        (None, True),
        (pod(), True),
        (pod(deletionTimestamp="now"), True),
        ({"metadata": {}, "status": {"phase": "Failed"}}, True),
        (pod(container="containerd://old"), False),
        ({"metadata": {}, "status": {"phase": "Running"}}, False),
    ],
)
def test_a_container_is_replaced_when_another_runs_or_its_pod_is_over(found: Json | None, so: bool) -> None:
    assert is_replaced(found, "old") is so


def test_a_damaged_archive_has_its_size_and_not_its_content() -> None:
    whole = bytes(range(256)) * 8
    assert len(damage(whole)) == len(whole)
    assert damage(whole) != whole
    assert damage(damage(whole)) == whole


def test_keys_name_their_turn() -> None:
    assert parse_turn("alineod/checkpoints/space/faults-idle/000012-3.tar.zst") == 12


@pytest.mark.parametrize(("controller", "path"), [("memory", "memory/pods/x/y"), ("cpu", "cpu/a")])
def test_a_group_is_its_controllers_own(controller: str, path: str) -> None:
    text = "12:cpuset:/b\n3:cpu,cpuacct:/a\n4:memory:/pods/x/y\n0::/z\n"
    assert find_group(text, controller) == Path("/sys/fs/cgroup") / path


@pytest.mark.parametrize(
    ("cmdline", "so"),
    [
        (b"node\0/usr/local/bin/pi\0--mode\0rpc\0--session-dir\0/root\0", True),
        (b"pi\0\0\0", True),
        (b"python\0-m\0alineod.bridge\0", False),
        (b"pip\0install\0", False),
    ],
)
def test_pi_is_known_by_its_command_or_its_title(cmdline: bytes, so: bool) -> None:
    assert is_harness(cmdline) is so


def test_a_model_that_was_started_again_has_its_log_joined() -> None:
    def one(time: float, *users: str) -> Json:
        return {"time": time, "users": list(users)}

    before, more = [one(1, "a in run-1"), one(2, "b")], one(3, "c in run-1")
    assert join_logs(before, [*before, more], "run-1") == [before[0], more]
    assert join_logs(before, [more], "run-1") == [before[0], more]
    assert join_logs([], [more], "run-1") == [more]


def test_a_look_has_the_rows_of_its_run_and_the_head_of_all() -> None:
    rows = [{"seq": n, "hash": f"h{n}", "run": run} for n, run in ((1, "s/faults"), (2, "other/faults"))]
    look = build_look("s/faults", {}, {}, rows)
    assert (list(look.rows), look.head) == (rows[:1], (2, "h2"))


def test_the_scene_has_an_agent_for_every_column_of_today() -> None:
    swarm, late = build_first_swarm("run-1", Needs(memory="1Mi", home="2Mi")), build_late_agents("run-1")
    names = {f"faults-{entry['name']}" for entry in swarm["spec"]["agents"]} | {one["metadata"]["name"] for one in late}
    assert names == {name_of(column) for column in Column if column not in LATER_COLUMNS}
    sandbox = swarm["spec"]["defaults"]["sandbox"]
    assert sandbox["resources"]["limits"] == {"memory": "1Mi"}
    assert sandbox["storage"] == {"home": {"sizeLimit": "2Mi"}}


def test_every_prompt_says_what_no_other_says() -> None:
    prompts = [build_struck(column, 2, "run-1") for column in FIRST]
    said = [prompt.partition(" <<")[0] for prompt in prompts if prompt]
    assert len(said) == len(set(said)) == 5
    assert all("run-1" in one for one in said)


def test_the_question_reads_the_file_and_the_conversation() -> None:
    words, _, steps = build_ask("Question to idle in run-1.").partition(" <<")
    assert words == "Question to idle in run-1."
    assert [next(iter(step)) for step in json.loads(steps.removesuffix(">>"))] == ["tool", "recall"]


@pytest.mark.parametrize(
    ("nodes", "leader_on", "victim"),
    [
        ({"a": "n1", "b": "n2"}, "", ""),
        ({"a": "n1", "b": "n2"}, "n1", ""),
        ({"a": "n1", "b": "n2"}, "n2", "a"),
        ({"a": "n2", "b": "n2"}, "", "b"),
        ({"a": "n2", "b": "n2"}, "n2", "b"),
        ({"a": "n2"}, "", ""),
    ],
)
def test_operators_are_moved_until_one_is_on_each_node(nodes: dict[str, str], leader_on: str, victim: str) -> None:
    assert choose_victim(nodes, "a", leader_on) == victim
