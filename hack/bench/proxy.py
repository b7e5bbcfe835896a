"""`python3 -m hack.bench.proxy --to PORT [--late SECONDS]`: a TCP proxy on 127.0.0.1 whose answers come late.

Stands for the distance to a bucket and for nothing else of it: not for bandwidth, TLS, throttling or a long tail.
Prints the port it listens on. Knows nothing of what it passes on. Threads, because an event loop's timers would add a
millisecond or two to each answer.
"""

import argparse
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import SimpleQueue

CHUNK = 1 << 16
HOST = "127.0.0.1"
Pieces = SimpleQueue[tuple[float, bytes]]


class Proxy:
    """Passes what comes to `port` on to the port `to` at once, and what comes back `late` seconds after it came."""

    def __init__(self, to: int, late: float) -> None:
        self._to, self._late = to, late
        self._listening = socket.create_server((HOST, 0))
        self.port: int = self._listening.getsockname()[1]

    def serve(self) -> None:
        """Until it is closed."""
        with suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                _start(self._join, near)

    def close(self) -> None:
        """Take no more connections; those there are go on."""
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _join(self, near: socket.socket) -> None:
        with near, suppress(OSError), socket.create_connection((HOST, self._to)) as far:
            for end in (near, far):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            back = _start(_pass_late, far, near, self._late)
            _pass_on(near, far)
            back.join()


def _start(act: Callable[..., None], *arguments: object) -> threading.Thread:
    thread = threading.Thread(target=act, args=arguments, daemon=True)
    thread.start()
    return thread


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    """Until the end, which is passed on too."""
    with suppress(OSError):
        while data := source.recv(CHUNK):
            target.sendall(data)
    _end(target)


def _pass_late(source: socket.socket, target: socket.socket, late: float) -> None:
    """The same, every piece late by itself: what follows does not wait for it."""
    pieces: Pieces = SimpleQueue()
    writing = _start(_write_due, pieces, target)
    data = b"-"
    while data:
        try:
            data = source.recv(CHUNK)
        except OSError:
            data = b""
        pieces.put((time.monotonic() + late, data))
    writing.join()


def _write_due(pieces: Pieces, target: socket.socket) -> None:
    with suppress(OSError):
        while True:
            due, data = pieces.get()
            time.sleep(max(0.0, due - time.monotonic()))
            if not data:
                break
            target.sendall(data)
    _end(target)


def _end(target: socket.socket) -> None:
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m hack.bench.proxy", description=__doc__)
    parser.add_argument("--to", type=int, required=True, help="the port of the server")
    parser.add_argument("--late", type=float, default=0.02, help="seconds by which each answer is late")
    options = parser.parse_args(arguments)
    proxy = Proxy(options.to, options.late)
    print(proxy.port, flush=True)
    proxy.serve()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
