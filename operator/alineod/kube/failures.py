"""What the API server's refusals mean to us: one table from its codes and reasons to our errors.

Its own words are kept, since they name the object, the field or the quota. It must not know who asked.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from alineod.errors import AlineoError, Conflict, Denied, NotFound, Refused, Unavailable

NAMESPACE_TERMINATING = "NamespaceTerminating"


class _Cause(msgspec.Struct, frozen=True):
    reason: str = ""
    field: str = ""


class _Details(msgspec.Struct, frozen=True, rename="camel"):
    causes: tuple[_Cause, ...] | None = None
    retry_after_seconds: float = 0


class _Status(msgspec.Struct, frozen=True):
    """The part of a `Status` object that a decision hangs on."""

    reason: str = ""
    message: str = ""
    details: _Details | None = None


@dataclass(frozen=True, slots=True)
class _Rule:
    kind: type[AlineoError]
    reason: str


# By code, where the server gives no reason of its own that we tell apart.
_BY_CODE: Mapping[int, _Rule] = {
    400: _Rule(Refused, "BadRequest"),
    401: _Rule(Denied, "Unauthorized"),
    403: _Rule(Denied, "Forbidden"),
    404: _Rule(NotFound, "NotFound"),
    405: _Rule(Refused, "MethodNotAllowed"),
    408: _Rule(Unavailable, "Timeout"),
    409: _Rule(Conflict, "Conflict"),
    410: _Rule(Conflict, "Expired"),
    413: _Rule(Refused, "TooLarge"),
    415: _Rule(Refused, "UnsupportedMediaType"),
    422: _Rule(Refused, "Invalid"),
    429: _Rule(Unavailable, "TooManyRequests"),
    504: _Rule(Unavailable, "Timeout"),
}
_BY_REASON: Mapping[tuple[int, str], _Rule] = {
    (409, "AlreadyExists"): _Rule(Conflict, "AlreadyExists"),
    # An etcd that is overloaded or without a leader is told as a server error with a wish to retry.
    (500, "ServerTimeout"): _Rule(Unavailable, "Timeout"),
}


def parse_failure(code: int, body: bytes, headers: Mapping[str, str], asked: str) -> AlineoError:
    """The error that an answer of 400 and above stands for.

    Args:
        code: the HTTP status.
        body: the answer; a `Status` as JSON, or anything a proxy in between has made of it.
        headers: for `Retry-After`.
        asked: the method and path, for the sentence when the answer has none.
    """
    status = _parse_status(body)
    rule = _BY_REASON.get((code, status.reason)) or _BY_CODE.get(code) or _rule_for_unknown(code)
    message = status.message or f"The API server answered {code} to {asked}."
    if rule.kind is Unavailable:
        return Unavailable(rule.reason, message, _parse_retry_after(headers, status))
    causes = (status.details.causes if status.details else None) or ()
    if rule.kind is Denied and any(cause.reason == NAMESPACE_TERMINATING for cause in causes):
        return Denied(NAMESPACE_TERMINATING, message)
    # How the server says that an intent names another incarnation than the one that has the name now.
    if rule.reason == "Invalid" and any(cause.field == "metadata.uid" for cause in causes):
        return Conflict("Conflict", message)
    return rule.kind(rule.reason, message)


def build_unreachable(asked: str, error: Exception) -> Unavailable:
    """The error for a request that got no answer at all; whether it was done is not known."""
    what = "did not answer in time" if isinstance(error, TimeoutError) else f"could not be reached ({error})"
    return Unavailable("Unreachable", f"The API server {what}: {asked}.")


def _rule_for_unknown(code: int) -> _Rule:
    return _Rule(Unavailable, "ServerError") if code >= 500 else _Rule(Refused, "BadRequest")


def _parse_status(body: bytes) -> _Status:
    try:
        return msgspec.json.decode(body, type=_Status)
    except msgspec.DecodeError:
        return _Status()


def _parse_retry_after(headers: Mapping[str, str], status: _Status) -> float | None:
    named: Any = headers.get("Retry-After") or (status.details.retry_after_seconds if status.details else None)
    try:
        seconds = float(named or 0)
    except ValueError:
        return None  # a date: nobody in a cluster sends one
    return seconds if seconds > 0 and math.isfinite(seconds) else None
