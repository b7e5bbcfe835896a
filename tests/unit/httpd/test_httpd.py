"""The server as its callers see it: a real socket, a real client."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from alineod.errors import Conflict, Damaged, Denied, NotFound, Refused, Unavailable
from alineod.httpd import Request, Response, Route, Server, Stream, build_json, read_file, same_token

TOKEN = "s3same"


class App:
    """Handlers that show each kind of answer."""

    def __init__(self) -> None:
        self.closed = asyncio.Event()
        self.release = asyncio.Event()
        self.errors: list[str] = []

    async def echo(self, request: Request) -> Response:
        return build_json({"params": dict(request.params), "query": dict(request.query), "body": request.body.decode()})

    async def fail(self, request: Request) -> Response:
        kinds = {k.__name__: k for k in (Conflict, Damaged, Denied, NotFound, Refused, Unavailable)}
        if kind := kinds.get(request.params["kind"]):
            raise kind("Why", "what to do")
        raise ValueError("not ours")

    async def follow(self, _: Request) -> Stream:
        async def lines() -> AsyncIterator[bytes]:
            try:
                for n in range(1000000):
                    yield b"%d\n" % n
                    await asyncio.sleep(3600 if n == 2 else 0)
            finally:
                self.closed.set()

        return Stream(lines())

    async def slow(self, _: Request) -> Response:
        await self.release.wait()
        return Response(body=b"{}")

    async def file(self, request: Request) -> Stream:
        length = int(request.query["length"])
        return Stream(read_file(Path(request.query["path"]), 1000), "application/octet-stream", length)

    def routes(self) -> list[Route]:
        return [
            Route("GET", "/healthz", self.echo, open=True),
            Route("POST", "/v1/things/{name}/echo", self.echo, max_body=1000),
            Route("GET", "/v1/fail/{kind}", self.fail),
            Route("GET", "/v1/follow", self.follow),
            Route("GET", "/v1/slow", self.slow),
            Route("GET", "/v1/file", self.file),
        ]


@pytest.fixture
async def app() -> App:
    return App()


@pytest.fixture
async def server(app: App) -> AsyncIterator[Server]:
    server = Server(app.routes(), lambda: TOKEN, lambda where, error: app.errors.append(f"{where} {error!r}"))
    yield server
    await server.close(grace=0)


@pytest.fixture
async def client(server: Server) -> AsyncIterator[httpx.AsyncClient]:
    port = await server.start("127.0.0.1", 0)
    auth = {"authorization": f"Bearer {TOKEN}"}
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=auth, trust_env=False) as client:
        yield client


async def test_routes_params_query_body_on_one_connection(client: httpx.AsyncClient) -> None:
    for n in range(3):
        answer = await client.post(f"/v1/things/a%2Fb/echo?after={n}&x=", content=b"hi")
        assert answer.json() == {"params": {"name": "a/b"}, "query": {"after": str(n), "x": ""}, "body": "hi"}


async def test_a_missing_or_wrong_token_is_refused_with_a_sentence(client: httpx.AsyncClient) -> None:
    for header in ("", "Bearer wrong", f"Basic {TOKEN}"):
        answer = await client.get("/v1/slow", headers={"authorization": header})
        assert answer.status_code == 401
        assert "Authorization: Bearer" in answer.json()["detail"]
    assert (await client.get("/healthz", headers={"authorization": ""})).status_code == 200


def test_an_empty_token_matches_nothing() -> None:
    assert not same_token("", "")
    assert same_token("a", "a")
    assert not same_token("a\u00ff", "a")


@pytest.mark.parametrize(
    ("kind", "status"),
    [("Conflict", 409), ("Denied", 403), ("NotFound", 404), ("Refused", 400), ("Unavailable", 503), ("Damaged", 500)],
)
async def test_errors_are_problems(client: httpx.AsyncClient, kind: str, status: int) -> None:
    answer = await client.get(f"/v1/fail/{kind}")
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["reason"] == "Why"
    assert answer.json()["detail"] == "what to do"
    assert ("retry-after" in answer.headers) == (kind == "Unavailable")


async def test_a_foreign_error_is_a_500_that_is_told(client: httpx.AsyncClient, app: App) -> None:
    assert (await client.get("/v1/fail/Other")).status_code == 500
    assert app.errors == ["GET /v1/fail/Other ValueError('not ours')"]


async def test_unknown_path_and_method(client: httpx.AsyncClient) -> None:
    assert (await client.get("/nothing")).status_code == 404
    answer = await client.get("/v1/things/x/echo")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


async def test_a_body_past_the_limit_is_refused_and_the_answer_arrives(client: httpx.AsyncClient) -> None:
    for size in (1001, 5_000_000):
        answer = await client.post("/v1/things/x/echo", content=b"x" * size)
        assert answer.status_code == 413
        assert "1000 bytes" in answer.json()["detail"]


async def test_a_follower_that_leaves_ends_the_stream(client: httpx.AsyncClient, app: App) -> None:
    async with client.stream("GET", "/v1/follow") as answer:
        lines = answer.aiter_lines()
        assert [await anext(lines) for _ in range(3)] == ["0", "1", "2"]
    await asyncio.wait_for(app.closed.wait(), 10)


async def test_a_file_is_sent_whole_with_its_length(client: httpx.AsyncClient, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(bytes(range(256)) * 100)
    answer = await client.get("/v1/file", params={"path": str(tmp_path / "f"), "length": 25600})
    assert answer.headers["content-length"] == "25600"
    assert answer.content == bytes(range(256)) * 100


async def test_close_lets_a_running_request_finish(client: httpx.AsyncClient, app: App, server: Server) -> None:
    running = asyncio.create_task(client.get("/v1/slow"))
    await client.get("/healthz")
    closing = asyncio.create_task(server.close(grace=30))
    await asyncio.sleep(0)
    app.release.set()
    assert (await running).status_code == 200
    await closing
    with pytest.raises(httpx.ConnectError):
        await client.get("/healthz")


async def test_close_cuts_off_what_does_not_finish(client: httpx.AsyncClient, app: App, server: Server) -> None:
    async with client.stream("GET", "/v1/follow") as answer:
        lines = answer.aiter_lines()
        await anext(lines)
        await server.close(grace=0)
        assert app.closed.is_set()
        with pytest.raises(httpx.RemoteProtocolError):
            [line async for line in lines]


@pytest.mark.parametrize("raw", [b"GET / HTTP/1.1\r\n\r\n", b"nonsense\r\n\r\n", b"GET /" + b"x" * 40000])
async def test_what_is_not_http_gets_a_400(server: Server, raw: bytes) -> None:
    port = await server.start("127.0.0.1", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(raw)
    answer = await reader.read()
    writer.close()
    assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 431 ")), answer
    assert json.loads(answer.split(b"\r\n\r\n", 1)[1])["reason"] == "BadRequest"


async def test_expect_continue_is_answered(server: Server) -> None:
    port = await server.start("127.0.0.1", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"POST /v1/things/x/echo HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\n"
    writer.write(f"{head}content-length: 2\r\nexpect: 100-continue\r\n\r\n".encode())
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
    writer.write(b"ok")
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
    writer.close()


async def test_two_requests_at_once_are_answered_in_order(server: Server) -> None:
    port = await server.start("127.0.0.1", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(
        b"GET /healthz?a=1 HTTP/1.1\r\nhost: x\r\n\r\nGET /healthz?a=2 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
    )
    answer = await reader.read()
    writer.close()
    assert answer.index(b'"a":"1"') < answer.index(b'"a":"2"')
