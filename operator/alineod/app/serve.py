"""The HTTP server of the control API: one socket for the whole life of the process, another application per role."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

API_PORT = 8080


class Switch:
    """An application that stands for another one, which can be replaced while it serves."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._cut = asyncio.Event()

    def turn_to(self, app: ASGIApp) -> None:
        """Whoever asks from now on asks `app`; questions that are being answered stay where they are."""
        self._app = app

    def cut(self) -> None:
        """Questions that are still held get their answer from the application of now; half an answer breaks off."""
        self._cut.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = _Answer(send)
        answering = asyncio.ensure_future(self._app(scope, receive, answer.send))
        cutting = asyncio.ensure_future(self._cut.wait())
        try:
            await asyncio.wait((answering, cutting), return_when=asyncio.FIRST_COMPLETED)
            if answering.done():
                return answering.result()
        finally:
            answering.cancel()
            cutting.cancel()
            await asyncio.wait((answering, cutting))
        if not answer.begun:
            await self._app(scope, receive, send)
        return None


class _Answer:
    """Notes whether anything of it was sent."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.begun = False

    async def send(self, message: MutableMapping[str, Any]) -> None:
        self.begun = True
        await self._send(message)


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
