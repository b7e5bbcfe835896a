"""What a leader of before still sends, asked of a real API server: each of its writes is refused or changes nothing."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from aiohttp import ClientConnectionError

from alineod.clock import SystemClock
from alineod.errors import Conflict
from alineod.kube.access import read_kubeconfig
from alineod.kube.api import ApiGateway, open_api
from alineod.kube.gateway import EventRecord, EventType
from alineod.kube.objects import CONFIG_MAPS, NAMESPACES, PODS, SERVICE_ACCOUNTS, Json, read_uid
from alineod.kube.paths import build_path
from tests.support.probes import PROBES, ensure_kind


@dataclass(frozen=True)
class Bench:
    """One API server, asked by two leaders through connections of their own."""

    late: ApiGateway
    leader: ApiGateway
    namespace: str

    def build(self, name: str, **metadata: object) -> Json:
        return {"metadata": {"name": name, "namespace": self.namespace, **metadata}}


@pytest.fixture
async def bench(kubeconfig: Path) -> AsyncIterator[Bench]:
    access = read_kubeconfig(kubeconfig)
    async with open_api(access, SystemClock()) as late, open_api(access, SystemClock()) as leader:
        await ensure_kind(leader, PROBES)
        namespace = f"late-{uuid.uuid4().hex[:8]}"
        made = await leader.create(NAMESPACES, {"metadata": {"name": namespace}})
        await leader.apply(SERVICE_ACCOUNTS, {"metadata": {"name": "default", "namespace": namespace}})
        yield Bench(late, leader, namespace)
        await leader.delete(NAMESPACES, "", namespace, uid=read_uid(made))


def build_named(bench: Bench, seen: Json, **metadata: object) -> Json:
    """An intent about the object as it was seen."""
    known = seen["metadata"]
    return bench.build(known["name"], uid=known["uid"], resourceVersion=known["resourceVersion"], **metadata)


async def test_a_status_over_one_that_was_not_seen_is_refused(bench: Bench) -> None:
    seen = await bench.leader.create(PROBES, bench.build("a"))
    newer = await bench.leader.apply_status(PROBES, build_named(bench, seen) | {"status": {"phase": "Done"}})
    with pytest.raises(Conflict):
        await bench.late.apply_status(PROBES, build_named(bench, seen) | {"status": {"phase": "Running"}})
    assert await bench.leader.get(PROBES, bench.namespace, "a") == newer


async def test_an_owner_over_a_later_one_is_refused(bench: Bench) -> None:
    owners = [await bench.leader.create(CONFIG_MAPS, bench.build(name)) for name in ("then", "now")]
    then, now = (
        {"apiVersion": "v1", "kind": "ConfigMap", "name": o["metadata"]["name"], "uid": read_uid(o)} for o in owners
    )
    seen = await bench.leader.create(PROBES, bench.build("a"))
    await bench.leader.apply(PROBES, build_named(bench, seen, ownerReferences=[now]))
    with pytest.raises(Conflict):
        await bench.late.apply(PROBES, build_named(bench, seen, ownerReferences=[then]))
    found = await bench.leader.get(PROBES, bench.namespace, "a")
    assert [owner["name"] for owner in found["metadata"]["ownerReferences"]] == ["now"]


async def test_a_delete_of_what_has_changed_or_was_made_anew_is_refused(bench: Bench) -> None:
    seen = await bench.leader.create(PODS, _build_pod(bench))
    changed = await bench.leader.patch_labels(PODS, bench.namespace, "pod", {"a": "b"})
    with pytest.raises(Conflict):
        await _delete(bench.late, seen)
    assert await _delete(bench.leader, changed) is None
    again = await bench.leader.create(PODS, _build_pod(bench))
    with pytest.raises(Conflict):
        await bench.late.delete(PODS, bench.namespace, "pod", uid=read_uid(seen))
    assert read_uid(await bench.leader.get(PODS, bench.namespace, "pod")) == read_uid(again)


async def _delete(gateway: ApiGateway, seen: Json) -> Json | None:
    known = seen["metadata"]
    return await gateway.delete(
        PODS, known["namespace"], known["name"], uid=known["uid"], version=known["resourceVersion"]
    )


def _build_pod(bench: Bench) -> Json:
    containers = [{"name": "agent", "image": "agent", "command": ["true"]}]
    return bench.build("pod") | {"spec": {"containers": containers, "automountServiceAccountToken": False}}


async def test_a_name_is_given_once(bench: Bench) -> None:
    made = await bench.leader.create(PROBES, bench.build("a"))
    with pytest.raises(Conflict) as caught:
        await bench.late.create(PROBES, bench.build("a", labels={"late": "true"}))
    assert caught.value.reason == "AlreadyExists"
    assert await bench.leader.get(PROBES, bench.namespace, "a") == made


async def test_a_label_of_a_pod_that_has_changed_is_refused(bench: Bench) -> None:
    seen = await bench.leader.create(CONFIG_MAPS, bench.build("a"))
    await bench.leader.patch_labels(CONFIG_MAPS, bench.namespace, "a", {"other": "1"})
    version = seen["metadata"]["resourceVersion"]
    with pytest.raises(Conflict):
        await bench.late.patch_labels(CONFIG_MAPS, bench.namespace, "a", {"role": "leader"}, version=version)
    assert "role" not in (await bench.leader.get(CONFIG_MAPS, bench.namespace, "a"))["metadata"]["labels"]


async def test_an_event_told_by_two_leaders_is_one(bench: Bench) -> None:
    seen = await bench.leader.create(PROBES, bench.build("a"))
    told = EventRecord(PROBES, seen, EventType.NORMAL, "Restored", "Restore", "it came back", "7", datetime.now(UTC))
    await asyncio.gather(bench.leader.create_event(told), bench.late.create_event(told))


async def test_the_server_knows_the_deadline_that_a_request_names_and_does_nothing_after_it(kubeconfig: Path) -> None:
    access, made = read_kubeconfig(kubeconfig), {"metadata": {"name": f"late-{uuid.uuid4().hex[:8]}"}}
    async with open_api(access, SystemClock(), remaining=lambda: 5.0) as gateway:
        session = gateway._session

        async def post(seconds: str) -> tuple[int, Json]:
            target = f"{build_path(NAMESPACES)}?timeout={seconds}"
            try:
                async with session.post(target, json=made, headers=access.build_headers()) as answer:
                    return answer.status, await answer.json(content_type=None)
            except ClientConnectionError:
                return 504, {}  # over before there was an answer to send

        assert (await post("0.000001s"))[0] in {500, 504}
        assert (await post("soon"))[0] == 400
        status, namespace = await post("5.000s")  # not there yet
        assert status == 201
        await gateway.delete(NAMESPACES, "", namespace["metadata"]["name"], uid=read_uid(namespace))
