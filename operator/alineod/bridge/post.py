"""One POST to a neighbour in the pod, over HTTP on loopback."""

import asyncio
from dataclasses import dataclass
from urllib.parse import urlsplit

import h11

_READ = 65536


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes


async def post(base: str, path: str, token: str, body: bytes) -> Answer:
    """Send `body` and read the whole answer. The caller sets the time limit.

    Raises:
        OSError: nobody listens, or the connection broke before the answer was whole.
    """
    url = urlsplit(base)
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    try:
        http = h11.Connection(h11.CLIENT)
        headers = [("host", url.netloc), ("authorization", f"Bearer {token}"), ("content-type", "application/json")]
        headers += [("content-length", str(len(body))), ("connection", "close")]
        for event in (
            h11.Request(method="POST", target=path, headers=headers),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            writer.write(http.send(event) or b"")
        await writer.drain()
        return await _read_answer(http, reader)
    except h11.RemoteProtocolError as error:
        raise ConnectionResetError(f"{base} broke off: {error}") from error
    finally:
        writer.close()


async def _read_answer(http: h11.Connection, reader: asyncio.StreamReader) -> Answer:
    status, parts = 0, list[bytes]()
    while True:
        match http.next_event():
            case h11.NEED_DATA:
                http.receive_data(await reader.read(_READ))
            case h11.Response(status_code=code):
                status = code
            case h11.Data(data=data):
                parts.append(bytes(data))
            case h11.EndOfMessage():
                return Answer(status, b"".join(parts))
            case _:
                raise ConnectionResetError("the connection ended before the answer")
