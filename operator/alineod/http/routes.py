"""The routes. A table of path, method and handler; each handler parses, asks the guard, calls one verb, answers."""

import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from alineod.crd.agent import MAX_PROMPT
from alineod.domain.state import AgentState
from alineod.errors import AlineoError, Refused, Unavailable
from alineod.http.access import Guard
from alineod.http.health import answer_health
from alineod.http.problems import answer_error, answer_unknown
from alineod.kube.health import Health, Phase
from alineod.reconcile.archives import (
    SandboxPod,
    build_grant,
    check_turn,
    find_by_pod,
    record_checkpoint,
)
from alineod.reconcile.prompts import queue_prompt, read_result
from alineod.reconcile.starts import answer_start
from alineod.reconcile.world import World
from alineod.wire.archives import CheckpointReport, GrantRequest, Recorded, StartRequest
from alineod.wire.base import Message, decode, encode

MAX_BODY = 1 << 20
MAX_WAIT = 240.0  # s
MAX_DIGITS = 15

Handler = Callable[[Request], Awaitable[Response]]


class PromptRequest(Message, frozen=True, forbid_unknown_fields=True):
    """`idempotencyKey` makes a repeat give the first answer."""

    prompt: str
    idempotency_key: str = ""


class Api:
    """The handlers, with what they need."""

    def __init__(self, world: World, guard: Guard) -> None:
        self._world = world
        self._guard = guard

    async def prompt(self, request: Request) -> Response:
        """202 with the turn the prompt becomes."""
        key = _agent_key(request)
        await self._guard.allow(await self._guard.identify(request), "create", key, "prompt")
        body = decode(PromptRequest, await _read_body(request))
        if not body.prompt.strip():
            raise Refused("InvalidBody", "prompt is empty: say what the agent is to do")
        if len(body.prompt) > MAX_PROMPT:
            message = f"prompt has {len(body.prompt)} characters, {MAX_PROMPT} are the most: put the rest into a file"
            raise Refused("RecordTooLarge", message)
        repeat = body.idempotency_key or uuid.uuid4().hex
        try:
            accepted = await queue_prompt(self._world, key, body.prompt, repeat)
        except Unavailable as error:
            message = f"{error.message} The same idempotencyKey gives the first answer: {repeat}"
            raise Unavailable(error.reason, message, error.retry_after) from error
        return JSONResponse({"agent": key, "idempotencyKey": accepted.id, "turn": accepted.turn}, 202)

    async def result(self, request: Request) -> Response:
        """200 with what came of the turn, 202 while nothing has."""
        key = _agent_key(request)
        await self._guard.allow(await self._guard.identify(request), "get", key, "result")
        turn = _read_number(request, "turn", None)
        if turn == 0:
            raise Refused("InvalidQuery", "turn=0: turns are counted from 1")
        repeat = request.query_params.get("idempotencyKey", "")
        if repeat and turn is not None:
            raise Refused("InvalidQuery", "turn and idempotencyKey: ask for the one or the other")
        wait = _read_number(request, "wait", 0) or 0
        result = await read_result(self._world, key, turn, min(float(wait), MAX_WAIT), repeat)
        body = {"agent": key, "turn": result.turn, "outcome": result.outcome and str(result.outcome)}
        if result.outcome is None:
            return JSONResponse(body, 202)
        return JSONResponse(body | {"result": result.result, "error": result.error, "errorKind": result.error_kind})

    async def start(self, request: Request) -> Response:
        """A sandbox asks how it is to start; while it cannot, its agent's condition says why."""
        agent = await self._sandbox(request)
        body = decode(StartRequest, await _read_body(request))
        _check_incarnation(agent, body.incarnation)
        return _json(await answer_start(self._world, agent, body))

    async def grant(self, request: Request) -> Response:
        """A sandbox asks for a fresh grant."""
        agent = await self._sandbox(request)
        body = decode(GrantRequest, await _read_body(request))
        _check_incarnation(agent, body.incarnation)
        check_turn(agent, body.turn)
        grant = build_grant(self._world, agent, body.turn, body.incarnation)
        if grant is None:
            raise Refused("NoBucket", "no bucket is configured: set bucket.name in the chart's values")
        return _json(grant)

    async def checkpoint(self, request: Request) -> Response:
        """A sandbox reports a checkpoint. One that is the agent's no more is told to forget it: nothing is recorded."""
        try:
            agent = await self._sandbox(request)
        except Refused as error:
            if error.reason != "StalePod":
                raise
            return _json(Recorded(done=True, message=error.message))
        report = decode(CheckpointReport, await _read_body(request))
        return _json(await record_checkpoint(self._world, agent, report))

    async def _sandbox(self, request: Request) -> AgentState:
        identity = await self._guard.identify(request, sandbox=True)
        return find_by_pod(self._world, SandboxPod(identity.pod_uid, identity.namespace, identity.pod_name))


def _check_incarnation(agent: AgentState, incarnation: int) -> None:
    if incarnation != agent.incarnation:
        raise Refused("StalePod", f"incarnation {incarnation} is not the agent's sandbox any more")


def _agent_key(request: Request) -> str:
    """`namespace/agent`, as two path segments or as one that is percent-encoded."""
    namespace = request.path_params["namespace"]
    name = request.path_params.get("name")
    key = f"{namespace}/{name}" if name is not None else namespace
    if key.count("/") != 1 or key.startswith("/") or key.endswith("/"):
        raise Refused("InvalidAgent", f"{key} names no agent: write namespace/agent")
    return key


async def _read_body(request: Request) -> bytes:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY:
            raise Refused("RecordTooLarge", f"the body is larger than {MAX_BODY} bytes")
    return body


def _read_number(request: Request, name: str, default: int | None) -> int | None:
    text = request.query_params.get(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or len(text) > MAX_DIGITS:
        raise Refused("InvalidQuery", f"{name}={text} is no whole number of 0 or more")
    return int(text)


def _json(message: msgspec.Struct) -> Response:
    return Response(encode(message), media_type="application/json")


def build_app(world: World, guard: Guard, health: Health) -> Starlette:
    """The application of a leader. Sandboxes are answered from the beginning, people when `health` says it serves."""
    api = Api(world, guard)

    def led(handler: Handler) -> Handler:
        async def answer(request: Request) -> Response:
            world.check_term()  # what a leader of before remembers is no answer
            return await handler(request)

        return answer

    def served(handler: Handler) -> Handler:
        async def answer(request: Request) -> Response:
            _check_serving(health)
            return await handler(request)

        return led(answer)

    async def tell_health(request: Request) -> Response:
        return answer_health(health, world.release.instance, world)

    table: Mapping[tuple[str, str], Handler] = {
        ("GET", "/v1/health"): tell_health,
        ("POST", "/v1/agents/{namespace}/{name}/prompt"): served(api.prompt),
        ("GET", "/v1/agents/{namespace}/{name}/result"): served(api.result),
        ("POST", "/v1/sandbox/start"): led(api.start),
        ("POST", "/v1/sandbox/grants"): led(api.grant),
        ("POST", "/v1/sandbox/checkpoints"): led(api.checkpoint),
    }
    return _build(Route(path, handler, methods=[method]) for (method, path), handler in table.items())


def _check_serving(health: Health) -> None:
    facts = health.read_facts()
    if facts.phase is Phase.RECONNECTING:
        message = f"{facts.reconnected} of {facts.known} agents are reconnected so far: ask again"
        raise Unavailable("Reconnecting", message)


def build_standby_app(reason: Callable[[], str], health: Health, instance: str) -> Starlette:
    """The application of a process that does not lead, or not yet: everything but its health is elsewhere, for now."""

    async def refuse(request: Request) -> Response:
        raise Unavailable("NotLeader", reason())

    async def tell_health(request: Request) -> Response:
        return answer_health(health, instance)

    verbs = ["GET", "POST", "DELETE", "PUT", "PATCH"]
    return _build([Route("/v1/health", tell_health, methods=["GET"]), Route("/{path:path}", refuse, methods=verbs)])


def _build(routes: Iterable[Route]) -> Starlette:
    handlers = {AlineoError: answer_error, HTTPException: answer_unknown}
    return Starlette(routes=list(routes), exception_handlers=handlers)
