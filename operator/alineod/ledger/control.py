"""Litestream's control socket: HTTP over a Unix socket. Blocking; used by threads, never on the loop."""

import http.client
import select
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from alineod.errors import Unavailable
from alineod.ledger.litestream import STUCK, UNREACHABLE, explain_sync
from alineod.settings import BucketSettings

_LOOK = 1.0
"""Seconds between two looks whether an answer is still to be waited for."""
_MARGIN = 2.0
"""Seconds Litestream may take beyond the time it was given before the connection is given up."""


class SyncReply(msgspec.Struct, frozen=True):
    """`txid` is the last local transaction Litestream has seen, `replicated_txid` the last one in the bucket."""

    status: str
    txid: int
    replicated_txid: int = 0


class _Problem(msgspec.Struct, frozen=True):
    error: str = ""


@dataclass(frozen=True)
class ControlSocket:
    """The socket at `path` of the Litestream that replicates to `bucket`.

    Each call opens a connection of its own: a broken one is never used twice.
    """

    path: Path
    bucket: BucketSettings

    def sync(self, database: Path, timeout: float, check: Callable[[], None] = lambda: None) -> SyncReply:
        """Have everything committed to `database` before this call put into the bucket.

        Args:
            timeout: seconds Litestream may take.
            check: called each second while it is waited for; what it raises ends the wait.

        Raises:
            Unavailable: it did not, for the reason the message gives.
        """
        order = {"path": str(database), "wait": True, "timeout": max(1, round(timeout))}
        status, body = self._post("/sync", msgspec.json.encode(order), timeout + _MARGIN, check)
        try:
            if status == http.client.OK:
                return msgspec.json.decode(body, type=SyncReply)
            problem = msgspec.json.decode(body, type=_Problem).error
            raise explain_sync(problem or f"HTTP status {status}", self.bucket)
        except msgspec.DecodeError as error:
            raise explain_sync(f"HTTP status {status} with {body[:200]!r}", self.bucket) from error

    def _post(self, path: str, body: bytes, timeout: float, check: Callable[[], None]) -> tuple[int, bytes]:
        connection = _UnixConnection(self.path, timeout)
        try:
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            _wait(connection.sock, time.monotonic() + timeout, check)
            response = connection.getresponse()
            return response.status, response.read()
        except TimeoutError as error:
            message = (
                f"Litestream did not answer on {self.path} in time: it is stuck, or the bucket does not answer it."
                " It is asked again, and replaced if need be."
            )
            raise Unavailable(STUCK, message) from error
        except (OSError, http.client.HTTPException) as error:
            raise Unavailable(UNREACHABLE, f"Litestream does not answer on {self.path} ({error!r}).") from error
        finally:
            connection.close()


def _wait(answer: socket.socket, deadline: float, check: Callable[[], None]) -> None:
    """Until there is something to read."""
    while not select.select([answer], [], [], min(_LOOK, max(0.0, deadline - time.monotonic())))[0]:
        if time.monotonic() >= deadline:
            raise TimeoutError
        check()


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))
