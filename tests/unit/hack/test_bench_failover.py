"""The failover bench: how it finds who answers first, what it reads of a take-over, and its tables."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from hack.bench.failover import build_tables
from hack.bench.failover_probe import SERVICE, Probe, parse_steps
from hack.bench.failover_rounds import LEASE, PODS, Fault, Way
from hack.chaos.sites import build_held


class Operator:
    """Answers as an operator of this epoch, as a standby at 0."""

    def __init__(self) -> None:
        self.epoch, self.asked = 0, threading.Event()


@contextmanager
def serving(operator: Operator) -> Iterator[tuple[str, int]]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            operator.asked.set()
            standing = {"phase": "serving", "epoch": operator.epoch} if operator.epoch else {"phase": "opening"}
            body = json.dumps(standing).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield ("127.0.0.1", server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()


def test_only_a_leader_of_a_later_epoch_ends_the_wait() -> None:
    old, new = Operator(), Operator()
    old.epoch = 3
    with serving(old) as first, serving(new) as second, serving(new) as service:
        probe = Probe({"old": first, "new": second, SERVICE: service}, epoch=3)
        probe.start()
        assert old.asked.wait(20)
        assert new.asked.wait(20)
        assert probe.answered == {}
        assert probe.find_first() is None
        new.epoch = 4
        end = time.monotonic() + 20
        while len(probe.answered) < 2:
            assert time.monotonic() < end
            time.sleep(0.01)
        probe.stop()
    assert set(probe.answered) == {"new", SERVICE}
    found = probe.find_first()
    assert found is not None
    assert found[0] == "new"


def test_steps_are_read_from_the_metric_and_from_nothing_else() -> None:
    lines = [
        "# HELP alineod_takeover_seconds How long",
        'alineod_takeover_seconds{step="build"} 1.25',
        'alineod_takeover_seconds{step="total"} 2.5',
        'alineod_other{step="build"} 9.0',
    ]
    assert parse_steps(lines) == {"build": 1.25, "total": 2.5}


def test_a_table_shows_the_median_the_worst_and_the_goal() -> None:
    rounds = [{LEASE: 0.1, PODS: 1.0, "build": 0.5}, {LEASE: 0.2, PODS: 4.0}, {LEASE: 0.3, PODS: 2.0, "build": 0.7}]
    lines = build_tables({Fault.STOP: rounds})
    [served] = [line.split() for line in lines if line.startswith(PODS)]
    assert served[-5:] == ["2.00", "4.00", "3", "goal", "3"]
    [build] = [line.split() for line in lines if line.startswith("build")]
    assert build == ["build", "0.60", "0.70", "2"]


def test_the_way_leads_over_a_node_that_nothing_happens_to() -> None:
    way = Way({"n1": "10.0.0.1", "n2": "10.0.0.2"}, 30000)
    assert way.choose("n1") == ("10.0.0.2", 30000)
    assert way.choose("n2") == ("10.0.0.1", 30000)


def test_no_sandbox_of_the_crowd_ever_runs() -> None:
    spec: dict[str, object] = build_held("crowd", ["a", "b"])["spec"]  # type: ignore[assignment]
    gate, *held = spec["agents"]  # type: ignore[misc]
    assert "nodeSelector" in gate["sandbox"]["podTemplate"]["spec"]
    assert [one["waitFor"] for one in held] == [["gate"], ["gate"]]
