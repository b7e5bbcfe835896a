"""Who looks for a leader takes nobody for one that has the lease and does not serve, or only watches it."""

import http.client
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from hack.bench import failover_probe
from hack.chaos import operators

CASES: list[tuple[dict[str, Any], int | None]] = [
    ({"leader": False, "phase": "standby"}, None),
    ({"leader": True, "phase": "opening"}, None),
    ({"leader": True, "phase": "reconnecting", "epoch": 7}, None),
    ({"leader": True, "phase": "serving", "epoch": 7}, 7),
    ({"title": "NotLeader", "status": 503}, None),
]


@pytest.fixture
def port(request: pytest.FixtureRequest) -> Iterator[int]:
    """Of an operator that answers so."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(request.param).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the base class calls it so)
            """It is no news."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_port
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize(("port", "epoch"), CASES, indirect=["port"])
def test_only_who_serves_leads(port: int, epoch: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operators, "PORT", port)
    assert operators.read_epoch("127.0.0.1") == epoch
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    assert failover_probe.read_epoch(connection) == (epoch or 0)
    connection.close()
