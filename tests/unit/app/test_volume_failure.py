"""A volume that cannot be written: the term is left to another pod, if there is one that could do better."""

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from alineod.app import opening
from alineod.app.opening import Waiting
from alineod.errors import AlineoError, Damaged, Fenced, Unavailable
from alineod.kube.exits import LEASE_LOST, POD_FAILED
from alineod.kube.health import Health, decide_readiness
from tests.support.manual_clock import ManualClock

AWAY = Unavailable("BucketUnreachable", "No usable answer from the bucket alineo. It is tried again.")
FULL = Unavailable("LedgerDiskFull", "The volume is full.")


class Ended(Exception):
    """Stands for the end of the process."""


@dataclass
class Scene:
    """Parts, as far as they are used, and what was done with them."""

    bucket: object | None
    done: list[object] = field(default_factory=list)
    now: float = 0.0

    @property
    def parts(self) -> Any:
        elector = SimpleNamespace(release=lambda: self.done.append("release"))
        health = SimpleNamespace(
            set_waiting=lambda what, why: self.done.append(why), set_there=lambda what: self.done.append("there")
        )
        clock = SimpleNamespace(monotonic=lambda: self.now)
        settings = SimpleNamespace(bucket=self.bucket)
        return SimpleNamespace(elector=elector, health=health, clock=clock, settings=settings)


@pytest.fixture
def build(monkeypatch: pytest.MonkeyPatch) -> Callable[[object | None], Scene]:
    def start(bucket: object | None) -> Scene:
        scene = Scene(bucket)

        def end(code: int, why: str) -> None:
            scene.done.append((code, why))
            raise Ended

        async def sleep(seconds: float) -> None:
            scene.now += seconds

        monkeypatch.setattr(opening, "exit_at_once", end)
        monkeypatch.setattr(opening.asyncio, "sleep", sleep)
        return scene

    return start


Build = Callable[[object | None], Scene]


@pytest.mark.parametrize(
    ("bucket", "error", "done"),
    [
        ("b", FULL, ["release", (POD_FAILED, FULL.message)]),
        (None, FULL, [(LEASE_LOST, FULL.message)]),
        ("b", Damaged("DatabaseDamaged", "broken"), [(LEASE_LOST, "broken")]),
        ("b", Fenced("LaterTerm", "later"), [(LEASE_LOST, "later")]),
    ],
)
def test_how_a_term_ends(build: Build, bucket: object | None, error: AlineoError, done: list[object]) -> None:
    scene = build(bucket)
    with pytest.raises(Ended):
        opening.end_term(scene.parts, error)
    assert scene.done == done


async def fail() -> None:
    raise FULL


async def test_a_volume_on_which_no_ledger_can_be_opened_keeps_the_lease_for_a_while_only(build: Build) -> None:
    scene = build("b")
    with pytest.raises(Ended):
        await opening._try(Waiting(scene.parts, "the ledger"), fail)
    assert scene.now >= opening.LOCAL_PATIENCE
    assert scene.done[-2:] == ["release", (POD_FAILED, FULL.message)]
    assert scene.done[1:3] == [FULL.message] * 2  # said in /readyz until then


async def test_without_a_bucket_it_is_waited_for(build: Build) -> None:
    scene = build(None)

    async def until_an_hour_later() -> str:
        if scene.now < 3600.0:
            raise FULL
        return "opened"

    assert await opening._try(Waiting(scene.parts, "the ledger"), until_an_hour_later) == "opened"
    assert scene.done[-1] == "there"


@pytest.mark.behaviour("9.8")
async def test_a_leader_without_its_bucket_is_not_ready_says_why_and_begins_by_itself(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = build("b")
    elector = SimpleNamespace(is_alive=True, is_leader=True, problem="", compute_read_age=lambda: 0.0)
    health = Health(elector, ManualClock())
    parts = SimpleNamespace(**{**vars(scene.parts), "health": health})
    said: list[str] = []

    async def until_an_hour_later() -> str:
        if scene.now < 3600.0:
            raise AWAY
        return "opened"

    async def sleep(seconds: float) -> None:
        scene.now += seconds
        verdict = decide_readiness(health.read_facts())
        said.append(verdict.sentence)
        assert not verdict.good

    monkeypatch.setattr(opening.asyncio, "sleep", sleep)
    assert await opening._try(Waiting(parts, "the bucket"), until_an_hour_later) == "opened"
    assert set(said) == {f"Leading, but waiting: the bucket: {AWAY.message}"}
