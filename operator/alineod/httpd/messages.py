"""Requests and answers as values, and the builders of the answers that every server gives."""

import asyncio
import hmac
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

import msgspec

from alineod.errors import AlineoError, Conflict, Damaged, Denied, NotFound, Refused, Unavailable

JSON = "application/json"
NDJSON = "application/x-ndjson"
_CHUNK = 256 * 1024

# Most specific first: the first class that fits gives the status.
_STATUS: tuple[tuple[type[AlineoError], int], ...] = (
    (Conflict, 409),
    (NotFound, 404),
    (Denied, 403),
    (Refused, 400),
    (Unavailable, 503),
    (Damaged, 500),
)


@dataclass(frozen=True)
class Request:
    """One request, its body read whole. Header names are lower case; `params` come from the route's path."""

    method: str
    path: str
    query: Mapping[str, str]
    params: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = b""

    @property
    def bearer(self) -> str:
        """The bearer token that came with it, or an empty string."""
        scheme, _, token = self.headers.get("authorization", "").partition(" ")
        return token.strip() if scheme.lower() == "bearer" else ""


@dataclass(frozen=True)
class Response:
    """An answer that is known whole."""

    status: int = 200
    body: bytes = b""
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Stream:
    """An answer sent as it comes. `length` in bytes where it is known, else chunked.

    The iterator is closed when the client goes away or the server closes.
    """

    chunks: AsyncIterator[bytes]
    content_type: str = NDJSON
    length: int | None = None
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()


def same_token(given: str, wanted: str) -> bool:
    """Compare in constant time; an empty wanted token matches nothing."""
    return bool(wanted) and hmac.compare_digest(given.encode(), wanted.encode())


def build_json(message: Any, status: int = 200) -> Response:
    """A JSON answer of anything msgspec can encode."""
    return Response(status, msgspec.json.encode(message))


def build_denial(*, locked: bool) -> Response:
    """The answer to who does not know the token; `locked`: there is none that anybody could know."""
    reason, detail = "Unauthorized", "this route wants the header Authorization: Bearer <the token of this pod>"
    if locked:
        reason, detail = "TokenMissing", "the file with this pod's token is not there: nobody can be let in"
    return build_problem(401, reason, detail, [("www-authenticate", "Bearer")])


def build_problem(status: int, reason: str, detail: str, headers: Iterable[tuple[str, str]] = ()) -> Response:
    """An `application/problem+json` answer (RFC 9457); `reason` is our CamelCase word."""
    body = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "reason": reason}
    return Response(status, msgspec.json.encode({**body, "detail": detail}), "application/problem+json", tuple(headers))


def build_error(error: AlineoError) -> Response:
    """The problem that an error of ours is to its caller."""
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
    return build_problem(status, error.reason, error.message, [("retry-after", "1")] if error.retryable else [])


async def read_file(path: Path, chunk: int = _CHUNK) -> AsyncIterator[bytes]:
    """The bytes of a file, read off the loop. To be given to `Stream` with the file's length."""
    file = await asyncio.to_thread(path.open, "rb")
    try:
        while data := await asyncio.to_thread(file.read, chunk):
            yield data
    finally:
        file.close()
