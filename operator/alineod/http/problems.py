"""Errors as `application/problem+json` (RFC 9457), by one table."""

import json
from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response

from alineod.errors import AlineoError, Conflict, Damaged, Denied, NotFound, Refused, Unavailable

STATUS: Mapping[type[AlineoError], int] = {
    Conflict: 409,
    NotFound: 404,
    Denied: 403,
    Refused: 400,
    Damaged: 500,
    Unavailable: 503,
}
STATUS_BY_REASON: Mapping[str, int] = {
    "Unauthenticated": 401,
    "RecordTooLarge": 413,
    "PodNotRecorded": 425,
    "ParentNotReady": 425,
    "TurnNotRecorded": 425,
    "RestoreWaiting": 425,
    "WaitingForPlace": 425,
}
RETRY_AFTER = 1.0  # s


def compute_status(error: AlineoError) -> int:
    """The HTTP status of an error."""
    if error.reason in STATUS_BY_REASON:
        return STATUS_BY_REASON[error.reason]
    return next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)


def build_problem(status: int, reason: str, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """One problem; `reason` is the same word as in conditions and Events."""
    body = {"type": "about:blank", "title": reason, "status": status, "detail": message}
    return Response(json.dumps(body), status, dict(headers or {}), "application/problem+json")


async def answer_error(request: Request, error: Exception) -> Response:
    """The exception handler of the application."""
    if not isinstance(error, AlineoError):
        raise error
    status = compute_status(error)
    after = getattr(error, "retry_after", None) or RETRY_AFTER
    headers = {"retry-after": f"{max(1, round(after))}"} if error.retryable else {}
    return build_problem(status, error.reason, error.message, headers)


async def answer_unknown(request: Request, error: Exception) -> Response:
    """A path or method that is not served."""
    status = getattr(error, "status_code", 500)
    reason = {404: "UnknownPath", 405: "UnknownMethod"}.get(status, "HttpError")
    message = f"{request.method} {request.url.path} is not served here"
    return build_problem(status, reason, message, getattr(error, "headers", None))
