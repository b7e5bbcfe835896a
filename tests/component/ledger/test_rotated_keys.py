"""The keys of the bucket are changed under an operator and a sidecar that go on running."""

import asyncio
from pathlib import Path

import pytest

from alineod.bucket.keys import VARIABLE
from alineod.clock import SystemClock
from alineod.errors import Denied
from alineod.ledger.open import open_ledger
from alineod.ledger.replicate import build_remote
from tests.component.ledger.conftest import World
from tests.component.ledger.test_replication import Sidecars
from tests.component.ledger.test_trouble_bucket import append_at_last, expect_held
from tests.support.seaweed import Seaweed, running_seaweed
from tests.support.secrets import mount
from tests.unit.ledger.entries import build_entry


def mount_keys(store: Seaweed, directory: Path) -> None:
    mount(directory, {name: value for name, value in store.env.items() if name != "AWS_REGION"})


@pytest.mark.behaviour("11.12")
async def test_new_keys_are_picked_up_by_who_runs(
    tmp_path: Path, start_sidecar: Sidecars, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old keys stop to count first: for a while nothing is acknowledged, and nothing is lost by that."""
    keys = tmp_path / "keys"
    with running_seaweed(tmp_path / "store") as store:
        world = World(store, "rotated", tmp_path)
        mount_keys(store, keys)
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv(VARIABLE, str(keys))
        mounted = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", VARIABLE: str(keys)}
        sidecar = start_sidecar(**mounted)
        bucket = world.build_bucket(**mounted)
        remote = build_remote(bucket, world.bucket, world.instance, world.build_env() | mounted, tmp_path / "run")
        ledger = await open_ledger(world.build_opening(), SystemClock(), remote)
        await ledger.append([build_entry(1)])
        grant = bucket.grant_get("k", 60)

        await asyncio.to_thread(store.stop)
        store.keys = ("another", "another-secret")
        await asyncio.to_thread(store.start)
        with pytest.raises(Denied, match="check the access key"):
            await asyncio.to_thread(bucket.head, "k")
        await expect_held(ledger, 2)

        mount_keys(store, keys)
        await append_at_last(ledger, 2, 3)
        assert await asyncio.to_thread(bucket.head, "k") is None
        assert bucket.grant_get("k", 60).url.count("another") > grant.url.count("another")
        assert sidecar.process.poll() is None
        await ledger.close()
