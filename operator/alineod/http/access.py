"""Who asks, and whether the cluster's own rules let them. Answers are kept for a few seconds."""

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from starlette.requests import Request

from alineod.clock import Clock
from alineod.errors import Denied
from alineod.kube.gateway import AccessQuery, Gateway, Identity
from alineod.kube.objects import AGENTS
from alineod.wire.archives import AUDIENCE

V = TypeVar("V")
KEEP = 10.0  # s an answer of the cluster is trusted
MOST = 10_000


class Kept(Generic[V]):
    """Answers by question, for KEEP seconds. Errors are not kept."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[object, tuple[float, V]] = {}

    async def get(self, question: object, ask: Callable[[], Awaitable[V]]) -> V:
        """The kept answer, or a fresh one."""
        now = self._clock.monotonic()
        known = self._known.get(question)
        if known is not None and known[0] > now:
            return known[1]
        answer = await ask()
        if len(self._known) >= MOST:
            self._known.clear()
        self._known[question] = (now + KEEP, answer)
        return answer


class Guard:
    """TokenReview for who asks, SubjectAccessReview for what they may do."""

    def __init__(self, gateway: Gateway, clock: Clock) -> None:
        self._gateway = gateway
        self._identities: Kept[Identity] = Kept(clock)
        self._answers: Kept[bool] = Kept(clock)

    async def identify(self, request: Request, *, sandbox: bool = False) -> Identity:
        """The holder of the request's bearer token.

        Raises:
            Denied: reason `Unauthenticated`.
        """
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            message = "send a token of the cluster: Authorization: Bearer $(kubectl create token NAME)"
            raise Denied("Unauthenticated", message)
        audiences = [AUDIENCE] if sandbox else []
        return await self._identities.get((sandbox, token), lambda: self._gateway.review_token(token, audiences))

    async def allow(self, identity: Identity, verb: str, key: str, subresource: str) -> None:
        """Let through who may do `verb` on the agent's sub-resource.

        Raises:
            Denied: reason `Forbidden`; the message names the permission that is missing.
        """
        namespace, _, name = key.partition("/")
        query = AccessQuery(identity, verb, AGENTS, namespace, name, subresource)
        question = (identity.username, identity.groups, verb, key, subresource)

        async def ask() -> bool:
            return (await self._gateway.review_access(query)).allowed

        if not await self._answers.get(question, ask):
            message = (
                f"{identity.username} may not {verb} agents/{subresource} in the namespace {namespace}: "
                f"a Role with resources [agents/{subresource}] and verbs [{verb}] would allow it"
            )
            raise Denied("Forbidden", message)
