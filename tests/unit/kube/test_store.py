"""The store under every order of arrival: watches, sweeps and our own answers."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alineod.kube.objects import AGENTS, PODS, Json, Ref
from alineod.kube.store import Change, Store


def build_object(
    name: str = "a", uid: str = "u1", version: str = "5", created: str = "2026-01-01T00:00:00Z", **extra: Any
) -> Json:
    metadata = {"name": name, "namespace": "ns", "uid": uid, "resourceVersion": version, "creationTimestamp": created}
    return {"metadata": {**metadata, **extra.pop("metadata", {})}, **extra}


REF = Ref(PODS, "ns", "a")
LATER = "2026-01-01T00:00:09Z"


@pytest.mark.parametrize(
    ("known", "came", "kept_version", "news"),
    [
        (None, build_object(), "5", True),
        (build_object(), build_object(version="6"), "6", True),
        (build_object(), build_object(version="5"), "5", False),
        (build_object(version="10"), build_object(version="9"), "10", False),
        (build_object(version="99"), build_object(version="100"), "100", True),
        (build_object(version="odd"), build_object(version="other"), "other", True),
        (build_object(), build_object(uid="u2", version="3", created=LATER), "3", True),
        (build_object(uid="u2", version="3", created=LATER), build_object(), "3", False),
        (build_object(), build_object(uid="u2", version="6"), "6", True),
        (build_object(uid="u2", version="6"), build_object(version="5"), "6", False),
    ],
    ids=[
        "the first",
        "newer",
        "the same again",
        "older",
        "versions are numbers",
        "versions that are none are taken as they come",
        "the next incarnation, whatever its version",
        "an incarnation made before",
        "two of the same second: higher",
        "two of the same second: lower",
    ],
)
def test_the_newer_object_stays(known: Json | None, came: Json, kept_version: str, news: bool) -> None:
    store = Store()
    if known is not None:
        assert store.put(PODS, known)
    assert store.put(PODS, came) is news
    kept = store.get(REF)
    assert kept is not None
    assert kept["metadata"]["resourceVersion"] == kept_version


def test_the_dead_do_not_return() -> None:
    store = Store()
    store.put(PODS, build_object())
    assert store.discard(PODS, build_object(version="7"))
    assert not store.put(PODS, build_object(version="6"))
    assert not store.put(PODS, build_object(version="8"))
    assert store.get(REF) is None
    assert store.put(PODS, build_object(uid="u2", version="9", created=LATER))


def test_an_end_seen_before_the_object_holds() -> None:
    store = Store()
    assert not store.discard(PODS, build_object())
    assert not store.put(PODS, build_object())


def test_the_end_of_an_incarnation_leaves_the_next() -> None:
    store = Store()
    store.put(PODS, build_object())
    store.put(PODS, build_object(uid="u2", version="9", created=LATER))
    assert not store.discard(PODS, build_object(version="8"))
    assert not store.put(PODS, build_object(version="8"))
    kept = store.get(REF)
    assert kept is not None
    assert kept["metadata"]["uid"] == "u2"


def test_deaths_are_forgotten_beyond_a_number() -> None:
    store = Store(remembered_deaths=2)
    for number in range(3):
        store.discard(PODS, build_object(name=f"n{number}", uid=f"u{number}"))
    assert store.put(PODS, build_object(name="n0", uid="u0"))
    assert not store.put(PODS, build_object(name="n2", uid="u2"))


def test_managed_fields_are_dropped_and_the_given_object_is_left_alone() -> None:
    store = Store()
    given_object = build_object(metadata={"managedFields": [{"manager": "x"}]})
    store.put(PODS, given_object)
    kept = store.get(REF)
    assert kept is not None
    assert "managedFields" not in kept["metadata"]
    assert given_object["metadata"]["managedFields"]


def test_indexes_follow_the_objects() -> None:
    store = Store()
    labels = {"alineo.dev/agent": "lead", "alineo.dev/swarm": "s"}
    owned = {"labels": labels, "ownerReferences": [{"uid": "o1"}, {"uid": "o1"}]}
    store.put(PODS, build_object(metadata=owned))
    assert len(store.find_by_agent(PODS, "ns", "lead")) == 1
    assert len(store.find_by_swarm(PODS, "ns", "s")) == 1
    assert len(store.find_by_owner(PODS, "o1")) == 1
    assert store.find_by_agent(PODS, "other", "lead") == ()
    assert store.find_by_agent(AGENTS, "ns", "lead") == ()
    store.put(PODS, build_object(version="6", metadata={"labels": {"alineo.dev/agent": "other"}}))
    assert store.find_by_agent(PODS, "ns", "lead") == store.find_by_owner(PODS, "o1") == ()
    assert len(store.find_by_agent(PODS, "ns", "other")) == 1
    store.discard(PODS, build_object(version="7"))
    assert store.find_by_agent(PODS, "ns", "other") == ()
    assert store.count(PODS) == 0


def test_an_agent_applied_alone_is_found_by_its_spec() -> None:
    store = Store()
    store.put(AGENTS, build_object(spec={"swarm": "s"}))
    assert len(store.find_by_swarm(AGENTS, "ns", "s")) == 1


def test_finding_is_by_namespace_or_everywhere() -> None:
    store = Store()
    store.put(PODS, build_object())
    store.put(PODS, build_object(name="b", uid="u2", metadata={"namespace": "other"}))
    assert len(store.find(PODS)) == 2
    assert [obj["metadata"]["name"] for obj in store.find(PODS, "other")] == ["b"]


def test_listeners_hear_what_was_and_what_is() -> None:
    store, heard = Store(), list[Change]()
    store.listen(heard.append)
    first, second = build_object(), build_object(version="6")
    store.put(PODS, first)
    store.put(PODS, second)
    store.put(PODS, first)
    store.discard(PODS, second)
    store.discard(PODS, second)
    assert heard == [Change(REF, None, first), Change(REF, first, second), Change(REF, second, None)]


@given(st.lists(st.sampled_from(range(12)), min_size=1), st.randoms())
def test_any_order_and_repetition_of_events_ends_at_the_truth(picks: list[int], chance: Any) -> None:
    """A history of three incarnations; each event is seen at least once, in any order and any number of times."""
    history: list[tuple[str, Json]] = []
    for incarnation in range(3):
        created = f"2026-01-01T00:00:0{incarnation}Z"
        for step in range(3):
            version = str(100 + incarnation * 10 + step)
            history.append(("PUT", build_object(uid=f"u{incarnation}", version=version, created=created)))
        history.append(("DELETE", history[-1][1]))
    history.pop()  # the last one lives
    events = [history[pick % len(history)] for pick in picks] + history
    chance.shuffle(events)
    store = Store()
    for kind, obj in events:
        if kind == "PUT":
            store.put(PODS, obj)
        else:
            store.discard(PODS, obj)
    kept = store.get(REF)
    assert kept is not None
    assert (kept["metadata"]["uid"], kept["metadata"]["resourceVersion"]) == ("u2", "122")
