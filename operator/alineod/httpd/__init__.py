"""A small HTTP/1.1 server on asyncio and h11, for the processes that live in every sandbox pod.

Routes, a bearer token, bodies with a limit, streamed answers, problem+json, graceful close: no more than that, because
it is started hundreds of times on one machine. It knows nothing of turns, archives or journals.

    server = Server([Route("GET", "/healthz", health, open=True), Route("POST", "/v1/cut", cut)], token=read_token)
    port = await server.start("0.0.0.0", 8791)
    ...
    await server.close(grace=5.0)

A handler is `async (Request) -> Response | Stream`. An `AlineoError` it raises becomes problem+json with the status of
its class; anything else becomes a 500 and goes to `on_error`.
"""

from alineod.httpd.messages import (
    JSON,
    NDJSON,
    Request,
    Response,
    Stream,
    build_error,
    build_json,
    build_problem,
    read_file,
    same_token,
)
from alineod.httpd.routes import Handler, Route
from alineod.httpd.server import Server

__all__ = [
    "JSON",
    "NDJSON",
    "Handler",
    "Request",
    "Response",
    "Route",
    "Server",
    "Stream",
    "build_error",
    "build_json",
    "build_problem",
    "read_file",
    "same_token",
]
