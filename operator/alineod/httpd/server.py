"""Listens, keeps its connections, closes them."""

import asyncio
from collections.abc import Callable, Sequence

from alineod.httpd.connection import Connection, Settings
from alineod.httpd.routes import Route


def _ignore(_where: str, _error: Exception) -> None:
    pass


class Server:
    """Listens, keeps its connections, closes them.

    Args:
        routes: tried in order.
        token: gives the token that routes not `open` want; read at every request, so that it may change.
        on_error: told of exceptions that are not ours, with the request line.
        idle_timeout: seconds a connection may sit without a request; also for its head.
        body_timeout: seconds for a whole body.
        max_connections: more are closed at once.
    """

    def __init__(
        self,
        routes: Sequence[Route],
        token: Callable[[], str] = lambda: "",
        on_error: Callable[[str, Exception], None] = _ignore,
        *,
        idle_timeout: float = 75.0,
        body_timeout: float = 60.0,
        max_connections: int = 256,
    ) -> None:
        self._settings = Settings(routes, token, on_error, idle_timeout, body_timeout)
        self._max_connections = max_connections
        self._closing = False
        self._tasks: dict[asyncio.Task[None], Connection] = {}
        self._listener: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen; returns the port, which the system chose where 0 was asked for."""
        self._listener = await asyncio.start_server(self._accept, host, port)
        return int(self._listener.sockets[0].getsockname()[1])

    async def close(self, grace: float = 5.0) -> None:
        """Take no new request, give running ones `grace` seconds, then cut them off."""
        self._closing = True
        if self._listener is not None:
            self._listener.close()
        for task, connection in list(self._tasks.items()):
            connection.closing = True
            if connection.idle:
                task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=grace)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._closing or len(self._tasks) >= self._max_connections:
            writer.close()
            return
        connection = Connection(self._settings, reader, writer)
        task = asyncio.ensure_future(connection.run())
        self._tasks[task] = connection
        task.add_done_callback(self._tasks.pop)
