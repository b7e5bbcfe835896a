"""Whom a change of an object concerns."""

from typing import Any

import pytest

from alineod.handlers.keys import compute_keys, is_urgent
from alineod.kube.objects import AGENTS, CONFIG_MAPS, PODS, SWARMS, Json, Ref
from alineod.kube.store import Change, Store


def build_object(name: str, *, labels: dict[str, str] | None = None, **parts: Any) -> Json:
    return {"metadata": {"name": name, "namespace": "ns", "uid": name, "labels": labels or {}}, **parts}


def build_store() -> Store:
    store = Store()
    for name in ("s-lead", "s-left"):
        store.put(AGENTS, build_object(name, labels={"alineo.dev/swarm": "s"}))
    store.put(AGENTS, build_object("alone", spec={"swarm": "s"}))
    store.put(AGENTS, build_object("foreign", spec={"swarm": "other"}))
    return store


POD = build_object("s-lead-1", labels={"alineo.dev/agent": "s-lead", "alineo.dev/swarm": "s"})
AGENT = build_object("s-lead", spec={"swarm": "s"})
SWARM = build_object("s", spec={"agents": []})
TOLD = {**SWARM, "status": {"phase": "x"}}
CHANGED = {**SWARM, "spec": {"agents": [1]}}
LEAVING = {**SWARM, "metadata": {**SWARM["metadata"], "deletionTimestamp": "t"}}
ADOPTED = {**SWARM, "metadata": {**SWARM["metadata"], "annotations": {"alineo.dev/adopt": "true"}}}
ALL = ["swarms/s", "agents/s-lead", "agents/s-left", "agents/alone"]


@pytest.mark.parametrize(
    ("resource", "before", "after", "keys"),
    [
        (PODS, None, POD, ["agents/s-lead"]),
        (PODS, POD, None, ["agents/s-lead"]),
        (PODS, build_object("p"), POD, ["agents/s-lead"]),
        (PODS, None, build_object("p"), []),
        (AGENTS, None, AGENT, ["agents/s-lead", "swarms/s"]),
        (AGENTS, AGENT, None, ["agents/s-lead", "swarms/s"]),
        (AGENTS, AGENT, build_object("s-lead", spec={"swarm": "t"}), ["agents/s-lead", "swarms/s", "swarms/t"]),
        (AGENTS, None, build_object("s-lead"), ["agents/s-lead"]),
        (SWARMS, None, SWARM, ALL),
        (SWARMS, SWARM, None, ALL),
        (SWARMS, SWARM, TOLD, ["swarms/s"]),
        (SWARMS, SWARM, CHANGED, ALL),
        (SWARMS, SWARM, LEAVING, ALL),
        (SWARMS, SWARM, ADOPTED, ALL),
        (CONFIG_MAPS, None, build_object("x"), []),
    ],
)
def test_whom_a_change_concerns(resource: Any, before: Json | None, after: Json | None, keys: list[str]) -> None:
    name = (after or before or {})["metadata"]["name"]
    found = compute_keys(Change(Ref(resource, "ns", name), before, after), build_store())
    assert [f"{ref.resource.plural}/{ref.name}" for ref in found] == keys
    assert {ref.namespace for ref in found} <= {"ns"}


@pytest.mark.parametrize(("after", "urgent"), [(SWARM, False), (LEAVING, True), (None, True)])
def test_ends_are_urgent(after: Json | None, urgent: bool) -> None:
    assert is_urgent(Change(Ref(SWARMS, "ns", "s"), SWARM, after)) is urgent
