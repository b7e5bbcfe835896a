"""The parts of checkpointer and restore that need no process: decisions, environment, messages, inputs."""

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alineod.checkpointer.environment import Owner, parse_environment
from alineod.checkpointer.inputs import write_inputs
from alineod.checkpointer.patience import LONGEST, Patience, compute_delay
from alineod.checkpointer.remote import Operator, open_object, put_file
from alineod.checkpointer.restore import MAX_MESSAGE, fit_report
from alineod.checkpointer.uploads import Step, decide_step
from alineod.checkpoints.store import Progress, Stored
from alineod.errors import AlineoError, Conflict, Denied, NotFound, Refused, Unavailable
from alineod.wire.archives import CheckpointReport, GrantRequest, InputFile, RestoreReport, Tried
from alineod.wire.base import encode
from alineod.wire.turns import Grant

NOW = 1000.0
REPORT = CheckpointReport(turn=1, turn_id="t", incarnation=1, snapshot_ref="r", sha256="s", md5="00", bytes=1)


@pytest.mark.parametrize(
    ("progress", "expires", "step"),
    [
        (Progress.CUT, None, Step.RENEW),
        (Progress.CUT, 0.0, Step.RENEW),
        (Progress.CUT, NOW - 1, Step.RENEW),
        (Progress.CUT, NOW + 59, Step.RENEW),
        (Progress.CUT, NOW + 61, Step.UPLOAD),
        (Progress.UPLOADED, None, Step.REPORT),
        (Progress.UPLOADED, NOW - 1, Step.REPORT),
        (Progress.RECORDED, None, Step.NOTHING),
    ],
)
def test_steps(progress: Progress, expires: float | None, step: Step) -> None:
    grant = None if expires is None else Grant(method="PUT", url="u", expires_at=expires)
    assert decide_step(Stored(report=REPORT, progress=progress, grant=grant), NOW) is step


def test_delays_grow_to_a_limit() -> None:
    delays = [compute_delay(attempt) for attempt in range(1, 2000)]
    assert delays[:4] == [0.5, 1.0, 2.0, 4.0]
    assert delays == sorted(delays)
    assert delays[-1] == LONGEST


def test_patience_says_only_what_is_news(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    slept: list[float] = []
    patience = Patience(slept.append)
    for why in ("the bucket", "the bucket", "the operator"):
        patience.wait(why)
    assert slept == [0.5, 1.0, 2.0]
    assert [record.getMessage() for record in caplog.records] == ["waiting: the bucket", "waiting: the operator"]


ENV = {
    "ALINEO_AGENT": "ns/a",
    "ALINEO_HOME": "/sandbox/home",
    "ALINEO_WORKSPACE": "/sandbox/workspace",
    "ALINEO_OPERATOR_URL": "http://alineod:8080/",
}


def test_environment_defaults() -> None:
    environment = parse_environment(ENV)
    assert environment.operator_url == "http://alineod:8080"
    assert environment.checkpoints == Path("/checkpoints")
    assert (environment.host, environment.port) == ("0.0.0.0", 8791)
    assert (environment.keep, environment.exclude, environment.owner) == (3, (), None)
    assert environment.termination_log == Path("/dev/termination-log")


def test_environment_values() -> None:
    values = {"ALINEO_OWNER": "1000:2000", "ALINEO_EXCLUDE": '["a","b"]', "ALINEO_KEEP": "5", "ALINEO_DRAIN_GRACE": "2"}
    environment = parse_environment(ENV | values)
    assert environment.owner == Owner(1000, 2000)
    assert (environment.exclude, environment.keep, environment.drain_grace) == (("a", "b"), 5, 2.0)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("ALINEO_AGENT", "", "the variable ALINEO_AGENT is needed and not set"),
        ("ALINEO_HOME", "", "the variable ALINEO_HOME is needed and not set"),
        ("ALINEO_HOME", "home", "ALINEO_HOME must be an absolute path, not 'home'"),
        ("ALINEO_KEEP", "three", "the variable ALINEO_KEEP cannot be read"),
        ("ALINEO_EXCLUDE", "[1]", "the variable ALINEO_EXCLUDE cannot be read"),
        ("ALINEO_OWNER", "root", "ALINEO_OWNER must be uid:gid in digits, not 'root'"),
    ],
)
def test_environment_refuses(name: str, value: str, words: str) -> None:
    with pytest.raises(Refused, match=words):
        parse_environment(ENV | {name: value})


@given(
    st.lists(
        st.builds(Tried, turn=st.integers(1, 10**6), where=st.just("remote"), error=st.text(max_size=3000)), max_size=60
    )
)
def test_a_report_always_fits(tried: list[Tried]) -> None:
    report = RestoreReport(start="blank", tried=tried)
    fitting = fit_report(report)
    assert len(encode(fitting)) <= MAX_MESSAGE
    assert [one.turn for one in fitting.tried] == [one.turn for one in tried][: len(fitting.tried)]
    if len(tried) < 4:
        assert len(fitting.tried) == len(tried)


def test_inputs(tmp_path: Path) -> None:
    write_inputs(
        tmp_path, [InputFile(path="/inputs/a b.txt", text="é"), InputFile(path="/inputs.json", text="[]")], None
    )
    assert (tmp_path / "files" / "a b.txt").read_text(encoding="utf-8") == "é"
    assert (tmp_path / "inputs.json").read_text() == "[]"
    write_inputs(tmp_path, [], None)
    assert list((tmp_path / "files").iterdir()) == []
    assert (tmp_path / "inputs.json").read_text() == "{}\n"


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "/inputs/../x", "/inputs/a/b", "/inputs/", "/inputs/..", "inputs/a", "/inputs"]
)
def test_inputs_elsewhere_are_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(Refused, match=r"only /inputs/<name> and /inputs\.json"):
        write_inputs(tmp_path, [InputFile(path=path, text="x")], None)


class Answers(BaseHTTPRequestHandler):
    """Answers as its path says: /<status>/<body>."""

    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        _, status, body, *short = self.path.split("/")
        if status == "hang-up":
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.send_response(int(status))
        self.send_header("Content-Length", str(len(body) + (5 if short else 0)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body.replace("+", "<").replace("-", ">").replace("~", "/").encode())
        self.close_connection = True

    do_GET = do_PUT = do_POST = answer  # noqa: N815  (the names that the standard library calls)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    ("path", "kind", "words"),
    [
        ("/404/+Code-NoSuchKey+~Code-", NotFound, "answers 404 NoSuchKey"),
        ("/404/", Unavailable, "answers 404"),
        ("/404/+Code-NoSuchBucket+~Code-", Unavailable, "answers 404 NoSuchBucket"),
        ("/403/+Code-AccessDenied+~Code-", Denied, "answers 403 AccessDenied"),
        ("/500/", Unavailable, "answers 500"),
        ("/503/x", Unavailable, "answers 503"),
        ("/301/", Unavailable, "answers 301"),
        ("/400/x", Unavailable, "answers 400"),
        ("/hang-up/", Unavailable, "does not answer"),
        ("/200/short/5", Unavailable, "broke off 5 bytes before its end"),
    ],
)
def test_reading_an_object(url: str, path: str, kind: type[AlineoError], words: str) -> None:
    def read() -> None:
        with open_object(Grant(method="GET", url=url + path), 5) as body:
            while body.read(3):
                pass

    with pytest.raises(kind, match=words):
        read()


def test_nobody_there_is_unavailable(tmp_path: Path) -> None:
    grant = Grant(method="GET", url="http://127.0.0.1:9/x")
    with pytest.raises(Unavailable, match=r"http://127\.0\.0\.1:9 does not answer"), open_object(grant, 1):
        pass
    (tmp_path / "token").write_text("t")
    for address in ("http://127.0.0.1:9", "http://no.such.host.invalid:1"):
        with pytest.raises(Unavailable, match="does not answer"):
            Operator(address, tmp_path / "token").grant(GrantRequest(turn=1, incarnation=1))
    with pytest.raises(Unavailable, match="cannot be read"):
        Operator("http://127.0.0.1:9", tmp_path / "none").grant(GrantRequest(turn=1, incarnation=1))


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/412/", Conflict),
        ("/403/+Code-AccessDenied+~Code-", Denied),
        ("/400/+Code-BadDigest+~Code-", Refused),
        ("/404/+Code-NoSuchBucket+~Code-", Refused),
        ("/409/+Code-ConditionalRequestConflict+~Code-", Unavailable),
        ("/500/", Unavailable),
        ("/429/", Unavailable),
        ("/hang-up/", Unavailable),
    ],
)
def test_uploading(url: str, path: str, kind: type[AlineoError], tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(bytes(1000))
    with pytest.raises(AlineoError) as caught:
        put_file(Grant(method="PUT", url=url + path), tmp_path / "f", 1000, "00" * 16)
    assert type(caught.value) is kind


def test_a_large_body_that_is_refused_at_once_is_a_refusal(url: str, tmp_path: Path) -> None:
    """The answer counts even when the server closes before it has read everything."""
    with (tmp_path / "f").open("wb") as file:
        file.truncate(30_000_000)
    with pytest.raises(AlineoError):
        put_file(Grant(method="PUT", url=url + "/403/"), tmp_path / "f", 30_000_000, "00" * 16)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/425/", Unavailable),
        ("/503/", Unavailable),
        ("/403/", Denied),
        ("/404/", NotFound),
        ("/409/", Conflict),
        ("/400/", Refused),
    ],
)
def test_asking_the_operator(url: str, path: str, kind: type[AlineoError], tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t")
    with pytest.raises(AlineoError) as caught:
        Operator(url + path + "x/", tmp_path / "token").grant(GrantRequest(turn=1, incarnation=1))
    assert type(caught.value) is kind
    assert "answers" in caught.value.message
