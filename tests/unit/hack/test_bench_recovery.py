"""The recovery bench: what it takes for a step, its tables and its verdict, and the bridges that it simulates."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import aiohttp
import pytest
from aiohttp import web

from alineod.domain.facts import PodFacts, PodPhase
from alineod.reconcile import bridges as wire
from alineod.wire.turns import TurnRequest, TurnState
from hack.bench import recovery_bridges
from hack.bench.recovery_agents import build_sights
from hack.bench.recovery_kube import Json, Word
from hack.bench.recovery_pods import FILE, ask, build_bare, build_next, build_set
from hack.bench.recovery_report import BARE, CLAIM, FETCH, SYNC, Restart, Step, build_losses, build_restarts, name_size
from hack.demo.run import DemoError

LABELS = {"alineo.dev/agent": "s-home"}


def build_word(kind: str, uid: str, at: float = 0.0, node: str = "", **containers: str) -> Word:
    """What a watch says of a pod whose containers are in these states."""
    statuses = {"restore": "initContainerStatuses", "agent": "containerStatuses"}
    status = {statuses[name]: [{"name": name, "state": {state: {}}}] for name, state in containers.items()}
    metadata = {"name": uid, "uid": uid, "labels": LABELS}
    return Word(at, kind, {"metadata": metadata, "spec": {"nodeName": node} if node else {}, "status": status})


def test_each_step_is_the_first_word_that_says_it_of_the_next_pod() -> None:
    words = [
        build_word("MODIFIED", "old", 1, "n1", restore="terminated", agent="running"),
        build_word("DELETED", "old", 2, "n1", restore="terminated", agent="terminated"),
        build_word("ADDED", "new", 3),
        build_word("MODIFIED", "new", 4, "n1", restore="waiting"),
        build_word("MODIFIED", "new", 5, "n1", restore="running", agent="waiting"),
        build_word("MODIFIED", "new", 6, "n1", restore="terminated", agent="waiting"),
        build_word("MODIFIED", "new", 7, "n1", restore="terminated", agent="running"),
    ]
    sights = build_sights(build_next(LABELS, "old"), "old")
    found = {step: next(word.at for word in words if holds(word)) for step, holds in sights.items()}
    assert found == {
        Step.GONE: 2, Step.MADE: 3, Step.SCHEDULED: 4, Step.RESTORING: 5, Step.RESTORED: 6, Step.RUNS: 7,
    }  # fmt: skip


def test_a_pod_of_another_agent_is_not_the_next_one() -> None:
    is_next = build_next({"alineo.dev/agent": "other"}, "old")
    assert not is_next(build_word("ADDED", "new"))


def build_figures(answered: float) -> dict[str, list[float]]:
    steps: dict[str, list[float]] = {step: [1.0] for step in Step}
    return steps | {BARE: [1.0], CLAIM: [2.0], FETCH: [3.0, 0.5, 9.0], SYNC: [4.0], Step.ANSWERED: [answered]}


@pytest.mark.parametrize(("answered", "verdict"), [(6.0, "met"), (6.01, "**not met**")])
def test_the_goal_is_a_bare_start_two_seconds_and_the_median_transfer(answered: float, verdict: str) -> None:
    lines = build_losses({10**6: build_figures(answered)})
    assert lines[-2:] == ["| goal: bare start + 2 s + GET and unpack | 6.00 |", f"| | {verdict} |"]


def test_tables_have_a_column_for_each_size_and_kind_and_a_row_for_each_step() -> None:
    losses = build_losses({10**6: build_figures(1.0), 10**9: build_figures(9.0)})
    assert losses[:3] == [
        "A pod is lost, 1 times for each size of the home:",
        "",
        "| seconds, p50 (max) | 1 MB | 1 GB |",
    ]
    assert {line.count("|") for line in losses[2:]} == {4}
    assert [line for line in losses if "…" in line][
        -1
    ] == "| … **the prompt is answered** | 1.00 (1.00) | 9.00 (9.00) |"
    assert sum("…" in line for line in losses) == len(Step)
    figures = {step: [1.0, 2.0, 6.0] for step in Restart}
    restarts = build_restarts({"clean stop": figures, "crash": figures}, 500)
    assert restarts[0] == "The operator is restarted over 500 agents in the middle of a turn, 3 times each:"
    assert restarts[4:] == [f"| {step} | 2.00 (6.00) | 2.00 (6.00) |" for step in Restart]


def test_sizes_are_named_as_people_do() -> None:
    assert [name_size(size) for size in (10**6, 10**8, 10**9)] == ["1 MB", "100 MB", "1 GB"]


def test_what_is_compared_runs_the_same_image_on_the_same_node_and_differs_in_the_volume() -> None:
    bare: Json = build_bare("bare", "image", "n1")["spec"]
    held: Json = build_set("image", "n1")["spec"]
    assert bare.pop("volumes") == [{"name": "data", "emptyDir": {}}]
    assert held["template"]["spec"] == bare
    assert held["volumeClaimTemplates"][0]["metadata"]["name"] == "data"
    assert bare["nodeSelector"] == {"kubernetes.io/hostname": "n1"}


@contextmanager
def serving(status: int) -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()

        do_HEAD = do_GET  # noqa: N815  (the base class calls it so)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def test_who_answers_gives_the_moment_and_who_does_not_gives_nothing() -> None:
    begun = time.time()
    with serving(200) as port:
        answered = ask("127.0.0.1", port, "/")
        assert answered is not None
        assert answered >= begun
    with serving(503) as port:
        assert ask("127.0.0.1", port, "/") is None
    assert ask("127.0.0.1", port, "/") is None


def test_a_claim_that_came_back_without_its_file_is_no_figure() -> None:
    with serving(404) as port, pytest.raises(DemoError, match=r"home\.bin is not there any more"):
        ask("127.0.0.1", port, f"/{FILE}")


def test_simulated_bridges_keep_apart_and_say_what_the_operator_understands(monkeypatch: pytest.MonkeyPatch) -> None:
    asyncio.run(_talk(monkeypatch))


async def _talk(monkeypatch: pytest.MonkeyPatch) -> None:
    runner, request = (
        web.AppRunner(recovery_bridges.Bridges().build_app()),
        TurnRequest(turn=1, turn_id="t", prompt="Go on."),
    )
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.2", 0).start()
        port = runner.addresses[0][1]
        await web.TCPSite(runner, "127.0.0.3", port).start()
        monkeypatch.setattr(wire, "BRIDGE_PORT", port)
        monkeypatch.setattr(recovery_bridges, "HEARTBEAT", 0.05)  # who no longer listens is noticed by it
        async with aiohttp.ClientSession() as session:
            bridges, one, two = wire.HttpBridges(session), build_pod("127.0.0.2"), build_pod("127.0.0.3")
            for _ in range(2):  # a leader hands the same turn over again
                assert (await bridges.start_turn(one, "", request)).state is TurnState.RUNNING
            assert (await bridges.read_state(one, "")).journal_seq == 2
            assert (await bridges.read_state(two, "")).turn is None
            assert (await anext(bridges.follow(one, "", 1))).event == "tool.started"
    finally:
        await runner.cleanup()


def build_pod(address: str) -> PodFacts:
    return PodFacts(address, address, "", 1, PodPhase.RUNNING, 0.0, ip=address)
