"""An API server on loopback that a test can break: cut or silence its watches, forget history, refuse, hang.

For what a real API server does only when it is ill. It keeps objects without looking into them, lists them in pages,
streams their changes, and takes writes under optimistic locking. Everything asked of it is in `requests`.
"""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from alineod.kube.objects import AGENTS, LEASES, PODS, SWARMS, Json, Resource

# Answers a request in the server's place; None lets the server answer.
Obstacle = Callable[[web.Request], Awaitable[web.StreamResponse | None]]

SERVED = (SWARMS, AGENTS, PODS, LEASES, Resource("", "v1", "namespaces", "Namespace", namespaced=False))
VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]


@dataclass(frozen=True)
class Request:
    """What was asked, and with which token."""

    method: str
    path: str
    query: dict[str, str]
    token: str


@dataclass(eq=False)
class Watch:
    """An open stream; `None` in its lines closes it."""

    plural: str
    namespace: str
    lines: asyncio.Queue[bytes | None] = field(default_factory=asyncio.Queue)


@dataclass(frozen=True)
class Change:
    """A past event, as a watch from an older version is told it."""

    version: int
    kind: str
    plural: str
    obj: Json


class FakeApi:
    """The server's state and the ways to break it. For one event loop."""

    def __init__(self) -> None:
        self.server = ""
        self.requests: list[Request] = []
        self.obstacles: list[Obstacle] = []
        self.served = list(SERVED)
        self.silent = False
        self._objects: dict[tuple[str, str, str], Json] = {}
        self._history: list[Change] = []
        self._versions = itertools.count(1001)
        self._version = self._forgotten = 1000
        self._watches: set[Watch] = set()

    @property
    def writes(self) -> list[Request]:
        """Every request that could change something."""
        return [request for request in self.requests if request.method != "GET"]

    def count_watches(self, plural: str) -> int:
        """How many streams are open over a resource."""
        return sum(watch.plural == plural for watch in self._watches)

    def put(self, resource: Resource, obj: Json) -> Json:
        """Store an object, as someone else would, and tell its watches."""
        metadata = {"namespace": "ns", "uid": f"uid-{obj['metadata']['name']}", **obj["metadata"]}
        key = (resource.plural, metadata["namespace"], metadata["name"])
        metadata["resourceVersion"] = self._advance()
        stored = {"apiVersion": resource.api_version, "kind": resource.kind, **deepcopy(obj), "metadata": metadata}
        kind = "MODIFIED" if key in self._objects else "ADDED"
        self._objects[key] = stored
        self._tell(kind, resource.plural, stored)
        return deepcopy(stored)

    def read(self, resource: Resource, name: str, namespace: str = "ns") -> Json:
        """An object as it is stored."""
        return deepcopy(self._objects[resource.plural, namespace, name])

    def delete(self, resource: Resource, name: str, namespace: str = "ns") -> None:
        """Remove an object and tell its watches."""
        obj = self._objects.pop((resource.plural, namespace, name))
        obj["metadata"]["resourceVersion"] = self._advance()
        self._tell("DELETED", resource.plural, obj)

    def cut_watches(self) -> None:
        """Close every stream, as a load balancer does."""
        for watch in self._watches:
            watch.lines.put_nowait(None)

    def fail_watches(self, code: int) -> None:
        """Send an error in every stream."""
        for watch in self._watches:
            watch.lines.put_nowait(build_line("ERROR", build_status(code)))

    def forget(self) -> None:
        """Compact: no stream can begin from before now."""
        self._forgotten = self._version
        self._history.clear()

    def _advance(self) -> str:
        self._version = next(self._versions)
        return str(self._version)

    def _tell(self, kind: str, plural: str, obj: Json) -> None:
        self._history.append(Change(self._version, kind, plural, deepcopy(obj)))
        if self.silent:
            return
        for watch in self._watches:
            if watch.plural == plural and watch.namespace in ("", obj["metadata"]["namespace"]):
                watch.lines.put_nowait(build_line(kind, obj))

    # What it answers.

    async def answer(self, request: web.Request) -> web.StreamResponse:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        self.requests.append(Request(request.method, request.path, dict(request.query), token))
        for obstacle in list(self.obstacles):
            answer = await obstacle(request)
            if answer is not None:
                return answer
        parts = request.path.strip("/").split("/")
        if parts == ["api"]:
            return web.json_response({"versions": ["v1"]})
        if parts == ["apis"]:
            return web.json_response({"groups": self._build_groups()})
        root = "/".join(parts[:2] if parts[0] == "api" else parts[:3])
        rest = parts[len(root.split("/")) :]
        found = [resource for resource in self.served if build_root(resource) == root]
        if not rest and found:
            return web.json_response({"resources": [build_discovery(resource) for resource in found]})
        namespace, rest = (rest[1], rest[2:]) if len(rest) > 2 and rest[0] == "namespaces" else ("", rest)
        resource = next((each for each in found if rest and each.plural == rest[0]), None)
        if resource is None:
            return refuse(404, "NotFound")
        return await self._answer_resource(request, resource, namespace, rest[1] if len(rest) > 1 else "")

    async def _answer_resource(
        self, request: web.Request, resource: Resource, namespace: str, name: str
    ) -> web.StreamResponse:
        if request.method == "GET" and name:
            obj = self._objects.get((resource.plural, namespace, name))
            return refuse(404, "NotFound") if obj is None else web.json_response(obj)
        if request.method == "GET" and request.query.get("watch"):
            return await self._stream(request, resource, namespace)
        if request.method == "GET":
            return self._list(request, resource, namespace)
        return self._write(resource, namespace, name, await request.json())

    def _write(self, resource: Resource, namespace: str, name: str, body: Json) -> web.Response:
        key = (resource.plural, namespace, name or body["metadata"]["name"])
        known = self._objects.get(key)
        if known is not None and not name:
            return refuse(409, "AlreadyExists")
        if known is not None and body["metadata"].get("resourceVersion") != known["metadata"]["resourceVersion"]:
            return refuse(409, "Conflict")
        return web.json_response(self.put(resource, body))

    def _list(self, request: web.Request, resource: Resource, namespace: str) -> web.Response:
        items = [
            obj
            for (plural, space, _), obj in sorted(self._objects.items())
            if plural == resource.plural and namespace in ("", space)
        ]
        start, limit = int(request.query.get("continue") or 0), int(request.query.get("limit") or len(items) or 1)
        more = str(start + limit) if start + limit < len(items) else ""
        metadata = {"resourceVersion": str(self._version), **({"continue": more} if more else {})}
        body = {"apiVersion": resource.api_version, "kind": f"{resource.kind}List", "metadata": metadata}
        return web.json_response({**body, "items": items[start : start + limit]})

    async def _stream(self, request: web.Request, resource: Resource, namespace: str) -> web.StreamResponse:
        response, since = web.StreamResponse(), int(request.query.get("resourceVersion") or self._version)
        watch = Watch(resource.plural, namespace)
        if since < self._forgotten:
            watch.lines.put_nowait(build_line("ERROR", build_status(410)))
            watch.lines.put_nowait(None)
        for change in self._history:
            if change.version > since and change.plural == resource.plural:
                watch.lines.put_nowait(build_line(change.kind, change.obj))
        self._watches.add(watch)
        try:
            await response.prepare(request)
            while (line := await watch.lines.get()) is not None:
                await response.write(line)
        except ConnectionError:
            pass
        finally:
            self._watches.discard(watch)
        return response

    def _build_groups(self) -> list[Json]:
        groups = {resource.group: resource.version for resource in self.served if resource.group}
        return [
            {"name": group, "preferredVersion": {"version": version}, "versions": [{"version": version}]}
            for group, version in groups.items()
        ]


def build_root(resource: Resource) -> str:
    return f"apis/{resource.group}/{resource.version}" if resource.group else f"api/{resource.version}"


def build_discovery(resource: Resource) -> Json:
    return {
        "name": resource.plural,
        "singularName": resource.kind.lower(),
        "kind": resource.kind,
        "namespaced": resource.namespaced,
        "verbs": VERBS,
    }


def build_line(kind: str, obj: Json) -> bytes:
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


def build_status(code: int, reason: str = "Scripted", message: str = "as the test says") -> Json:
    return {"apiVersion": "v1", "kind": "Status", "code": code, "reason": reason, "message": message}


def refuse(code: int, reason: str = "Scripted", headers: dict[str, str] | None = None) -> web.Response:
    """The answer of a server that will not."""
    return web.json_response(build_status(code, reason), status=code, headers=headers)


def demand_token(read_valid: Callable[[], set[str]]) -> Obstacle:
    """Let nobody in but who shows a token that is valid now."""

    async def obstacle(request: web.Request) -> web.StreamResponse | None:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        return None if token in read_valid() else refuse(401, "Unauthorized")

    return obstacle


def answer_once(*answers: Callable[[], web.StreamResponse], when: Callable[[web.Request], bool] = bool) -> Obstacle:
    """Give these answers to the first requests that match, then let the server answer."""
    waiting = list(answers)

    async def obstacle(request: web.Request) -> web.StreamResponse | None:
        return waiting.pop(0)() if waiting and when(request) else None

    return obstacle


@asynccontextmanager
async def serve(api: FakeApi, port: int = 0) -> AsyncIterator[str]:
    """Serve on loopback; gives the address."""
    app = web.Application(client_max_size=8 * 2**20)
    app.router.add_route("*", "/{path:.*}", api.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site: Any = web.TCPSite(runner, "127.0.0.1", port)
        await site.start()
        api.server = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield api.server
    finally:
        api.cut_watches()
        await runner.cleanup()
