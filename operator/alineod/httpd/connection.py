"""One TCP connection: requests parsed by h11, answered in order. Knows routes and answers, not what they are about."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import parse_qsl

import h11

from alineod.errors import AlineoError
from alineod.httpd.messages import Request, Response, Stream, build_denial, build_error, build_problem, same_token
from alineod.httpd.routes import Route, build_unmatched, match_route

_HEAD_LIMIT = 32 * 1024
_LINGER = 2.0


@dataclass(frozen=True)
class Settings:
    """What every connection of a server shares. Times are seconds."""

    routes: Sequence[Route]
    token: Callable[[], str]
    on_error: Callable[[str, Exception], None]
    idle_timeout: float
    body_timeout: float


class _TooLargeError(Exception):
    pass


@dataclass(eq=False)
class Connection:
    """One TCP connection: reads requests in order and answers each before it reads the next."""

    settings: "Settings"
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    idle: bool = True
    closing: bool = False
    http: h11.Connection = field(
        default_factory=lambda: h11.Connection(h11.SERVER, max_incomplete_event_size=_HEAD_LIMIT)
    )

    async def run(self) -> None:
        try:
            while await self._serve_one():
                self.http.start_next_cycle()
        except h11.RemoteProtocolError as error:
            await self._refuse(error)
        except (ConnectionError, TimeoutError):
            return  # the client went away or fell silent: nobody is left to tell
        else:
            await self._linger()
        finally:
            self.writer.close()

    async def _serve_one(self) -> bool:
        """One request and its answer; False when the connection is to be closed."""
        self.idle = True
        async with asyncio.timeout(self.settings.idle_timeout):
            head = await self._event()
        if not isinstance(head, h11.Request):
            return False
        self.idle = False
        answer = await self._answer(head)
        await self._send(answer, head.method != b"HEAD")
        return self.http.our_state is h11.DONE and self.http.their_state is h11.DONE and not self.closing

    async def _answer(self, head: h11.Request) -> Response | Stream:
        request = _parse_request(head)
        route, params, allowed = match_route(self.settings.routes, request)
        if route is None:
            return self._refused(build_unmatched(request, allowed))
        try:
            if not route.open and not same_token(request.bearer, token := self.settings.token()):
                return self._refused(build_denial(locked=not token))
        except AlineoError as error:
            return self._refused(build_error(error))
        try:
            async with asyncio.timeout(self.settings.body_timeout):
                body = await self._body(route.max_body)
        except _TooLargeError:
            return build_problem(413, "BodyTooLarge", f"the body is larger than {route.max_body} bytes, the limit here")
        return await self._handle(route, replace(request, params=params, body=body))

    def _refused(self, answer: Response) -> Response:
        """Skip what has arrived of the request's body, so that the connection can be kept where there is none."""
        while isinstance(self.http.next_event(), h11.Data):
            pass
        return answer

    async def _handle(self, route: Route, request: Request) -> Response | Stream:
        try:
            return await route.handler(request)
        except AlineoError as error:
            return build_error(error)
        except Exception as error:
            self.settings.on_error(f"{request.method} {request.path}", error)
            return build_problem(500, "Internal", f"{type(error).__name__} while serving {request.path}; see the log")

    async def _body(self, limit: int) -> bytes:
        if self.http.they_are_waiting_for_100_continue:
            self._write(self.http.send(h11.InformationalResponse(status_code=100, headers=[])))
        parts: list[bytes] = []
        size = 0
        while isinstance(event := await self._event(), h11.Data):
            size += len(event.data)
            if size > limit:
                raise _TooLargeError
            parts.append(bytes(event.data))
        return b"".join(parts)

    async def _event(self) -> h11.Event | type[h11.PAUSED]:
        while (event := self.http.next_event()) is h11.NEED_DATA:
            self.http.receive_data(await self.reader.read(65536))
        return event  # type: ignore[return-value]

    async def _send(self, answer: Response | Stream, with_body: bool) -> None:
        headers = [("content-type", answer.content_type), *answer.headers]
        length = len(answer.body) if isinstance(answer, Response) else answer.length
        headers.append(("transfer-encoding", "chunked") if length is None else ("content-length", str(length)))
        if self.http.their_state is not h11.DONE:
            headers.append(("connection", "close"))  # the rest of a refused body is not read
        self._write(self.http.send(h11.Response(status_code=answer.status, headers=headers)))
        if isinstance(answer, Stream):
            await self._send_stream(answer)
        elif with_body:
            self._write(self.http.send(h11.Data(data=answer.body)))
        self._write(self.http.send(h11.EndOfMessage()))
        await self.writer.drain()

    async def _send_stream(self, answer: Stream) -> None:
        sender = asyncio.ensure_future(self._pump(answer.chunks))
        watcher = asyncio.ensure_future(self._until_gone())
        try:
            await asyncio.wait([sender, watcher], return_when=asyncio.FIRST_COMPLETED)
            if not sender.done():
                raise ConnectionResetError("the client closed the connection")
            sender.result()
        finally:
            for task in (sender, watcher):
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, Exception):
                    await task

    async def _pump(self, chunks: AsyncIterator[bytes]) -> None:
        try:
            async for chunk in chunks:
                self._write(self.http.send(h11.Data(data=chunk)))
                await self.writer.drain()
        finally:
            if close := getattr(chunks, "aclose", None):
                await close()

    async def _until_gone(self) -> None:
        """Return when the client has gone; what it sends meanwhile is its next request and is kept."""
        while data := await self.reader.read(65536):
            self.http.receive_data(data)

    async def _linger(self) -> None:
        """Read away what was not asked for: closing over unread bytes would reset the answer on its way."""
        if self.http.their_state is h11.SEND_BODY and not self.closing:
            with contextlib.suppress(TimeoutError, ConnectionError):
                async with asyncio.timeout(_LINGER):
                    while await self.reader.read(65536):
                        pass

    async def _refuse(self, error: h11.RemoteProtocolError) -> None:
        with contextlib.suppress(h11.LocalProtocolError, ConnectionError):
            await self._send(build_problem(error.error_status_hint, "BadRequest", str(error)), with_body=True)

    def _write(self, data: bytes | None) -> None:
        if data:
            self.writer.write(data)


def _parse_request(head: h11.Request) -> Request:
    path, _, query = head.target.decode("latin-1").partition("?")
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
    return Request(head.method.decode(), path, dict(parse_qsl(query, keep_blank_values=True)), {}, headers)
