"""A door in front of a store that misbehaves as it is told: late, narrow, silent, or with an answer of its own.

    with bad_door(store.ports["s3.port"]) as door:
        door.behaviour = Late(3.0)

It passes bytes on and knows of HTTP only where a request's head ends and how an answer looks.
"""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

HOST = "127.0.0.1"
BUFFER = 1 << 16


@dataclass(frozen=True)
class Open:
    """Everything goes through."""


@dataclass(frozen=True)
class Late:
    """Every answer comes `seconds` after the store gave it."""

    seconds: float


@dataclass(frozen=True)
class Silent:
    """What is asked is heard and never answered, as behind a firewall that drops everything."""


@dataclass(frozen=True)
class Answer:
    """Every request has this S3 error for an answer."""

    status: int
    code: str


@dataclass(frozen=True)
class Narrow:
    """So many bytes a second go in, in all connections together; what comes out is not held up."""

    rate: float


Behaviour = Open | Late | Narrow | Silent | Answer


class Door:
    """Listens on `port`. `behaviour` may be changed at any time, for connections that are open too."""

    def __init__(self, to: int) -> None:
        self._to = to
        self._server = socket.create_server((HOST, 0))
        # What waits in here is no longer on its way: whoever gives up must not leave megabytes of it behind.
        self._server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        self.port: int = self._server.getsockname()[1]
        self.behaviour: Behaviour = Open()
        self._narrow = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._server.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._server.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError), socket.create_connection((HOST, self._to)) as store:
            threading.Thread(target=self._pass_back, args=(store, client), daemon=True).start()
            while data := client.recv(BUFFER):
                match self.behaviour:
                    case Silent():
                        continue
                    case Answer(status, code):
                        self._answer(client, data, status, code)
                        return
                    case Narrow(rate):
                        with self._narrow:
                            time.sleep(len(data) / rate)
                        store.sendall(data)
                    case _:
                        store.sendall(data)

    def _pass_back(self, store: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := store.recv(1 << 16):
                match self.behaviour:
                    case Silent():
                        continue
                    case Late(seconds):
                        time.sleep(seconds)
                client.sendall(data)
            client.shutdown(socket.SHUT_WR)

    def _answer(self, client: socket.socket, heard: bytes, status: int, code: str) -> None:
        while b"\r\n\r\n" not in heard:
            heard += client.recv(1 << 16)
        error = f"<Error><Code>{code}</Code><Message>so it is</Message></Error>".encode()
        body = b"" if heard.startswith(b"HEAD") else error
        head = f"HTTP/1.1 {status} {code}\r\nContent-Type: application/xml\r\nContent-Length: {len(body)}\r\n"
        client.sendall(head.encode() + b"Connection: close\r\n\r\n" + body)
        client.shutdown(socket.SHUT_WR)
        while client.recv(1 << 16):  # to close on what was not read would take the answer away again
            pass


@contextlib.contextmanager
def bad_door(to: int) -> Iterator[Door]:
    """A door to the port `to`, open at first."""
    door = Door(to)
    try:
        yield door
    finally:
        door.close()
