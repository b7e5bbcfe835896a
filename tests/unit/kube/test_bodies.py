"""The bodies that the gateway writes itself."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alineod.errors import Denied
from alineod.kube.bodies import (
    build_delete_options,
    build_event,
    build_event_name,
    cut_text,
    is_still_there,
    parse_access_review,
    parse_token_review,
)
from alineod.kube.gateway import EventRecord, EventType
from alineod.kube.objects import AGENTS, NODES


@pytest.mark.parametrize(
    ("answer", "still"),
    [
        ({"kind": "Status"}, False),
        ({"metadata": {"uid": "u"}}, False),
        ({"metadata": {"deletionTimestamp": "t", "deletionGracePeriodSeconds": 0}}, False),
        ({"metadata": {"deletionTimestamp": "t", "deletionGracePeriodSeconds": 30}}, True),
        ({"metadata": {"deletionTimestamp": "t", "deletionGracePeriodSeconds": 0, "finalizers": ["x"]}}, True),
    ],
)
def test_whether_a_deleted_object_is_still_there(answer: dict[str, Any], still: bool) -> None:
    assert is_still_there(answer) is still


def test_a_delete_names_the_incarnation_and_takes_its_dependents_along() -> None:
    assert build_delete_options("u", "7", 0) == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Background",
        "preconditions": {"uid": "u", "resourceVersion": "7"},
        "gracePeriodSeconds": 0,
    }
    assert "gracePeriodSeconds" not in build_delete_options("u", "", None)


def test_who_holds_a_token_and_in_which_pod() -> None:
    extra = {"authentication.kubernetes.io/pod-uid": ["u"], "authentication.kubernetes.io/pod-name": ["p"]}
    status = {"authenticated": True, "audiences": ["alineod"], "user": {"username": "sa", "extra": extra}}
    identity = parse_token_review({"status": status}, ["alineod"])
    assert (identity.username, identity.pod_uid, identity.pod_name) == ("sa", "u", "p")


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ({}, "does not know this token"),
        ({"authenticated": False, "error": "token expired"}, "token expired"),
        ({"authenticated": True, "user": {"username": "sa"}}, "not meant for alineod"),
        ({"authenticated": True, "audiences": ["other"], "user": {"username": "sa"}}, "not meant for alineod"),
    ],
)
def test_a_token_that_is_not_for_us_is_nobody(status: dict[str, Any], words: str) -> None:
    with pytest.raises(Denied) as caught:
        parse_token_review({"status": status}, ["alineod"])
    assert caught.value.reason == "Unauthenticated"
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("status", "allowed"),
    [({"allowed": True}, True), ({"allowed": False}, False), ({}, False), ({"allowed": True, "denied": True}, False)],
)
def test_silence_and_denial_are_no(status: dict[str, Any], allowed: bool) -> None:
    assert parse_access_review({"status": status}).allowed is allowed


def build_record(name: str = "lead", **changes: Any) -> EventRecord:
    regarding = {"metadata": {"name": name, "namespace": "ns", "uid": "u", "resourceVersion": "5"}}
    fields: dict[str, Any] = {
        "resource": AGENTS,
        "regarding": regarding,
        "type": EventType.NORMAL,
        "reason": "Restored",
        "action": "Restore",
        "note": "It came back from turn 3.",
        "occurrence": "17",
        "time": datetime(2026, 1, 2, tzinfo=UTC),
    }
    return EventRecord(**{**fields, **changes})


def test_an_event_is_told_on_its_object() -> None:
    body = build_event(build_record())
    assert body["regarding"] == {
        "apiVersion": "alineo.dev/v1alpha1",
        "kind": "Agent",
        "name": "lead",
        "namespace": "ns",
        "uid": "u",
        "resourceVersion": "5",
    }
    assert body["metadata"]["namespace"] == "ns"
    assert body["eventTime"] == "2026-01-02T00:00:00.000000Z"


def test_what_belongs_to_no_namespace_is_told_in_the_default_one() -> None:
    body = build_event(build_record(resource=NODES, regarding={"metadata": {"name": "n1", "uid": "u"}}))
    assert body["metadata"]["namespace"] == "default"


def test_the_same_occurrence_has_the_same_name() -> None:
    def read_name(**changes: Any) -> str:
        return str(build_event(build_record(**changes))["metadata"]["name"])

    assert read_name() == read_name(note="other words", time=datetime(2027, 1, 1, tzinfo=UTC))
    assert len({read_name(), read_name(occurrence="18"), read_name(reason="Lost")}) == 3


@given(st.from_regex(r"[a-z0-9]([-.a-z0-9]{0,250}[a-z0-9])?", fullmatch=True))
def test_names_of_events_fit_where_names_must(name: str) -> None:
    built = build_event_name(name, "told")
    assert len(built) <= 253
    assert ".." not in built.replace(name[:200].rstrip(".-"), "", 1)


@given(st.text(), st.integers(3, 40))
def test_a_cut_text_fits_and_stays_text(text: str, limit: int) -> None:
    cut = cut_text(text, limit)
    assert len(cut.encode()) <= limit
    if len(text.encode(errors="replace")) <= limit:
        assert cut == text.encode(errors="replace").decode()
    else:
        assert cut.endswith("…")
