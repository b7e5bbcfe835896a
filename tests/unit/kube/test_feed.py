"""The feed without a server: what kopf is told, what it may not do, and where objects go."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import kopf
import pytest

from alineod.handlers.feed import build_deliver, build_registry, build_settings
from alineod.handlers.login import Login
from alineod.handlers.storages import NoDiffBase, NoProgress
from alineod.kube.access import ClusterAccess
from alineod.kube.objects import AGENTS, PODS, WATCHED, Json, Ref, Resource
from alineod.kube.store import Store
from alineod.metrics import Metrics
from tests.support.manual_clock import ManualClock


def build_login() -> Login:
    return Login(ClusterAccess("http://x"), ManualClock().now)


def test_kopf_is_told_to_watch_and_nothing_else() -> None:
    settings = build_settings(WATCHED, chance=lambda: 0.5)
    told = (
        settings.posting.enabled,
        settings.posting.loggers,
        settings.scanning.disabled,
        settings.peering.standalone,
        settings.watching.initial_streaming,
        settings.networking.enforce_retry_after,
        settings.persistence.consistency_timeout,
    )
    assert told == (False, False, True, True, False, True, 0)
    assert settings.watching.server_timeout == 330
    assert settings.watching.client_timeout is not None
    assert settings.watching.client_timeout > 360
    assert settings.watching.chunk_size == 500
    assert list(settings.watching.label_selectors.values()) == ["app.kubernetes.io/managed-by=alineod"]


@pytest.mark.parametrize("method", ["store", "purge", "touch"])
def test_kopf_cannot_write_progress(method: str) -> None:
    with pytest.raises(RuntimeError, match="must not write"):
        getattr(NoProgress(), method)(body={}, patch={})


def test_kopf_cannot_write_what_it_handled() -> None:
    storage = NoDiffBase()
    assert (storage.fetch(body={}), storage.build(body={})) == (None, {})
    with pytest.raises(RuntimeError, match="must not write"):
        storage.store(body={}, patch={}, essence={})


def read_handlers(registry: kopf.OperatorRegistry) -> dict[str, Any]:
    return {
        handler.selector.any_name or handler.selector.plural: handler
        for handler in registry._watching.get_all_handlers()
    }


async def test_each_event_hands_its_object_over_and_returns_nothing() -> None:
    handed: list[tuple[bool, Resource, Json]] = []
    registry = build_registry(build_login(), WATCHED, lambda *event: handed.append(event))
    handlers = read_handlers(registry)
    assert set(handlers) == {"swarms", "agents", "pods"}
    for kind, gone in ((None, False), ("ADDED", False), ("MODIFIED", False), ("DELETED", True)):
        obj = {"metadata": {"name": str(kind)}}
        assert await handlers["agents"].fn(event={"type": kind, "object": obj}, other="x") is None
        assert handed[-1] == (gone, AGENTS, obj)


async def test_a_login_is_made_from_the_file_again_after_five_minutes(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("first")
    clock = ManualClock()
    login = Login(ClusterAccess("http://x", token_file=tmp_path / "token"), clock.now, patience=0.0)
    info = await login.log_in(retry=0)
    assert (info.token, info.expiration) == ("first", clock.now() + timedelta(minutes=5))
    clock.advance(301)
    assert (await login.log_in()).expiration == clock.now() + timedelta(minutes=5)


async def test_a_refused_token_is_not_offered_as_a_new_one(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("first")
    login = Login(ClusterAccess("http://x", token_file=tmp_path / "token"), ManualClock().now, patience=0.0, look=0.001)
    info = await login.log_in()
    assert await login.log_in() == info
    (tmp_path / "token").write_text("second")
    assert (await login.log_in()).token == "second"


async def test_a_refused_token_is_given_time_to_change(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("first")
    login = Login(ClusterAccess("http://x", token_file=tmp_path / "token"), ManualClock().now, look=0.001)
    await login.log_in()
    waiting = asyncio.create_task(login.log_in())
    await asyncio.sleep(0.01)
    assert not waiting.done()
    (tmp_path / "token").write_text("second")
    assert (await waiting).token == "second"


def test_no_handler_is_of_a_kind_that_writes() -> None:
    registry = build_registry(build_login(), WATCHED, lambda *event: None)
    for kind in ("_changing", "_spawning", "_indexing", "_webhooks"):
        assert list(getattr(registry, kind).get_all_handlers()) == []


def test_objects_go_into_the_store_and_are_counted() -> None:
    store, metrics = Store(), Metrics()
    deliver = build_deliver(store, metrics)
    obj = {"metadata": {"name": "p", "namespace": "ns", "uid": "u", "resourceVersion": "1"}}
    deliver(False, PODS, obj)
    assert store.get(Ref(PODS, "ns", "p")) == obj
    deliver(True, PODS, obj)
    assert store.count(PODS) == 0
    assert metrics.registry.get_sample_value("alineod_watch_events_total", {"kind": "pods"}) == 2
