"""What the gateway in memory does beyond the contract: crash points, kubelets, the garbage collector, watches."""

from typing import Any

import pytest

from alineod.errors import Conflict
from alineod.kube.memory import Call, MemoryGateway, Moment
from alineod.kube.objects import AGENTS, CONFIG_MAPS, PODS, SWARMS, Json, Ref, Resource, read_uid
from tests.support.manual_clock import ManualClock


def build_gateway(**options: Any) -> MemoryGateway:
    return MemoryGateway(ManualClock(), namespaces=("ns",), **options)


def build_body(name: str, owner: Json | None = None, **spec: Any) -> Json:
    metadata: Json = {"name": name, "namespace": "ns"}
    if owner is not None:
        metadata["ownerReferences"] = [{"uid": read_uid(owner), "name": owner["metadata"]["name"]}]
    return {"metadata": metadata, "spec": spec}


class Lost(Exception):
    """The call that was to be lost."""


@pytest.mark.parametrize(("moment", "done"), [(Moment.BEFORE, False), (Moment.AFTER, True)])
async def test_a_hook_loses_a_request_or_its_answer(moment: Moment, done: bool) -> None:
    def hook(call: Call, when: Moment) -> None:
        if call.number == 2 and when is moment:
            raise Lost

    gateway = build_gateway(hook=hook)
    await gateway.list_page(AGENTS)
    with pytest.raises(Lost):
        await gateway.create(AGENTS, build_body("a"))
    assert bool(gateway.read_all(AGENTS)) is done
    assert [(call.number, call.verb, call.writes) for call in gateway.calls] == [
        (1, "list", False),
        (2, "create", True),
    ]


async def test_what_something_alone_owned_goes_after_it() -> None:
    gateway = build_gateway()
    swarm = await gateway.create(SWARMS, build_body("s"))
    agent = await gateway.create(AGENTS, build_body("a", swarm))
    await gateway.create(PODS, build_body("p", agent))
    shared = build_body("shared", agent)
    other = await gateway.create(CONFIG_MAPS, {"metadata": {"name": "other", "namespace": "ns"}})
    shared["metadata"]["ownerReferences"].append({"uid": read_uid(other)})
    await gateway.create(CONFIG_MAPS, shared)
    assert await gateway.delete(SWARMS, "ns", "s", uid=read_uid(swarm)) is None
    assert gateway.read_all(AGENTS) == gateway.read_all(PODS) == ()
    assert {obj["metadata"]["name"] for obj in gateway.read_all(CONFIG_MAPS)} == {"other", "shared"}


async def test_a_pod_on_a_node_stays_until_its_kubelet_confirms() -> None:
    gateway = build_gateway()
    pod = await gateway.create(PODS, build_body("p", nodeName="n1", terminationGracePeriodSeconds=90))
    leaving = await gateway.delete(PODS, "ns", "p", uid=read_uid(pod))
    assert leaving is not None
    assert leaving["metadata"]["deletionGracePeriodSeconds"] == 90
    gateway.remove(Ref(PODS, "ns", "p"))
    assert gateway.read_all(PODS) == ()
    pod = await gateway.create(PODS, build_body("p", nodeName="n1"))
    assert await gateway.delete(PODS, "ns", "p", uid=read_uid(pod), grace_seconds=0) is None


async def test_watchers_are_told_of_changes_only() -> None:
    gateway, told = build_gateway(), list[tuple[str, str, str]]()

    def watch(kind: str, resource: Resource, obj: Json) -> None:
        told.append((kind, resource.plural, obj["metadata"]["name"]))

    gateway.objects.watchers.append(watch)
    made = await gateway.create(AGENTS, build_body("a"))
    status = {**build_body("a"), "status": {"phase": "Running"}}
    await gateway.apply_status(AGENTS, status)
    await gateway.apply_status(AGENTS, status)
    await gateway.delete(AGENTS, "ns", "a", uid=read_uid(made))
    assert told == [("ADDED", "agents", "a"), ("MODIFIED", "agents", "a"), ("DELETED", "agents", "a")]


async def test_a_person_changes_a_spec_and_a_kubelet_a_status() -> None:
    gateway = build_gateway()
    made = gateway.write(PODS, build_body("p", a=1))
    told = gateway.write_status(Ref(PODS, "ns", "p"), {"phase": "Running"})
    changed = gateway.write(PODS, build_body("p", a=2))
    assert (changed["spec"], changed["status"]) == ({"a": 2}, {"phase": "Running"})
    assert read_uid(made) == read_uid(changed)
    assert made["metadata"]["resourceVersion"] != told["metadata"]["resourceVersion"]
    agent = gateway.write(AGENTS, build_body("a", a=1))
    again = gateway.write(AGENTS, build_body("a", a=2))
    assert (agent["metadata"]["generation"], again["metadata"]["generation"]) == (1, 2)


async def test_nobody_can_change_what_is_stored_but_by_writing() -> None:
    gateway = build_gateway()
    body = build_body("a", nested={"x": 1})
    made = await gateway.create(AGENTS, body)
    body["spec"]["nested"]["x"] = made["spec"]["nested"]["x"] = 2
    page = await gateway.list_page(AGENTS)
    page.items[0]["spec"]["nested"]["x"] = 3
    assert (await gateway.get(AGENTS, "ns", "a"))["spec"] == {"nested": {"x": 1}}


async def test_a_deletion_of_another_incarnation_leaves_dependents() -> None:
    gateway = build_gateway()
    await gateway.create(AGENTS, build_body("a"))
    with pytest.raises(Conflict):
        await gateway.delete(AGENTS, "ns", "a", uid="other")
    assert len(gateway.read_all(AGENTS)) == 1
