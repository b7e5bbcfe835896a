"""What every gateway to the Kubernetes API promises, asked of each: the one in memory and a real API server.

The real one is our own, or the one of the kubeconfig that ALINEOD_TEST_KUBECONFIG names. Only an API server is
needed: no node, no controller. Everything is made in a namespace of its own, which is deleted afterwards.
"""

import asyncio
import contextlib
import json
import os
import urllib.request
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from alineod.clock import SystemClock
from alineod.errors import AlineoError, Conflict, Denied, NotFound, Refused
from alineod.kube.access import ClusterAccess, read_kubeconfig
from alineod.kube.api import open_api
from alineod.kube.gateway import AccessQuery, EventRecord, EventType, Gateway, Identity, is_expired, list_all
from alineod.kube.memory import MemoryGateway
from alineod.kube.objects import (
    AGENTS,
    CONFIG_MAPS,
    EVENTS,
    NAMESPACES,
    PODS,
    SERVICE_ACCOUNTS,
    Json,
    Resource,
    read_uid,
    read_version,
)
from tests.support.apiserver import find_kube, run_apiserver
from tests.support.probes import PROBES, ensure_kind

KUBECONFIG = os.environ.get("ALINEOD_TEST_KUBECONFIG", "")
AUDIENCE = "alineod"
UNSERVED = Resource("contract.alineo.test", "v1", "nothings", "Nothing")


@dataclass(frozen=True)
class Bench:
    """A gateway, a namespace to work in, and what a test needs others for."""

    gateway: Gateway
    namespace: str
    issue_token: Callable[[str], Awaitable[str]]
    terminate: Callable[[], Awaitable[None]]


@pytest.fixture(scope="session")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Of the API server that ALINEOD_TEST_KUBECONFIG names, or of one of our own."""
    if KUBECONFIG:
        yield Path(KUBECONFIG)
        return
    kube = find_kube()
    if kube is None:
        pytest.skip("there is no API server to ask: `make bootstrap` builds one")
    with run_apiserver(kube, tmp_path_factory.mktemp("apiserver")) as server:
        yield server.kubeconfig


@pytest.fixture(params=["memory", "cluster"])
async def bench(request: pytest.FixtureRequest) -> AsyncIterator[Bench]:
    if request.param == "memory":
        yield build_memory_bench()
        return
    access = read_kubeconfig(request.getfixturevalue("kubeconfig"))
    async with open_api(access, SystemClock()) as gateway:
        async for found in open_cluster_bench(gateway, access):
            yield found


def build_memory_bench() -> Bench:
    gateway = MemoryGateway(SystemClock(), namespaces=("bench",), with_status=(PROBES, PODS))
    gateway.unserved.add(UNSERVED)
    gateway.allows = lambda query: "system:masters" in query.identity.groups

    async def issue_token(audience: str) -> str:
        gateway.tokens["t"] = Identity("system:serviceaccount:bench:probe", audiences=(audience,))
        return "t"

    async def terminate() -> None:
        namespace = await gateway.get(NAMESPACES, "", "bench")
        await gateway.delete(NAMESPACES, "", "bench", uid=read_uid(namespace))

    return Bench(gateway, "bench", issue_token, terminate)


async def open_cluster_bench(gateway: Gateway, access: ClusterAccess) -> AsyncIterator[Bench]:
    await ensure_kind(gateway, PROBES)
    name = f"contract-{uuid.uuid4().hex[:8]}"
    namespace = await gateway.create(NAMESPACES, {"metadata": {"name": name}})

    async def issue_token(audience: str) -> str:
        account = {"metadata": {"name": "probe", "namespace": name}}
        await gateway.apply(SERVICE_ACCOUNTS, account)
        return await asyncio.to_thread(request_token, access, name, "probe", audience)

    async def terminate() -> None:
        await gateway.apply(
            CONFIG_MAPS, {"metadata": {"name": "held", "namespace": name, "finalizers": ["alineo.test/x"]}}
        )
        await gateway.delete(NAMESPACES, "", name, uid=read_uid(namespace))

    yield Bench(gateway, name, issue_token, terminate)
    with contextlib.suppress(AlineoError):  # the namespace is going: nothing new in it, and nothing was held
        await gateway.apply(CONFIG_MAPS, {"metadata": {"name": "held", "namespace": name}})
    await gateway.delete(NAMESPACES, "", name, uid=read_uid(namespace))


def request_token(access: ClusterAccess, namespace: str, account: str, audience: str) -> str:
    url = f"{access.server}/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    body = json.dumps({"spec": {"audiences": [audience], "expirationSeconds": 600}}).encode()
    headers = {**access.build_headers(), "Content-Type": "application/json"}
    request = urllib.request.Request(url, body, headers)
    with urllib.request.urlopen(request, context=access.build_ssl_context(), timeout=10) as answer:
        return str(json.load(answer)["status"]["token"])


def build_map(bench: Bench, name: str, data: dict[str, str] | None = None, **metadata: Any) -> Json:
    return {"metadata": {"name": name, "namespace": bench.namespace, **metadata}, "data": data or {"a": "1"}}


def build_probe(bench: Bench, name: str = "p", **spec: Any) -> Json:
    return {"metadata": {"name": name, "namespace": bench.namespace}, "spec": spec}


async def test_what_was_made_is_read_back(bench: Bench) -> None:
    made = await bench.gateway.create(CONFIG_MAPS, build_map(bench, "one", {"key": "väl\u2028ue"}))
    read = await bench.gateway.get(CONFIG_MAPS, bench.namespace, "one")
    assert read["data"] == {"key": "väl\u2028ue"}
    assert read_uid(made) == read_uid(read) != ""
    assert read_version(made) == read_version(read) > 0


async def test_a_body_need_not_repeat_what_it_is(bench: Bench) -> None:
    made = await bench.gateway.create(PROBES, build_probe(bench, a=1))
    assert (made["apiVersion"], made["kind"]) == ("contract.alineo.test/v1", "Probe")


async def test_a_taken_name_is_a_conflict_of_its_own_kind(bench: Bench) -> None:
    await bench.gateway.create(CONFIG_MAPS, build_map(bench, "one"))
    with pytest.raises(Conflict) as caught:
        await bench.gateway.create(CONFIG_MAPS, build_map(bench, "one"))
    assert caught.value.reason == "AlreadyExists"
    assert "one" in caught.value.message


async def test_a_dry_run_leaves_nothing(bench: Bench) -> None:
    await bench.gateway.create(CONFIG_MAPS, build_map(bench, "one"), dry_run=True)
    with pytest.raises(NotFound):
        await bench.gateway.get(CONFIG_MAPS, bench.namespace, "one")


async def test_nothing_is_made_in_a_namespace_that_is_not_there(bench: Bench) -> None:
    with pytest.raises(NotFound):
        await bench.gateway.create(CONFIG_MAPS, {"metadata": {"name": "one", "namespace": "not-there"}})


async def test_a_namespace_that_is_going_is_told_apart(bench: Bench) -> None:
    await bench.terminate()
    for make in (bench.gateway.create, bench.gateway.apply):
        with pytest.raises(Denied) as caught:
            await make(CONFIG_MAPS, build_map(bench, "late"))
        assert caught.value.reason == "NamespaceTerminating"
        assert "being terminated" in caught.value.message


async def test_a_delete_ends_one_incarnation_only(bench: Bench) -> None:
    old = await bench.gateway.create(CONFIG_MAPS, build_map(bench, "one"))
    assert await bench.gateway.delete(CONFIG_MAPS, bench.namespace, "one", uid=read_uid(old)) is None
    assert await bench.gateway.delete(CONFIG_MAPS, bench.namespace, "one", uid=read_uid(old)) is None
    new = await bench.gateway.create(CONFIG_MAPS, build_map(bench, "one"))
    with pytest.raises(Conflict):
        await bench.gateway.delete(CONFIG_MAPS, bench.namespace, "one", uid=read_uid(old))
    assert read_uid(await bench.gateway.get(CONFIG_MAPS, bench.namespace, "one")) == read_uid(new)


async def test_a_delete_says_when_someone_has_to_confirm(bench: Bench) -> None:
    held = await bench.gateway.create(CONFIG_MAPS, build_map(bench, "one", finalizers=["alineo.test/wait"]))
    leaving = await bench.gateway.delete(CONFIG_MAPS, bench.namespace, "one", uid=read_uid(held))
    assert leaving is not None
    assert leaving["metadata"]["deletionTimestamp"]
    assert read_uid(await bench.gateway.get(CONFIG_MAPS, bench.namespace, "one")) == read_uid(held)


async def test_a_pod_on_no_node_is_gone_at_once(bench: Bench) -> None:
    spec = {"containers": [{"name": "c", "image": "none"}], "nodeSelector": {"alineo.test/no": "node"}}
    await bench.gateway.apply(SERVICE_ACCOUNTS, {"metadata": {"name": "default", "namespace": bench.namespace}})
    pod = await bench.gateway.create(PODS, {"metadata": {"name": "pod", "namespace": bench.namespace}, "spec": spec})
    assert await bench.gateway.delete(PODS, bench.namespace, "pod", uid=read_uid(pod)) is None
    with pytest.raises(NotFound):
        await bench.gateway.get(PODS, bench.namespace, "pod")


async def test_an_intent_makes_changes_and_removes(bench: Bench) -> None:
    made = await bench.gateway.apply(PROBES, build_probe(bench, a=1, b={"c": 2}))
    same = await bench.gateway.apply(PROBES, build_probe(bench, a=1, b={"c": 2}))
    assert read_version(same) == read_version(made)
    changed = await bench.gateway.apply(PROBES, build_probe(bench, a=3))
    assert changed["spec"] == {"a": 3}
    assert read_uid(changed) == read_uid(made)
    assert (made["metadata"]["generation"], changed["metadata"]["generation"]) == (1, 2)


async def test_an_intent_leaves_what_others_wrote(bench: Bench) -> None:
    await bench.gateway.apply(PROBES, build_probe(bench, ours=1), manager="them")
    await bench.gateway.apply(PROBES, build_probe(bench, ours=1, more=2))
    left = await bench.gateway.apply(PROBES, build_probe(bench, more=2))
    assert left["spec"] == {"ours": 1, "more": 2}


async def test_without_force_a_field_of_others_is_a_conflict(bench: Bench) -> None:
    await bench.gateway.apply(PROBES, build_probe(bench, a=1), manager="them")
    with pytest.raises(Conflict):
        await bench.gateway.apply(PROBES, build_probe(bench, a=2), force=False)
    assert (await bench.gateway.apply(PROBES, build_probe(bench, a=2)))["spec"] == {"a": 2}


async def test_the_uid_of_an_intent_is_a_precondition(bench: Bench) -> None:
    absent = build_probe(bench, a=1)
    absent["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000"
    with pytest.raises(Conflict):
        await bench.gateway.apply(PROBES, absent)
    made = await bench.gateway.apply(PROBES, build_probe(bench, a=1))
    with pytest.raises(Conflict):
        await bench.gateway.apply(PROBES, absent)
    absent["metadata"]["uid"] = read_uid(made)
    assert read_uid(await bench.gateway.apply(PROBES, absent)) == read_uid(made)


async def test_the_version_of_an_intent_is_a_precondition(bench: Bench) -> None:
    made = await bench.gateway.apply(PROBES, build_probe(bench, a=1))
    await bench.gateway.apply(PROBES, build_probe(bench, a=2))
    stale = build_probe(bench, a=3)
    stale["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"]
    with pytest.raises(Conflict):
        await bench.gateway.apply(PROBES, stale)


async def test_status_and_spec_are_written_apart(bench: Bench) -> None:
    made = await bench.gateway.apply(PROBES, {**build_probe(bench, a=1), "status": {"phase": "No"}})
    assert "phase" not in made.get("status", {})
    told = await bench.gateway.apply_status(PROBES, {**build_probe(bench, a=9), "status": {"phase": "Yes"}})
    assert (told["spec"], told["status"]) == ({"a": 1}, {"phase": "Yes"})
    assert told["metadata"]["generation"] == made["metadata"]["generation"]
    assert read_version(told) > read_version(made)
    again = await bench.gateway.apply_status(PROBES, {**build_probe(bench), "status": {"phase": "Yes"}})
    assert read_version(again) == read_version(told)


async def test_conditions_of_two_managers_stand_side_by_side(bench: Bench) -> None:
    def build_condition(kind: str) -> Json:
        return {**build_probe(bench), "status": {"conditions": [{"type": kind, "status": "True"}]}}

    await bench.gateway.apply(PROBES, build_probe(bench))
    await bench.gateway.apply_status(PROBES, build_condition("Theirs"), manager="them")
    both = await bench.gateway.apply_status(PROBES, build_condition("Ready"))
    assert {each["type"] for each in both["status"]["conditions"]} == {"Theirs", "Ready"}
    left = await bench.gateway.apply_status(PROBES, {**build_probe(bench), "status": {}})
    assert {each["type"] for each in left["status"]["conditions"]} == {"Theirs"}


async def test_a_status_makes_no_object(bench: Bench) -> None:
    with pytest.raises(NotFound):
        await bench.gateway.apply_status(PROBES, {**build_probe(bench, "absent"), "status": {"phase": "Yes"}})


async def test_labels_are_set_and_removed_alone(bench: Bench) -> None:
    await bench.gateway.create(CONFIG_MAPS, build_map(bench, "one", labels={"keep": "1", "drop": "1"}))
    patched = await bench.gateway.patch_labels(CONFIG_MAPS, bench.namespace, "one", {"new": "2", "drop": None})
    assert patched["metadata"]["labels"] == {"keep": "1", "new": "2"}
    assert patched["data"] == {"a": "1"}


async def test_lists_are_whole_over_pages(bench: Bench) -> None:
    names = [f"map-{number}" for number in range(5)]
    for name in names:
        await bench.gateway.create(CONFIG_MAPS, build_map(bench, name, labels={"odd": str(int(name[-1]) % 2)}))
    first = await bench.gateway.list_page(CONFIG_MAPS, bench.namespace, labels="odd", limit=2)
    assert (len(first.items), bool(first.continuation)) == (2, True)
    rest = await bench.gateway.list_page(
        CONFIG_MAPS, bench.namespace, labels="odd", limit=10, continuation=first.continuation
    )
    assert [item["metadata"]["name"] for item in first.items + rest.items] == names
    assert not rest.continuation
    odd = [item async for item in list_all(bench.gateway, CONFIG_MAPS, bench.namespace, labels="odd=1")]
    assert [item["metadata"]["name"] for item in odd] == ["map-1", "map-3"]
    everywhere = [item async for item in list_all(bench.gateway, CONFIG_MAPS, labels="odd=1")]
    assert {read_uid(item) for item in odd} <= {read_uid(item) for item in everywhere}


async def test_a_list_can_be_of_metadata_only(bench: Bench) -> None:
    made = await bench.gateway.create(CONFIG_MAPS, build_map(bench, "one", labels={"x": "y"}))
    page = await bench.gateway.list_page(CONFIG_MAPS, bench.namespace, labels="x=y", metadata_only=True)
    assert [(read_uid(item), read_version(item), "data" in item) for item in page.items] == [
        (read_uid(made), read_version(made), False)
    ]


async def test_a_page_the_server_has_forgotten_is_told_apart(bench: Bench) -> None:
    with pytest.raises(Refused) as caught:
        await bench.gateway.list_page(CONFIG_MAPS, bench.namespace, continuation="forgotten")
    assert isinstance(caught.value, Conflict) == is_expired(caught.value)


async def test_a_token_tells_who_holds_it_to_its_audience_only(bench: Bench) -> None:
    token = await bench.issue_token(AUDIENCE)
    identity = await bench.gateway.review_token(token, [AUDIENCE])
    assert identity.username == f"system:serviceaccount:{bench.namespace}:probe"
    assert identity.audiences == (AUDIENCE,)
    for wrong, audience in ((token, "someone-else"), ("rubbish", AUDIENCE)):
        with pytest.raises(Denied) as caught:
            await bench.gateway.review_token(wrong, [audience])
        assert caught.value.reason == "Unauthenticated"


async def test_the_cluster_says_who_may(bench: Bench) -> None:
    for groups, allowed in ((("system:masters",), True), (("system:authenticated",), False)):
        identity = Identity("someone", groups=groups, extra={"alineo.test/x": ("y",)})
        query = AccessQuery(identity, "create", AGENTS, bench.namespace, "a", "prompt")
        assert (await bench.gateway.review_access(query)).allowed is allowed


async def test_an_occurrence_is_told_once(bench: Bench) -> None:
    about = await bench.gateway.create(CONFIG_MAPS, build_map(bench, "one"))

    def build_record(occurrence: str) -> EventRecord:
        note = "Ünïcode " * 400
        now = datetime.now(UTC)
        return EventRecord(CONFIG_MAPS, about, EventType.WARNING, "Interrupted", "Turn", note, occurrence, now)

    for occurrence in ("1", "1", "2"):
        await bench.gateway.create_event(build_record(occurrence))
    told = [event async for event in list_all(bench.gateway, EVENTS, bench.namespace)]
    mine = [event for event in told if event["regarding"]["uid"] == read_uid(about)]
    assert len(mine) == 2
    assert {(event["type"], event["reason"], event["action"]) for event in mine} == {("Warning", "Interrupted", "Turn")}
    assert len(mine[0]["note"].encode()) <= 1024


async def test_kinds_that_are_not_served_are_named(bench: Bench) -> None:
    assert await bench.gateway.read_missing([PROBES, UNSERVED, PODS]) == (UNSERVED,)
