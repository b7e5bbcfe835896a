"""The one Lease over blocking HTTP, for the elector's own thread: no event loop, no session shared with anyone.

It must not decide anything; what answers mean is in `kube.failures`.
"""

import http.client
import socket
import ssl
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import msgspec

from alineod.clock import Clock
from alineod.errors import NotFound
from alineod.kube.access import ClusterAccess
from alineod.kube.failures import build_unreachable, parse_failure
from alineod.kube.lease import LeaseRecord, build_lease, parse_lease
from alineod.kube.objects import LEASES, Json
from alineod.kube.paths import build_path


class LeaseClient:
    """Reads and writes the Lease `namespace/name`. For one thread; keeps one connection open."""

    def __init__(self, access: ClusterAccess, clock: Clock, namespace: str, name: str) -> None:
        self._access, self._clock, self._namespace, self._name = access, clock, namespace, name
        self._tls = access.build_ssl_context()
        self._connection: http.client.HTTPConnection | None = None

    def read(self, seconds: float) -> LeaseRecord | None:
        """The Lease as it is, None when there is none; no wait for the server is longer than `seconds`."""
        try:
            return parse_lease(self._call("GET", build_path(LEASES, self._namespace, self._name), None, seconds))
        except NotFound:
            return None

    def write(self, record: LeaseRecord, acquired: datetime, seconds: float) -> LeaseRecord:
        """Write over the version that `record` names, or make the Lease when it names none.

        Raises:
            Conflict: another version is there.
        """
        body = build_lease(self._namespace, self._name, record, self._clock.now(), acquired)
        if record.version:
            return parse_lease(self._call("PUT", build_path(LEASES, self._namespace, self._name), body, seconds))
        return parse_lease(self._call("POST", build_path(LEASES, self._namespace), body, seconds))

    def close(self) -> None:
        """Let the connection go."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _call(self, method: str, path: str, body: Json | None, seconds: float) -> Json:
        reused = self._connection is not None
        try:
            code, headers, answer = self._send(method, path, body, seconds)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            # An idle connection may have been closed under us. Every write here names the version it replaces, so
            # that sending it twice does it once.
            if reused and isinstance(error, http.client.RemoteDisconnected | ConnectionError):
                return self._call(method, path, body, seconds)
            raise build_unreachable(f"{method} {path}", error) from error
        if code >= 400:
            raise parse_failure(code, answer, headers, f"{method} {path}")
        try:
            parsed: dict[str, Any] = msgspec.json.decode(answer, type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise build_unreachable(f"{method} {path}", error) from error
        return parsed

    def _send(self, method: str, path: str, body: Json | None, seconds: float) -> tuple[int, Mapping[str, str], bytes]:
        connection = self._connection or build_connection(self._access.server, self._tls, seconds)
        self._connection = connection
        connection.timeout = seconds
        if isinstance(connection.sock, socket.socket):
            connection.sock.settimeout(seconds)
        headers = {**self._access.build_headers(), "Content-Type": "application/json", "Accept": "application/json"}
        connection.request(method, path, None if body is None else msgspec.json.encode(body), headers)
        response = connection.getresponse()
        answer = response.read()
        return response.status, {"Retry-After": response.getheader("Retry-After") or ""}, answer


def build_connection(server: str, tls: ssl.SSLContext | None, seconds: float) -> http.client.HTTPConnection:
    """A connection to the API server, not yet opened; no wait on it is longer than `seconds`."""
    parts = urlsplit(server)
    host, port = parts.hostname or "", parts.port
    if tls is None:
        return http.client.HTTPConnection(host, port, timeout=seconds)
    return http.client.HTTPSConnection(host, port, timeout=seconds, context=tls)
