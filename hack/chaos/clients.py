"""Clients that append through the control API and keep their own record of what they were promised.

Each sends one prompt at a time, under a key of its own, until it is answered. Half of them are patient: they wait for
an answer far longer than a lease lasts, so that a stopped leader wakes with their requests in its hands.
"""

import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from hack.chaos.judge import Record
from hack.chaos.route import Route, decide_status

PORT = 8080
HURRIED, PATIENT = 3.0, 30.0  # s a client waits for an answer
PACE = 0.05  # s between an answer and the next prompt
AGAIN = 0.3  # s before a prompt is sent again
PARTING = 20.0  # s a prompt under way gets at the end


class Client(threading.Thread):
    """One client. `records` is whole once the thread has ended; the last of them may be without an answer."""

    def __init__(
        self, name: str, agents: Sequence[str], token: str, read_addresses: Callable[[], Sequence[str]], patience: float
    ) -> None:
        super().__init__(name=name, daemon=True)
        self._agents, self._token, self._patience = agents, token, patience
        self._read_addresses = read_addresses
        self._route = Route()
        self._stopping = threading.Event()
        self._deadline = float("inf")
        self._connection: http.client.HTTPConnection | None = None
        self.records: list[Record] = []

    def stop(self) -> None:
        """Begin no further prompt, and wait no longer for whoever does not answer; the last prompt is sent again."""
        self._deadline = time.monotonic() + PARTING
        self._patience = HURRIED
        self._stopping.set()
        connection = self._connection
        if connection is not None and isinstance(connection.sock, socket.socket):
            with suppress(OSError):  # it was answered just now
                connection.sock.shutdown(socket.SHUT_RDWR)

    def run(self) -> None:
        while not self._stopping.is_set():
            number = len(self.records)
            agent = self._agents[number % len(self._agents)]
            self.records.append(Record(f"{self.name}-{number:06d}", agent, time.monotonic()))
            self._send_until_answered()
            self._stopping.wait(PACE)

    def _send_until_answered(self) -> None:
        while not (self._send() or time.monotonic() > self._deadline):
            self._route = self._route.leave(self._read_addresses())
            time.sleep(AGAIN)

    def _send(self) -> bool:
        """Send the last record's prompt once; whether it needs no further try."""
        self._route = self._route.follow(self._read_addresses())
        record = self.records[-1] = replace(self.records[-1], tries=self.records[-1].tries + 1)
        if not self._route.address:
            return False
        self._connection = http.client.HTTPConnection(self._route.address, PORT, timeout=self._patience)
        try:
            status, words = post_prompt(self._connection, record, self._token)
        except (OSError, http.client.HTTPException):
            return False
        match decide_status(status):
            case "acknowledged":
                self.records[-1] = replace(record, answered=time.monotonic(), address=self._route.address)
            case "refused":
                self.records[-1] = replace(record, refusal=f"{status}: {words}")
            case _:
                return False
        return True


def post_prompt(connection: http.client.HTTPConnection, record: Record, token: str) -> tuple[int, str]:
    """The status of the answer, and its words."""
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    body = json.dumps({"prompt": f"Prompt {record.key}.", "idempotencyKey": record.key})
    try:
        connection.request("POST", f"/v1/agents/{record.agent}/prompt", body, headers)
        response = connection.getresponse()
        return response.status, response.read().decode(errors="replace")
    finally:
        connection.close()


def start_clients(
    count: int, agents: Sequence[str], token: str, read_addresses: Callable[[], Sequence[str]]
) -> list[Client]:
    """Start `count` of them; each has agents of its own, so that no inbox grows long."""
    clients = [
        Client(f"c{n:02d}", agents[n::count], token, read_addresses, PATIENT if n % 2 else HURRIED)
        for n in range(count)
    ]  # fmt: skip
    for client in clients:
        client.start()
    return clients


def stop_clients(clients: Sequence[Client]) -> list[Record]:
    """Their records, once all have ended."""
    for client in clients:
        client.stop()
    for client in clients:
        client.join()
    return [record for client in clients for record in client.records]


def count_answers(clients: Sequence[Client], since: float) -> int:
    """How many prompts that were first sent after `since` are acknowledged."""
    return sum(1 for client in clients for record in _read_late(client, since) if record.acknowledged)


def _read_late(client: Client, since: float) -> list[Record]:
    late: list[Record] = []
    for record in reversed(list(client.records)):
        if record.sent < since:
            break
        late.append(record)
    return late
