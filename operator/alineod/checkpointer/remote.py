"""Requests to the operator and to the bucket, by the standard library alone. Each call blocks and is made once.

What cannot be answered now is Unavailable, whoever is at fault: the callers wait and ask again. Nothing here decides
what an answer means for an archive.
"""

import base64
import contextlib
import http.client
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, TypeVar
from urllib.parse import urlsplit

import msgspec

from alineod.errors import Conflict, Denied, NotFound, Refused, Unavailable
from alineod.wire.archives import CheckpointReport, GrantRequest, Recorded, StartOrder, StartRequest
from alineod.wire.base import Message, decode, encode
from alineod.wire.turns import Grant

_TIMEOUT = 60.0  # s of silence
_TRANSFER_TIMEOUT = 300.0  # s of silence while a store works on a large body
_LIMIT = 16 * 1024 * 1024  # bytes of an answer
_CHUNK = 256 * 1024
_CODE = re.compile(rb"<Code>([A-Za-z0-9]{1,80})</Code>")
M = TypeVar("M", bound=Message)


class Operator:
    """The operator's API for sandboxes. The token's file is read again for every request, because it rotates."""

    def __init__(self, url: str, token_file: Path) -> None:
        self._url = url
        self._token_file = token_file

    def start(self, request: StartRequest) -> StartOrder:
        """How this pod is to start."""
        return self._ask("/v1/sandbox/start", request, StartOrder)

    def grant(self, request: GrantRequest) -> Grant:
        """A fresh grant for a checkpoint's upload."""
        return self._ask("/v1/sandbox/grants", request, Grant)

    def report(self, report: CheckpointReport) -> Recorded:
        """Tell how a checkpoint stands."""
        return self._ask("/v1/sandbox/checkpoints", report, Recorded)

    def _ask(self, path: str, message: Message, kind: type[M]) -> M:
        """One request.

        Raises:
            Unavailable: no answer, or one that says to come again.
            Denied, NotFound, Conflict, Refused: as the operator put it.
        """
        headers = {"Authorization": f"Bearer {self._read_token()}", "Content-Type": "application/json"}
        with _request("POST", self._url + path, headers, encode(message), _TIMEOUT) as answer:
            body = _read_body(answer, _LIMIT)
            if answer.status != 200:
                raise _translate(answer.status, body, self._url)
        return decode(kind, body)

    def _read_token(self) -> str:
        try:
            return self._token_file.read_text().strip()
        except OSError as error:
            raise Unavailable("TokenMissing", f"{self._token_file} cannot be read: {error.strerror}") from error


def put_file(grant: Grant, path: Path, size: int, md5: str) -> None:
    """Upload a file by a grant. The digest goes along, so that a body torn on its way is never kept.

    Raises:
        Conflict: reason `ObjectExists`; there is one under this key.
        Denied: reason `GrantRefused`; the grant has expired or is not honoured.
        Refused: reason `UploadRefused`, in the store's own words.
        Unavailable: reason `BucketUnreachable`.
    """
    digest = base64.b64encode(bytes.fromhex(md5)).decode()
    headers = {**grant.headers, "Content-Length": str(size), "Content-MD5": digest}
    with path.open("rb") as file, _request(grant.method, grant.url, headers, file, _TRANSFER_TIMEOUT) as answer:
        code = _read_code(answer)
    if answer.status not in (200, 201, 204):
        raise _build_upload_error(answer.status, code)


def _build_upload_error(status: int, code: str) -> Conflict | Denied | Refused | Unavailable:
    if status == 412:
        return Conflict("ObjectExists", "the bucket holds an object under this key already")
    words = f"the bucket answers the upload with {status} {code}".rstrip()
    if status in (401, 403):
        return Denied("GrantRefused", words)
    if status >= 500 or status in (408, 409, 425, 429):
        return Unavailable("BucketUnreachable", words)
    return Refused("UploadRefused", words)


@contextlib.contextmanager
def open_object(grant: Grant, size: int) -> Iterator["ObjectBody"]:
    """Read an object by a grant.

    Args:
        grant: for a GET.
        size: in bytes, of the object that is wanted.

    Raises:
        NotFound: reason `ObjectMissing`; the store itself says that it has no such object. Anyone can answer 404, such
            as a proxy whose store is away.
        Denied: reason `GrantRefused`.
        Unavailable: reason `BucketUnreachable`; anything else, also while the body is read.
    """
    with _request(grant.method, grant.url, grant.headers, None, _TRANSFER_TIMEOUT) as answer:
        if answer.status != 200:
            code = _read_code(answer)
            words = f"the archive's place answers {answer.status} {code}".rstrip()
            if answer.status == 404 and code == "NoSuchKey":
                raise NotFound("ObjectMissing", words)
            if answer.status in (401, 403):
                raise Denied("GrantRefused", words)
            raise Unavailable("BucketUnreachable", words)
        yield ObjectBody(answer, size)


class ObjectBody:
    """The body of an answer as a source of bytes. One that breaks off is the line's fault, not the archive's."""

    def __init__(self, answer: http.client.HTTPResponse, size: int) -> None:
        self._answer = answer
        self._left = answer.length if answer.length is not None else size

    def read(self, size: int, /) -> bytes:
        with _as_unavailable("the archive's place"):
            data = self._answer.read(size)
        self._left -= len(data)
        if size and not data and self._left > 0:
            raise Unavailable("BucketUnreachable", f"the answer broke off {self._left} bytes before its end")
        return data


@contextlib.contextmanager
def _request(
    method: str, url: str, headers: Mapping[str, str], body: bytes | IO[bytes] | None, timeout: float
) -> Iterator[http.client.HTTPResponse]:
    parts = urlsplit(url)
    where = f"{parts.scheme}://{parts.netloc}"
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    with contextlib.ExitStack() as stack:
        with _as_unavailable(where):
            connection = kind(parts.hostname or "", parts.port, timeout=timeout, blocksize=_CHUNK)
            stack.callback(connection.close)
            # A server may refuse by its answer and close before it has read the whole body.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.request(method, target, body, dict(headers))
            answer = stack.enter_context(connection.getresponse())
        yield answer


@contextlib.contextmanager
def _as_unavailable(where: str) -> Iterator[None]:
    try:
        yield
    except (OSError, http.client.HTTPException) as error:
        words = str(error) or type(error).__name__
        raise Unavailable("Unreachable", f"{where} does not answer: {words}") from error


def _read_body(answer: http.client.HTTPResponse, limit: int) -> bytes:
    with _as_unavailable("who was asked"):
        return answer.read(limit)


def _read_code(answer: http.client.HTTPResponse) -> str:
    """S3's word for what is wrong, where the answer has one."""
    match = _CODE.search(_read_body(answer, _CHUNK)) if answer.status >= 300 else None
    return match[1].decode() if match else ""


_KINDS: Mapping[int, Callable[[str, str], Exception]] = {401: Denied, 403: Denied, 404: NotFound, 409: Conflict}


def _translate(status: int, body: bytes, where: str) -> Exception:
    reason, detail = _parse_problem(body)
    words = f"{where} answers {status}: {detail}"
    if status >= 500 or status in (408, 425, 429):
        return Unavailable(reason, words)
    return _KINDS.get(status, Refused)(reason, words)


class _Problem(Message, frozen=True):
    title: str = "Refused"
    reason: str = ""
    detail: str = ""


def _parse_problem(body: bytes) -> tuple[str, str]:
    try:
        problem = msgspec.json.decode(body, type=_Problem)
    except msgspec.DecodeError:
        return "Refused", body[:300].decode("utf-8", "replace")
    return problem.reason or problem.title, problem.detail
