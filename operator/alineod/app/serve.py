"""The HTTP server of the control API: one socket for the whole life of the process, another application per role."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

API_PORT = 8080


class Switch:
    """An application that stands for another one, which can be replaced while it serves."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app(scope, receive, send)


class _Server(uvicorn.Server):
    """Leaves signals to the process."""

    @contextlib.contextmanager
    def capture_signals(self):  # type: ignore[no-untyped-def]
        yield


async def start_server(app: ASGIApp, port: int = API_PORT) -> Callable[[], Awaitable[None]]:
    """Serve until what is returned is called."""
    config = uvicorn.Config(
        app, host="", port=port, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=5
    )
    server = _Server(config)
    task = asyncio.create_task(server.serve(), name="api")

    async def stop() -> None:
        server.should_exit = True
        await task

    return stop
