"""The port to the processes in a sandbox, and its HTTP form. It must not know why they are asked."""

import hashlib
import hmac
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Protocol, TypeVar

import aiohttp

from alineod.domain.ends import BRIDGE_DENIED, LOCKED_OUT
from alineod.domain.facts import PodFacts
from alineod.errors import Conflict, Denied, Refused, Unavailable
from alineod.reconcile.records import LONGEST, parse_record
from alineod.wire.archives import CHECKPOINTER_PORT, ForkRequest, ForkResult
from alineod.wire.base import Message, decode, encode
from alineod.wire.turns import (
    BRIDGE_PORT,
    AbortRequest,
    BridgeReason,
    BridgeState,
    JournalRecord,
    TurnAccepted,
    TurnRequest,
)

M = TypeVar("M")

STATE_SECONDS = 3.0  # a bridge has its state at hand; who asks may be waited for by all who wait for a new leader
CALL_SECONDS = 10.0
SILENCE_SECONDS = 35.0  # the bridge sends something every 10 s
FORK_SECONDS = 3600.0
USED_NUMBER = (BridgeReason.OTHER_PROMPT, BridgeReason.OTHER_TURN, BridgeReason.STALE_TURN)
"""Why a turn is refused whose number is known for something else."""
DENIALS: Mapping[str, str] = {BridgeReason.UNAUTHORIZED: BRIDGE_DENIED, BridgeReason.LOCKED: LOCKED_OUT}
"""Why nobody is let in, and what that is called where it is told."""
ANSWER_LIMIT = 64 << 10  # bytes of any other answer: a sandbox is not to be believed, nor to fill our memory


class _Problem(Message, frozen=True):
    reason: str = ""
    detail: str = ""


def build_bridge_token(secret: bytes, pod_uid: str) -> str:
    """The token that the pod's bridge asks for. Derived, so that every leader knows it and nobody stores it."""
    return hmac.new(secret, f"bridge/{pod_uid}".encode(), hashlib.sha256).hexdigest()


class Bridges(Protocol):
    """What may be asked of a sandbox. All raise Unavailable when it does not answer, Refused when it says no.

    A Conflict with the reason `JournalReset` says that the sandbox has not the journal any more that was read.
    """

    async def read_state(self, pod: PodFacts, token: str) -> BridgeState: ...

    async def start_turn(self, pod: PodFacts, token: str, request: TurnRequest) -> TurnAccepted:
        """Hand a turn over; the same turn id again starts nothing."""
        ...

    async def abort_turn(self, pod: PodFacts, token: str, turn_id: str, request: AbortRequest) -> TurnAccepted:
        """End a turn before it has settled; one that has ended stays as it is."""
        ...

    def follow(self, pod: PodFacts, token: str, after: int) -> AsyncIterator[JournalRecord]:
        """The journal from the record after `after`, then live, until the caller stops."""
        ...

    async def cut_fork(self, pod: PodFacts, token: str, request: ForkRequest) -> ForkResult: ...


class HttpBridges:
    """Bridges and checkpointers by the IP address of their pod.

    `remaining`: the seconds for which this process may still act. What has an effect lasts no longer; a fork has none
    that anybody but this leader would look for.
    """

    def __init__(self, session: aiohttp.ClientSession, remaining: Callable[[], float] = lambda: float("inf")) -> None:
        self._session, self._remaining = session, remaining

    async def read_state(self, pod: PodFacts, token: str) -> BridgeState:
        return await self._call(BridgeState, "GET", _url(pod, BRIDGE_PORT, "/v1/state"), token, seconds=STATE_SECONDS)

    async def start_turn(self, pod: PodFacts, token: str, request: TurnRequest) -> TurnAccepted:
        url = _url(pod, BRIDGE_PORT, "/v1/turns")
        return await self._call(TurnAccepted, "POST", url, token, encode(request), seconds=self._find_seconds())

    async def abort_turn(self, pod: PodFacts, token: str, turn_id: str, request: AbortRequest) -> TurnAccepted:
        url = _url(pod, BRIDGE_PORT, f"/v1/turns/{turn_id}/abort")
        return await self._call(TurnAccepted, "POST", url, token, encode(request), seconds=self._find_seconds())

    def _find_seconds(self) -> float:
        """How long a call that has an effect may take."""
        if (seconds := min(CALL_SECONDS, self._remaining())) <= 0:
            raise Unavailable("LeaseLost", "this process no longer leads: the sandbox was not asked for anything")
        return seconds

    async def cut_fork(self, pod: PodFacts, token: str, request: ForkRequest) -> ForkResult:
        url = _url(pod, CHECKPOINTER_PORT, "/v1/forks")
        return await self._call(ForkResult, "POST", url, token, encode(request), seconds=FORK_SECONDS)

    async def follow(self, pod: PodFacts, token: str, after: int) -> AsyncIterator[JournalRecord]:
        url = _url(pod, BRIDGE_PORT, f"/v1/journal?after={after}&follow=1")
        timeout = aiohttp.ClientTimeout(total=None, connect=CALL_SECONDS, sock_read=SILENCE_SECONDS)
        try:
            async with self._session.get(url, headers=_headers(token), timeout=timeout, read_bufsize=LONGEST) as answer:
                await _check(answer)
                async for line in answer.content:
                    if (record := parse_record(line)) is not None:
                        yield record
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise Unavailable("BridgeNotAnswering", f"the journal of {pod.name} broke off: {_say(error)}") from error

    async def _call(
        self, kind: type[M], method: str, url: str, token: str, body: bytes | None = None, seconds: float = CALL_SECONDS
    ) -> M:
        timeout = aiohttp.ClientTimeout(total=seconds, connect=CALL_SECONDS, ceil_threshold=float("inf"))
        try:
            async with self._session.request(
                method, url, data=body, headers=_headers(token), timeout=timeout
            ) as answer:
                await _check(answer)
                return decode(kind, await _read(answer, ANSWER_LIMIT))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            where = url.partition("/v1/")[0].removeprefix("http://")
            raise Unavailable(
                "BridgeNotAnswering", f"nothing answers at {where} in the sandbox ({_say(error)})"
            ) from error


async def _read(answer: aiohttp.ClientResponse, limit: int) -> bytes:
    body = b""
    async for chunk in answer.content.iter_chunked(limit):
        body += chunk
        if len(body) > limit:
            raise Refused("AnswerTooLarge", f"the sandbox's answer is larger than {limit} bytes")
    return body


def _say(error: Exception) -> str:
    """Why, in the system's own words where there are some."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _url(pod: PodFacts, port: int, path: str) -> str:
    host = f"[{pod.ip}]" if ":" in pod.ip else pod.ip
    return f"http://{host}:{port}{path}"


def _headers(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}", "content-type": "application/json"}


def _read_problem(body: bytes) -> _Problem:
    try:
        return decode(_Problem, body)
    except Refused:
        return _Problem()


async def _check(answer: aiohttp.ClientResponse) -> None:
    if answer.status < 400:
        return
    body = await _read(answer, ANSWER_LIMIT)
    problem, said = _read_problem(body), body.decode("utf-8", "replace")[:1000]
    match answer.status:
        case 401 if (reason := DENIALS.get(problem.reason)) is not None:
            raise Denied(reason, f"the sandbox does not let the operator in: {problem.detail}")
        case 409:
            known = problem.reason in (BridgeReason.JOURNAL_RESET, *USED_NUMBER)
            raise Conflict(problem.reason if known else "TurnConflict", said)
        case 423 | 425 | 429 | 502 | 503 | 504:
            raise Unavailable("BridgeBusy", said)
        case _:
            raise Refused("BridgeRefused", f"HTTP {answer.status}: {said}")
