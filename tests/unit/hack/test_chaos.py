"""What the chaos run decides: which faults, what they came to, whom clients ask, and what a pod's status says."""

import io
import json
import signal
import subprocess
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hack.chaos import processes
from hack.chaos.both import find_blindness, find_faults
from hack.chaos.control_image import ENTRY, SCRIPT, build_control_image
from hack.chaos.faults import ACTS
from hack.chaos.judge import Record, describe, judge
from hack.chaos.operators import parse_operator
from hack.chaos.plan import CALM, KILLS, ZOMBIES, Kind, plan_control, plan_faults, plan_short
from hack.chaos.processes import parse_container
from hack.chaos.route import Route, decide_status
from hack.chaos.run import Outcome
from hack.chaos.tally import Tally, describe_tally

# --- the plan -----------------------------------------------------------------------------------------------------


@given(st.integers(0, 120), st.integers(0, 60), st.integers())
def test_a_plan_has_so_many_of_each_and_is_the_same_for_the_same_seed(kills: int, zombies: int, seed: int) -> None:
    plan = plan_faults(kills, zombies, seed)
    assert Counter(fault.makes_zombie for fault in plan) == Counter({False: kills, True: zombies})
    assert plan == plan_faults(kills, zombies, seed)
    assert all(CALM[0] <= fault.calm <= CALM[1] for fault in plan)


def test_the_long_plan_leaves_out_no_kind_and_another_seed_is_another_order() -> None:
    plan = plan_faults(50, 30, 1)
    counts = Counter(fault.kind for fault in plan)
    assert set(counts) == set(Kind)
    assert all(counts[kind] >= 6 for kind in KILLS)
    assert all(counts[kind] >= 10 for kind in ZOMBIES)
    assert [fault.kind for fault in plan] != [fault.kind for fault in plan_faults(50, 30, 2)]


def test_the_short_plan_takes_a_volume_and_wakes_a_zombie() -> None:
    kinds = [fault.kind for fault in plan_short(1)]
    assert {Kind.VANISH, Kind.FREEZE} <= set(kinds)
    assert Counter(fault.makes_zombie for fault in plan_short(1)) == {False: 3, True: 1}


def test_the_control_run_takes_disk_and_process_together() -> None:
    assert [fault.kind for fault in plan_control(3, 1)] == [Kind.VANISH] * 3


def test_every_kind_is_acted_out() -> None:
    assert set(ACTS) == set(Kind)


# --- the judgement ------------------------------------------------------------------------------------------------


def _record(key: str, *, answered: bool = True, agent: str = "n/a", **more: Any) -> Record:
    return Record(key, agent, 1.0, tries=1, answered=2.0 if answered else None, **more)


def _row(key: str, agent: str = "n/a", event: str = "inbox.queued") -> dict[str, Any]:
    return {"agent": agent, "event": event, "payload": {"id": key}}


@pytest.mark.parametrize(
    ("records", "rows", "lost", "doubled"),
    [
        pytest.param([_record("k1")], [_row("k1")], [], [], id="kept"),
        pytest.param([_record("k1")], [], ["k1"], [], id="acknowledged and absent"),
        pytest.param([_record("k1", answered=False)], [], [], [], id="never acknowledged"),
        pytest.param([_record("k1", answered=False)], [_row("k1")], [], [], id="kept though nobody was told"),
        pytest.param([_record("k1")], [_row("k1"), _row("k1")], [], ["k1"], id="twice"),
        pytest.param([_record("k1")], [_row("k1"), _row("k1", "n/b")], [], ["k1"], id="twice, with another agent"),
        pytest.param([_record("k1")], [_row("k1", "n/b")], ["k1"], [], id="with another agent only"),
        pytest.param([_record("k1")], [_row("k1", event="inbox.dropped")], ["k1"], [], id="another event"),
        pytest.param([_record("k1"), _record("k2")], [_row("k2")], ["k1"], [], id="one of two"),
        pytest.param([_record("k1", answered=False)], [_row("k1")] * 2, [], ["k1"], id="twice though nobody was told"),
    ],
)
def test_the_rows_are_held_against_what_clients_were_promised(
    records: list[Record], rows: list[dict[str, Any]], lost: list[str], doubled: list[str]
) -> None:
    verdict = judge(records, rows)
    assert (verdict.lost, verdict.doubled) == (lost, doubled)
    assert verdict.tried == len(records)
    assert verdict.acknowledged == sum(record.acknowledged for record in records)
    assert verdict.good is (not lost and not doubled and verdict.acknowledged > 0)


def test_a_run_in_which_nobody_was_answered_or_somebody_was_refused_shows_nothing() -> None:
    assert not judge([], []).good
    refused = judge([_record("k1"), _record("k2", answered=False, refusal="409: no")], [_row("k1")])
    assert not refused.good
    assert describe(refused)[-1] == "refused: k2 (409: no)"


def test_a_person_reads_the_counts_and_the_first_keys_that_are_lost() -> None:
    lines = describe(judge([_record(f"k{number}") for number in range(7)], []))
    assert [" ".join(line.split()) for line in lines[:4]] == [
        "tried 7",
        "acknowledged 7 (0 prompts were sent more than once)",
        "lost 7",
        "doubled 0",
    ]
    assert lines[4:] == ["lost: k0, k1, k2, k3, k4 ..."]


def _outcome(*, lost: bool = False, sound: bool = True, fenced: int = 1, stopped: str = "") -> Outcome:
    tally = Tally(Counter({Kind.KILL: 2, Kind.FREEZE: 1}), {Kind.KILL: [4.0, 9.0], Kind.FREEZE: [17.0]}, 1, fenced)
    return Outcome(tally, judge([_record("k1")], [] if lost else [_row("k1")]), [], "words", sound, stopped)


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (_outcome(), ""),
        (_outcome(lost=True), "records differ"),
        (_outcome(sound=False), "damaged"),
        (_outcome(stopped="nobody leads"), "nobody leads"),
        (_outcome(fenced=0), "1 replaced leaders did not end"),
    ],
)
def test_a_run_fails_by_a_loss_a_damaged_ledger_or_a_zombie_that_lives_on(outcome: Outcome, words: str) -> None:
    found = find_faults(outcome)
    assert len(found) == bool(words)
    assert words in "".join(found)


def test_a_control_run_fails_when_it_lost_nothing() -> None:
    assert find_blindness(_outcome())
    assert find_blindness(_outcome(lost=True, stopped="nobody leads"))
    assert not find_blindness(_outcome(lost=True))


def test_what_was_done_is_counted_by_kind() -> None:
    lines = [line.split() for line in describe_tally(_outcome().tally)]
    assert lines[0] == ["kills", "2"]
    assert lines[1][:2] == ["zombies", "1"]
    assert ["kill", "6.5", "9.0", "2"] in lines


# --- clients ------------------------------------------------------------------------------------------------------


def test_a_client_stays_with_who_answered_even_if_nobody_lists_it_any_more() -> None:
    assert Route("a").follow(["b", "c"]) == Route("a")
    assert Route().follow(["b", "c"]) == Route("b")
    assert Route().follow([]) == Route()


def test_a_client_without_an_answer_asks_the_next_one_round_and_round() -> None:
    assert Route("b").leave(["a", "b", "c"]) == Route("c")
    assert Route("c").leave(["a", "b", "c"]) == Route("a")
    assert Route("gone").leave(["a", "b"]) == Route("a")
    assert Route("a").leave([]) == Route()


@pytest.mark.parametrize(
    ("status", "meaning"),
    [
        (202, "acknowledged"),
        (404, "again"),
        (500, "again"),
        (503, "again"),
        (400, "refused"),
        (403, "refused"),
        (409, "refused"),
    ],
)
def test_what_an_answer_means(status: int, meaning: str) -> None:
    assert decide_status(status) == meaning


# --- pods and processes -------------------------------------------------------------------------------------------


def test_a_pod_says_where_it_is_what_runs_and_how_the_operator_ended() -> None:
    running = {"name": "operator", "containerID": "containerd://new", "state": {"running": {}}}
    ended = {"containerID": "containerd://old", "exitCode": 75}
    pod = {
        "metadata": {"name": "p"},
        "spec": {"nodeName": "n1"},
        "status": {
            "podIP": "10.0.0.1",
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [running | {"lastState": {"terminated": ended}}],
            "initContainerStatuses": [
                {"name": "litestream", "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {}}
            ],
        },
    }
    operator = parse_operator(pod)
    assert (operator.name, operator.node, operator.address, operator.ready) == ("p", "n1", "10.0.0.1", True)
    assert operator.containers == {"operator": "new"}
    assert operator.ends == {"old": 75}
    assert operator.backing_off


def test_a_pod_that_leaves_or_has_just_begun_is_not_ready() -> None:
    assert not parse_operator({"metadata": {"name": "p"}}).ready
    leaving = {"metadata": {"name": "p", "deletionTimestamp": "now"}}
    assert not parse_operator(leaving | {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}).ready


def test_a_container_is_known_by_its_id_in_the_cgroup_of_its_processes() -> None:
    cgroup = "4:memory:/n1/kubelet/podab/5f00\n1:cpu:/n1/kubelet/podab/5f00\n"
    assert parse_container(cgroup, ["77aa", "5f00"]) == "5f00"
    assert parse_container(cgroup, ["77aa"]) == ""


def test_signals_reach_the_processes_of_the_container_and_no_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ours, other = (subprocess.Popen(["sleep", "60"]) for _ in range(2))
    try:
        for process, container in ((ours, "5f00"), (other, "77aa")):
            (tmp_path / str(process.pid)).mkdir()
            (tmp_path / str(process.pid) / "cgroup").write_text(f"0::/n1/kubelet/podab/{container}\n")
        (tmp_path / "999999999").mkdir()  # ended while we looked
        monkeypatch.setattr(processes, "PROC", tmp_path)
        assert processes.send_signal(["5f00"], signal.SIGKILL) == 1
        assert ours.wait(10) == -signal.SIGKILL
        assert other.poll() is None
    finally:
        for process in (ours, other):
            process.kill()
            process.wait()


# --- the control run's image --------------------------------------------------------------------------------------


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    tar.addfile(entry, io.BytesIO(content))


def test_the_control_image_is_the_operator_s_with_another_entry_point(tmp_path: Path) -> None:
    config = {"rootfs": {"type": "layers", "diff_ids": ["sha256:first"]}, "config": {"Entrypoint": ["/alineod"]}}
    with tarfile.open(tmp_path / "operator.tar", "w") as tar:
        _add(tar, "manifest.json", json.dumps([{"Config": "c.json", "Layers": ["one.tar"]}]).encode())
        _add(tar, "c.json", json.dumps(config).encode())
        _add(tar, "one.tar", b"the first layer")
    ref = build_control_image("localhost/alineod/operator:1", tmp_path / "operator.tar", tmp_path / "control.tar")
    with tarfile.open(tmp_path / "control.tar") as tar:
        files = {member.name: file.read() for member in tar if (file := tar.extractfile(member)) is not None}
    image = json.loads(files["manifest.json"])[0]
    first, second = (files[layer] for layer in image["Layers"])
    written = json.loads(files[image["Config"]])
    assert image["RepoTags"] == [ref]
    assert ref != "localhost/alineod/operator:1"
    assert first == b"the first layer"
    with tarfile.open(fileobj=io.BytesIO(second)) as layer:
        assert layer.getnames() == [ENTRY]
        assert layer.getmember(ENTRY).mode == 0o755
        entry = layer.extractfile(ENTRY)
        assert entry is not None
        assert entry.read() == SCRIPT.read_bytes()
    assert written["config"] == config["config"]
    assert len(written["rootfs"]["diff_ids"]) == 2
    assert written["rootfs"]["diff_ids"][0] == "sha256:first"
