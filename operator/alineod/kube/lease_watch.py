"""Waits for a change of the one Lease over a blocking watch, in the elector's own thread.

It only says that there may be news: what the Lease says is read anew, so that nothing hangs on what a watch tells or
leaves out. It must not decide anything.
"""

import contextlib
import http.client
import socket
import threading

import msgspec

from alineod.clock import Clock
from alineod.errors import AlineoError, Unavailable
from alineod.kube.access import ClusterAccess
from alineod.kube.failures import build_unreachable, parse_failure
from alineod.kube.lease import LeaseRecord
from alineod.kube.lease_client import build_connection
from alineod.kube.objects import LEASES
from alineod.kube.paths import build_path, build_query

LIFETIME = 300
"""Seconds after which the server ends a stream; another one is opened with the token that is valid then."""
LONGEST_START = 5.0
"""Seconds the server may take to begin one."""
LONGEST_LINE = 1 << 20
"""Bytes."""


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""


class _Object(msgspec.Struct, frozen=True):
    """A Lease, or the `Status` that an error is told by."""

    metadata: _Metadata = _Metadata()
    code: int = 0
    reason: str = ""
    message: str = ""


class _Event(msgspec.Struct, frozen=True):
    type: str
    object: _Object


class LeaseWatch:
    """Watches the Lease `namespace/name`. For one thread, but for `stop`."""

    def __init__(self, access: ClusterAccess, clock: Clock, namespace: str, name: str) -> None:
        self._access, self._clock, self._name = access, clock, name
        self._path = build_path(LEASES, namespace)
        self._tls = access.build_ssl_context()
        self._stopped = threading.Event()
        self._socket: socket.socket | None = None
        self._stream: http.client.HTTPResponse | None = None
        self._heard = False

    def wait(self, known: LeaseRecord, seconds: float) -> None:
        """Return when the Lease may be another than `known`, after `seconds` at the latest, or once `stop` was called.

        Raises:
            AlineoError: it cannot be watched now; the message says why.
        """
        end = self._clock.monotonic() + seconds
        try:
            while not self._stopped.is_set():
                stream = self._stream or self._open(known, end)
                self._limit(end)
                if self._is_news(stream.readline(LONGEST_LINE), known):
                    return
        except TimeoutError:
            self.close()  # what was cut off in the middle cannot be read on
        except (OSError, http.client.HTTPException, msgspec.DecodeError) as error:
            self.close()
            raise build_unreachable(f"GET {self._path}?watch", error) from error
        except AlineoError:
            self.close()
            raise

    def close(self) -> None:
        """Let the stream go; the next `wait` opens another."""
        if self._stream is not None:
            self._stream.close()
        if self._socket is not None:
            self._socket.close()
        self._stream = self._socket = None

    def stop(self) -> None:
        """End a running `wait`, and every later one."""
        self._stopped.set()
        if (open_socket := self._socket) is not None:
            with contextlib.suppress(OSError):
                # Not the method of a TLS socket, which would take its state away from under the reader.
                socket.socket.shutdown(open_socket, socket.SHUT_RDWR)

    def _open(self, known: LeaseRecord, end: float) -> http.client.HTTPResponse:
        connection = build_connection(self._access.server, self._tls, LONGEST_START)
        connection.connect()
        self._socket, self._heard = connection.sock, False
        self._limit(min(end, self._clock.monotonic() + LONGEST_START))
        headers = {**self._access.build_headers(), "Accept": "application/json"}
        connection.request("GET", self._path + self._build_query(known), headers=headers)
        self._stream = connection.getresponse()
        if self._stream.status >= 400:
            raise self._parse_failure(self._stream.status, self._stream.read(LONGEST_LINE))
        return self._stream

    def _build_query(self, known: LeaseRecord) -> str:
        name = f"metadata.name={self._name}"
        return build_query(
            watch=True, fieldSelector=name, resourceVersion=known.version, timeoutSeconds=LIFETIME
        )  # fmt: skip

    def _limit(self, end: float) -> None:
        """No wait on the socket goes beyond `end`, and none begins after `stop`."""
        left = end - self._clock.monotonic()
        if self._socket is None or self._stopped.is_set() or left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)

    def _is_news(self, line: bytes, known: LeaseRecord) -> bool:
        """Whether the line is a reason to read the Lease."""
        if not line:
            return self._end()
        event = msgspec.json.decode(line, type=_Event)
        if event.type == "ERROR":
            raise self._parse_failure(event.object.code, msgspec.json.encode(event.object))
        self._heard = True
        return event.object.metadata.resource_version != known.version

    def _end(self) -> bool:
        """A stream has ended. One that never told anything is no watch, and opening it again would go in circles."""
        self.close()
        if not self._heard:
            raise Unavailable("WatchEnded", "The watch of the lease ended before it told anything.")
        return True

    def _parse_failure(self, code: int, answer: bytes) -> AlineoError:
        return parse_failure(code, answer, {}, f"GET {self._path}?watch")
