"""An API server in memory, in a process of its own: neither its work nor its objects are on the operator's account.

The two ends speak over pipes: calls and their answers over one, what a watch would tell over the other.
"""

import contextlib
import multiprocessing
import threading
from collections.abc import Callable, Coroutine
from multiprocessing.connection import Connection
from typing import Any

import msgspec

from alineod.clock import SystemClock
from alineod.errors import AlineoError
from alineod.kube.gateway import Page
from alineod.kube.memory import MemoryGateway
from alineod.kube.objects import AGENTS, CRDS, SWARMS, WATCHED, Json, Resource
from tests.unit.reconcile.simulation import NAMESPACE

Listener = Callable[[str, Resource, Json], None]
RESOURCES = {watched.resource.plural: watched.resource for watched in WATCHED}


class Api:
    """The near end. `call` blocks, one thread at a time; listeners are called on a thread of their own."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._calls, calls = context.Pipe()
        self._told, told = context.Pipe(duplex=False)
        self.listeners: list[Listener] = []
        context.Process(target=_serve, args=(calls, told), daemon=True).start()
        told.close()
        threading.Thread(target=self._hear, name="watches", daemon=True).start()

    def call(self, verb: str, *args: Any, **named: Any) -> bytes:
        """The answer as JSON.

        Raises:
            AlineoError: as the gateway in memory does.
        """
        self._calls.send((verb, args, named))
        answer: bytes | tuple[type[AlineoError], str, str] = self._calls.recv()
        if isinstance(answer, bytes):
            return answer
        kind, reason, message = answer
        raise kind(reason, message)

    def _hear(self) -> None:
        with contextlib.suppress(EOFError):  # its process has ended
            while True:
                kind, plural, obj = msgspec.json.decode(self._told.recv_bytes())
                for listener in tuple(self.listeners):
                    listener(kind, RESOURCES[plural], obj)


def _serve(calls: Connection, told: Connection) -> None:
    """The far end, until its process is ended."""
    gateway = MemoryGateway(SystemClock(), namespaces=(NAMESPACE,))
    for resource in (AGENTS, SWARMS):
        gateway.objects.insert(CRDS, {"metadata": {"name": str(resource)}})

    def tell(kind: str, resource: Resource, obj: Json) -> None:
        if resource.plural in RESOURCES:
            told.send_bytes(msgspec.json.encode((kind, resource.plural, obj)))

    gateway.objects.watchers.append(tell)
    while True:
        verb, args, named = calls.recv()
        try:
            calls.send(_answer(gateway, verb, args, named))
        except AlineoError as error:
            calls.send((type(error), error.reason, error.message))
        gateway.calls.clear()


def _answer(gateway: MemoryGateway, verb: str, args: Any, named: Any) -> bytes:
    answer = getattr(gateway, verb)(*args, **named)
    if isinstance(answer, Coroutine):
        answer = _finish(answer)
    if isinstance(answer, Page):
        answer = {"items": answer.items, "version": answer.version, "continue": answer.continuation}
    return msgspec.json.encode(answer)


def _finish(call: Coroutine[Any, Any, Any]) -> Any:
    """The answer of a call that waits for nothing."""
    try:
        call.send(None)
    except StopIteration as done:
        return done.value
    raise RuntimeError("the cluster in memory waits for something")
