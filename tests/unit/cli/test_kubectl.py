"""The plugin against a kubectl of our own and an API that answers from a list: what is asked, printed and answered."""

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from alineod.cli.kubectl import main

KUBECTL = """#!/usr/bin/env python3
import json, sys
words = [word for word in sys.argv[1:] if not word.startswith("--")]
print(json.dumps(sys.argv[1:]), file=open({log!r}, "a"))
answers = json.load(open({answers!r}))
answer = answers.get(" ".join(words[:2]))
if answer is None:
    sys.exit("Error from server (NotFound): " + " ".join(words))
print(answer if isinstance(answer, str) else json.dumps(answer))
"""
CONFIG = {"contexts": [{"context": {"namespace": "research"}}], "users": [{"user": {"token": "mine"}}]}


class World:
    """A kubectl, an API, and what both were asked."""

    def __init__(self, folder: Path) -> None:
        self.log, self.answers_file = folder / "log", folder / "answers"
        self.kubectl = folder / "kubectl"
        self.kubectl.write_text(KUBECTL.format(log=str(self.log), answers=str(self.answers_file)))
        self.kubectl.chmod(0o755)
        self.answers: dict[str, Any] = {"config view": CONFIG}
        self.replies: list[tuple[int, dict[str, Any]]] = []
        self.asked: list[tuple[str, str, str, Any]] = []
        self.url = ""

    def run(self, *words: str) -> int:
        self.answers_file.write_text(json.dumps(self.answers))
        return main(words, {"KUBECTL": str(self.kubectl)})

    def commands(self) -> list[list[str]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            made.asked.append((self.command, self.path, self.headers["authorization"], json.loads(body or "null")))
            status, reply = made.replies.pop(0)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(reply).encode())

        do_POST = do_GET  # noqa: N815  (http.server's own names)

        def log_message(self, *words: object) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    made.url = f"--url=http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield made
    server.shutdown()
    thread.join()
    server.server_close()


def test_tree_passes_kubectls_own_flags(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    lead = {"metadata": {"name": "s-lead"}, "spec": {"swarm": "s", "alias": "lead"}, "status": {"phase": "Done"}}
    world.answers["get agents.alineo.dev"] = {"items": [lead]}
    assert world.run("tree", "s", "-n", "research", "--context", "far") == 0
    assert capsys.readouterr().out == "s\n  lead  Done\n"
    flags = ["--context=far", "--namespace=research"]
    assert world.commands() == [
        [*flags, "get", "agents.alineo.dev", "--selector=alineo.dev/swarm=s", "--output=json"],
    ]


def test_tree_of_a_swarm_that_is_not_there_is_kubectls_no(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.answers["get agents.alineo.dev"] = {"items": []}
    assert world.run("tree", "nope") == 1
    assert "Error from server (NotFound)" in capsys.readouterr().err


def test_prompt_waits_and_prints_the_answer(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.replies = [
        (202, {"agent": "research/s-left", "turn": 2, "idempotencyKey": "k"}),
        (202, {"turn": 2, "outcome": None}),
        (200, {"turn": 2, "outcome": "success", "result": "Eels."}),
    ]
    assert world.run("prompt", "s-left", "Again.", "--key=k", "--wait=400", world.url) == 0
    printed = capsys.readouterr()
    assert printed.out == "Eels.\n"
    assert printed.err == "research/s-left: turn 2, unless one is cut before it\n"
    assert world.asked == [
        ("POST", "/v1/agents/research/s-left/prompt", "Bearer mine", {"prompt": "Again.", "idempotencyKey": "k"}),
        ("GET", "/v1/agents/research/s-left/result?wait=240&idempotencyKey=k", "Bearer mine", None),
        ("GET", "/v1/agents/research/s-left/result?wait=160&idempotencyKey=k", "Bearer mine", None),
    ]


@pytest.mark.parametrize(
    ("status", "body", "code", "words"),
    [
        (202, {"turn": 3, "outcome": None}, 4, "turn 3 has not settled yet: ask again, or with --wait SECONDS"),
        (
            200,
            {"turn": 3, "outcome": "failed", "result": "half", "error": "no quota", "errorKind": "provider"},
            1,
            "turn 3 ended failed: no quota",
        ),
        (403, {"title": "Forbidden", "detail": "you may not get agents/result"}, 1, "you may not get agents/result"),
        (502, {}, 1, "refused"),
    ],
)
def test_result_says_how_it_ended(
    world: World, capsys: pytest.CaptureFixture[str], status: int, body: dict[str, Any], code: int, words: str
) -> None:
    world.replies = [(status, body)]
    assert world.run("result", "s-left", world.url) == code
    printed = capsys.readouterr()
    assert words in printed.err
    assert printed.out == (f"{body['result']}\n" if "result" in body else "")


def test_a_certificate_is_no_name_for_the_operator(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.answers["config view"] = {**CONFIG, "users": [{"user": {"client-certificate-data": "x"}}]}
    assert world.run("result", "s-left", world.url) == 1
    assert "pass --service-account NAME" in capsys.readouterr().err
    world.answers["create token"] = "theirs"
    world.replies = [(200, {"turn": 1, "outcome": "success", "result": ""})]
    assert world.run("result", "s-left", world.url, "--service-account=person") == 0
    assert world.asked[-1][2] == "Bearer theirs"


@pytest.mark.behaviour("11.9")
def test_an_empty_answer_is_told_from_none(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.replies = [(200, {"turn": 3, "outcome": "success", "result": ""})]
    assert world.run("result", "s-left", world.url) == 0
    printed = capsys.readouterr()
    assert (printed.out, printed.err.strip()) == ("", "turn 3 ended well with an empty answer")


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("--url=ftp://x", "ftp://x/v1/agents/research/s-left/result?wait=0 is not the URL of an API"),
        ("--url=http://127.0.0.1:9", "the operator does not answer at 127.0.0.1:9"),
        ("--operator=ops/alineod", "there is no way to the operator at ops/alineod: Error from server (NotFound)"),
    ],
)
def test_no_way_there_is_said(world: World, capsys: pytest.CaptureFixture[str], flag: str, words: str) -> None:
    assert world.run("result", "s-left", flag) == 1
    assert words in capsys.readouterr().err
