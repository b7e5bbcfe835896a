"""The gateway to a real API server, over aiohttp.

Each call is one request with a deadline, which the server is told too, given again only when the server said that it
did nothing. It must not know what an object means; what answers mean is in `kube.failures`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import msgspec

from alineod.clock import Clock
from alineod.errors import Conflict, Denied, NotFound, Unavailable
from alineod.kube.access import ClusterAccess
from alineod.kube.bodies import (
    build_access_review,
    build_delete_options,
    build_event,
    build_token_review,
    is_still_there,
    parse_access_review,
    parse_token_review,
)
from alineod.kube.failures import build_unreachable, parse_failure
from alineod.kube.gateway import PAGE_SIZE, AccessAnswer, AccessQuery, EventRecord, Identity, Page
from alineod.kube.objects import (
    ACCESS_REVIEWS,
    EVENTS,
    MANAGER,
    STATUS_MANAGER,
    TOKEN_REVIEWS,
    Json,
    Resource,
    add_kind,
)
from alineod.kube.paths import add_query, build_path, build_query, build_root
from alineod.kube.sockets import open_socket

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

# Told after every answer: verb, resource, code (0 when there was no answer) and seconds.
Observer = Callable[[str, str, int, float], None]


@dataclass(frozen=True, slots=True)
class ApiOptions:
    """Limits of the gateway's requests, in seconds; `retries` are those after the server asked for patience."""

    call: float = 15.0
    retries: int = 2
    longest_pause: float = 5.0


@dataclass(frozen=True, slots=True)
class _Request:
    verb: str
    method: str
    resource: str
    target: str
    body: Json | None = None
    content_type: str = JSON
    accept: str = JSON

    @property
    def asked(self) -> str:
        return f"{self.method} {self.target.partition('?')[0]}"


@asynccontextmanager
async def open_api(
    access: ClusterAccess,
    clock: Clock,
    *,
    options: ApiOptions | None = None,
    remaining: Callable[[], float] = lambda: float("inf"),
    observe: Observer = lambda verb, resource, code, seconds: None,
) -> AsyncIterator["ApiGateway"]:
    """A gateway for the running event loop.

    Args:
        access: where the server is and who we are.
        clock: to measure and to limit calls.
        options: limits; the defaults suit a cluster.
        remaining: seconds for which this process may still act (its lease); no call lasts longer.
        observe: told the code and duration of every answer.
    """
    connector = aiohttp.TCPConnector(limit=64, ssl=access.build_ssl_context() or True, socket_factory=open_socket)
    async with aiohttp.ClientSession(access.server, connector=connector, trust_env=False) as session:
        yield ApiGateway(session, access, clock, options or ApiOptions(), remaining, observe)


class ApiGateway:
    """`Gateway` as the real API server answers it."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        access: ClusterAccess,
        clock: Clock,
        options: ApiOptions,
        remaining: Callable[[], float],
        observe: Observer,
    ) -> None:
        self._session, self._access, self._clock = session, access, clock
        self._options, self._remaining, self._observe = options, remaining, observe

    async def get(self, resource: Resource, namespace: str, name: str) -> Json:
        return await self._call("get", "GET", resource, build_path(resource, namespace, name))

    async def list_page(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        labels: str = "",
        metadata_only: bool = False,
        limit: int = PAGE_SIZE,
        continuation: str = "",
    ) -> Page:
        target = build_path(resource, namespace) + build_query(
            labelSelector=labels, limit=limit, **{"continue": continuation}
        )
        accept = METADATA_LIST if metadata_only else JSON
        answer = await self._call("list", "GET", resource, target, accept=accept)
        metadata = answer.get("metadata") or {}
        return Page(tuple(answer.get("items") or ()), metadata.get("resourceVersion", ""), metadata.get("continue", ""))

    async def create(self, resource: Resource, body: Json, *, dry_run: bool = False) -> Json:
        target = build_path(resource, body["metadata"].get("namespace")) + build_query(
            fieldManager=MANAGER, dryRun="All" if dry_run else None
        )
        return await self._call("create", "POST", resource, target, add_kind(resource, body))

    async def delete(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        uid: str,
        version: str = "",
        grace_seconds: int | None = None,
    ) -> Json | None:
        target, options = build_path(resource, namespace, name), build_delete_options(uid, version, grace_seconds)
        try:
            answer = await self._call("delete", "DELETE", resource, target, options)
        except NotFound:
            return None
        return answer if is_still_there(answer) else None

    async def apply(self, resource: Resource, body: Json, *, manager: str = MANAGER, force: bool = True) -> Json:
        return await self._apply("apply", resource, body, "", manager, force)

    async def apply_status(
        self, resource: Resource, body: Json, *, manager: str = STATUS_MANAGER, force: bool = True
    ) -> Json:
        return await self._apply("apply_status", resource, body, "status", manager, force)

    async def patch_labels(
        self, resource: Resource, namespace: str, name: str, labels: Mapping[str, str | None], *, version: str = ""
    ) -> Json:
        target = build_path(resource, namespace, name) + build_query(fieldManager=MANAGER)
        body = {"metadata": {"labels": dict(labels), **({"resourceVersion": version} if version else {})}}
        return await self._call("patch", "PATCH", resource, target, body, content_type=MERGE_PATCH)

    async def review_token(self, token: str, audiences: Sequence[str]) -> Identity:
        target = build_path(TOKEN_REVIEWS)
        answer = await self._call("create", "POST", TOKEN_REVIEWS, target, build_token_review(token, audiences))
        return parse_token_review(answer, audiences)

    async def review_access(self, query: AccessQuery) -> AccessAnswer:
        target = build_path(ACCESS_REVIEWS)
        return parse_access_review(
            await self._call("create", "POST", ACCESS_REVIEWS, target, build_access_review(query))
        )

    async def create_event(self, event: EventRecord) -> None:
        body = build_event(event)
        try:
            await self._call("create", "POST", EVENTS, build_path(EVENTS, body["metadata"]["namespace"]), body)
        except Conflict:
            return  # told before

    async def read_missing(self, resources: Collection[Resource]) -> tuple[Resource, ...]:
        served: set[tuple[str, str]] = set()
        for root, resource in {build_root(resource): resource for resource in resources}.items():
            try:
                answer = await self._call("discover", "GET", resource, root)
            except NotFound:
                continue
            served |= {(root, entry["name"]) for entry in answer.get("resources") or ()}
        return tuple(resource for resource in resources if (build_root(resource), resource.plural) not in served)

    async def _apply(
        self, verb: str, resource: Resource, body: Json, subresource: str, manager: str, force: bool
    ) -> Json:
        metadata = body["metadata"]
        target = build_path(resource, metadata.get("namespace"), metadata["name"], subresource)
        target += build_query(fieldManager=manager, force=force)
        return await self._call(verb, "PATCH", resource, target, add_kind(resource, body), content_type=APPLY_PATCH)

    async def _call(
        self,
        verb: str,
        method: str,
        resource: Resource,
        target: str,
        body: Json | None = None,
        *,
        content_type: str = JSON,
        accept: str = JSON,
    ) -> Json:
        request = _Request(verb, method, str(resource), target, body, content_type, accept)
        for attempt in range(self._options.retries + 1):
            last = attempt == self._options.retries
            try:
                return await self._send(request)
            except Denied as error:
                # The token was replaced between our reading it and the server's looking at it.
                if last or attempt > 0 or error.reason != "Unauthorized":
                    raise
            except Unavailable as error:
                # Only a server that names a time has surely done nothing.
                if last or error.retry_after is None or error.retry_after > self._options.longest_pause:
                    raise
                await asyncio.sleep(error.retry_after)
        raise AssertionError("the last attempt returns or raises")

    async def _send(self, request: _Request) -> Json:
        seconds = min(self._options.call, self._remaining())
        if seconds <= 0:
            raise Unavailable("LeaseLost", f"This process no longer leads: {request.asked} was not sent.")
        began, code = self._clock.monotonic(), 0
        try:
            async with self._session.request(
                request.method,
                add_query(request.target, timeout=f"{seconds:.3f}s"),
                data=None if request.body is None else msgspec.json.encode(request.body),
                headers={
                    **self._access.build_headers(),
                    "Content-Type": request.content_type,
                    "Accept": request.accept,
                },
                timeout=aiohttp.ClientTimeout(total=seconds, ceil_threshold=float("inf")),
                allow_redirects=False,
            ) as response:
                code, answer = response.status, await response.read()
                headers = response.headers
        except (aiohttp.ClientError, OSError) as error:
            raise build_unreachable(request.asked, error) from error
        finally:
            self._observe(request.verb, request.resource, code, self._clock.monotonic() - began)
        if code >= 400:
            raise parse_failure(code, answer, headers, request.asked)
        return _parse_answer(answer, request)


def _parse_answer(answer: bytes, request: _Request) -> dict[str, Any]:
    try:
        parsed: dict[str, Any] = msgspec.json.decode(answer, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise Unavailable("BadAnswer", f"What answered {request.asked} is no API server: {error}.") from error
    return parsed
