"""The label by which the Service finds the leader."""

import asyncio
from typing import Any

import pytest

from alineod.app import role as module
from alineod.app.role import LEADER, ROLE, Role
from alineod.errors import Unavailable
from alineod.kube.memory import MemoryGateway
from alineod.kube.objects import PODS
from tests.support.manual_clock import ManualClock


@pytest.fixture
async def gateway() -> MemoryGateway:
    gateway = MemoryGateway(ManualClock(), namespaces=["ns"])
    for name, role in (("first", LEADER), ("second", None), ("third", None)):
        labels = {"app": "alineod"} | ({ROLE: role} if role else {})
        await gateway.create(PODS, {"metadata": {"name": name, "namespace": "ns", "labels": labels}, "spec": {}})
    return gateway


async def read_leaders(gateway: MemoryGateway) -> list[str]:
    pods = [await gateway.get(PODS, "ns", name) for name in ("first", "second", "third")]
    assert all(pod["metadata"]["labels"]["app"] == "alineod" for pod in pods)
    return [pod["metadata"]["name"] for pod in pods if pod["metadata"]["labels"].get(ROLE) == LEADER]


async def test_who_leads_takes_the_label_from_whoever_cannot_give_it_away(gateway: MemoryGateway) -> None:
    role = Role(gateway, "ns", "second")
    await role.take_from_others()
    assert await read_leaders(gateway) == []
    await role.take()
    await role.take_from_others()
    assert await read_leaders(gateway) == ["second"]


async def test_a_container_that_is_started_again_drops_the_label_of_its_pod(gateway: MemoryGateway) -> None:
    await Role(gateway, "ns", "first").drop()
    assert await read_leaders(gateway) == []


async def test_a_pod_that_came_to_lead_since_the_list_was_made_keeps_the_label(
    gateway: MemoryGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch = gateway.patch_labels

    async def lead_first(*arguments: Any, **named: Any) -> Any:
        gateway.patch_labels = patch  # type: ignore[method-assign]
        await patch(PODS, "ns", "first", {ROLE: LEADER, "again": "yes"})
        return await patch(*arguments, **named)

    monkeypatch.setattr(module, "PAUSES", ())
    monkeypatch.setattr(gateway, "patch_labels", lead_first)
    await Role(gateway, "ns", "second").take_from_others()
    assert await read_leaders(gateway) == ["first"]


async def test_a_server_that_does_not_answer_is_asked_again_until_the_leader_can_be_found(
    gateway: MemoryGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch, failures = gateway.patch_labels, iter([True] * 50 + [False])

    async def fail_often(*arguments: Any, **named: Any) -> Any:
        if next(failures):
            raise Unavailable("Unreachable", "no answer")
        return await patch(*arguments, **named)

    monkeypatch.setattr(module, "PAUSES", (0.0, 0.0, 0.0))
    monkeypatch.setattr(gateway, "patch_labels", fail_often)
    async with asyncio.timeout(10):
        await Role(gateway, "ns", "second").take()
    assert await read_leaders(gateway) == ["first", "second"]
