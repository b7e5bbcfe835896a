"""The table of the API server's refusals, with answers as it gives them."""

import json
from typing import Any

import pytest

from alineod.errors import AlineoError, Conflict, Denied, NotFound, Refused, Unavailable
from alineod.kube.failures import build_unreachable, parse_failure


def build_status(reason: str = "", message: str = "words", **details: Any) -> bytes:
    return json.dumps({"kind": "Status", "reason": reason, "message": message, "details": details}).encode()


TERMINATING = build_status("Forbidden", causes=[{"reason": "NamespaceTerminating", "field": "metadata.namespace"}])
OTHER_UID = build_status("Invalid", causes=[{"reason": "FieldValueInvalid", "field": "metadata.uid"}])


@pytest.mark.parametrize(
    ("code", "body", "kind", "reason"),
    [
        (409, build_status("AlreadyExists"), Conflict, "AlreadyExists"),
        (409, build_status("Conflict"), Conflict, "Conflict"),
        (404, build_status("NotFound"), NotFound, "NotFound"),
        (403, build_status("Forbidden"), Denied, "Forbidden"),
        (403, TERMINATING, Denied, "NamespaceTerminating"),
        (401, build_status("Unauthorized"), Denied, "Unauthorized"),
        (422, build_status("Invalid"), Refused, "Invalid"),
        (422, OTHER_UID, Conflict, "Conflict"),
        (400, build_status("BadRequest"), Refused, "BadRequest"),
        (413, build_status("RequestEntityTooLarge"), Refused, "TooLarge"),
        (418, build_status(), Refused, "BadRequest"),
        (410, build_status("Expired"), Conflict, "Expired"),
        (429, build_status("TooManyRequests"), Unavailable, "TooManyRequests"),
        (500, build_status("InternalError"), Unavailable, "ServerError"),
        (500, build_status("ServerTimeout"), Unavailable, "Timeout"),
        (503, build_status("ServiceUnavailable"), Unavailable, "ServerError"),
        (504, build_status("Timeout"), Unavailable, "Timeout"),
    ],
)
def test_what_an_answer_means(code: int, body: bytes, kind: type[AlineoError], reason: str) -> None:
    error = parse_failure(code, body, {}, "GET /x")
    assert (type(error), error.reason, error.message) == (kind, reason, "words")
    assert error.retryable is (kind is Unavailable)


@pytest.mark.parametrize("body", [b"", b"Too many requests, please try again later.", b"<html>", b"[]", b"\xff"])
def test_an_answer_without_words_names_what_was_asked(body: bytes) -> None:
    error = parse_failure(429, body, {}, "GET /api/v1/pods")
    assert error.message == "The API server answered 429 to GET /api/v1/pods."


@pytest.mark.parametrize(
    ("headers", "details", "seconds"),
    [
        ({}, {}, None),
        ({"Retry-After": "3"}, {}, 3.0),
        ({"Retry-After": "3"}, {"retryAfterSeconds": 9}, 3.0),
        ({}, {"retryAfterSeconds": 9}, 9.0),
        ({"Retry-After": "0"}, {}, None),
        ({"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, {}, None),
        ({"Retry-After": "inf"}, {}, None),
    ],
)
def test_the_time_a_server_names_is_kept(
    headers: dict[str, str], details: dict[str, Any], seconds: float | None
) -> None:
    error = parse_failure(503, build_status(**details), headers, "GET /x")
    assert isinstance(error, Unavailable)
    assert error.retry_after == seconds


def test_no_answer_says_what_is_not_known() -> None:
    assert build_unreachable("GET /x", TimeoutError()).message == "The API server did not answer in time: GET /x."
    refused = build_unreachable("GET /x", ConnectionRefusedError(111, "refused"))
    assert "could not be reached" in refused.message
    assert refused.retry_after is None
