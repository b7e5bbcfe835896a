"""The upload loop stopped at every outside call, before it and after it: the end is the same and nothing is doubled."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest

from alineod.checkpointer import uploads
from alineod.checkpointer.remote import Operator
from alineod.checkpointer.uploads import Uploader
from alineod.checkpoints.store import Progress, Store, Stored
from alineod.errors import AlineoError, Conflict, Denied, Refused, Unavailable
from alineod.wire.archives import CheckpointReport, GrantRequest, Recorded
from alineod.wire.turns import Grant

NOW = 1000.0
T = TypeVar("T")


class Killed(BaseException):
    """The process ends here; no handler of ours sees it."""


@dataclass
class World(Operator):
    """Operator and bucket in one. The `stop_at`-th call does not come back: done, or not even begun."""

    stop_at: int = 0
    after: bool = False
    expires: float = NOW + 3600
    calls: int = 0
    objects: dict[str, str] = field(default_factory=dict)
    ledger: dict[int, str] = field(default_factory=dict)  # turn: key, or empty for one recorded without its object
    events: list[tuple[int, str]] = field(default_factory=list)
    refusals: list[AlineoError] = field(default_factory=list)  # of the next uploads
    has_bucket: bool = True

    def grant(self, request: GrantRequest) -> Grant:
        return self._call(lambda: self._grant(request))

    def report(self, report: CheckpointReport) -> Recorded:
        return self._call(lambda: self._report(report))

    def put(self, grant: Grant, path: Path, size: int, md5: str) -> None:
        if path.stat().st_size != size:
            raise AssertionError(path)
        self._call(lambda: self._put(grant, md5))

    def _call(self, act: Callable[[], T]) -> T:
        self.calls += 1
        if self.calls != self.stop_at:
            return act()
        if self.after:
            with contextlib.suppress(AlineoError):
                act()
        raise Killed

    def _grant(self, request: GrantRequest) -> Grant:
        if not self.has_bucket:
            raise Refused("NoBucket", "no bucket is configured")
        return Grant(method="PUT", url="u", key=f"k{request.turn}", expires_at=self.expires)

    def _put(self, grant: Grant, md5: str) -> None:
        if self.refusals:
            raise self.refusals.pop(0)
        if grant.key in self.objects:
            raise Conflict("ObjectExists", "there")
        self.objects[grant.key] = md5

    def _report(self, report: CheckpointReport) -> Recorded:
        good = bool(report.key) and self.objects.get(report.key) == report.md5
        if report.key and not good:
            return Recorded(done=False, message="another object")
        if self.ledger.get(report.turn) in (None, "") and self.ledger.get(report.turn) != report.key:
            self.events.append((report.turn, report.key))
            self.ledger[report.turn] = report.key
        return Recorded(done=good or not self.has_bucket, message=report.upload_error)


def fill(root: Path, *turns: int, grant: Grant | None = None) -> Store:
    store = Store(root, 3)
    for turn in turns:
        (root / "x.partial").write_bytes(b"archive")
        name = f"{turn:06d}-1.tar.zst"
        report = CheckpointReport(
            turn=turn, turn_id="t", incarnation=1, snapshot_ref=name, sha256="s", md5=f"m{turn}", bytes=7
        )
        store.add(root / "x.partial", Stored(report=report, grant=grant))
    return store


def run(root: Path, world: World, passes: int = 10) -> bool:
    """A process from its start until all is done, or it is killed."""
    uploader = Uploader(Store(root, 3), world, lambda: NOW, world.put)
    try:
        return any(uploader.pass_once() for _ in range(passes))
    except Killed:
        return False


@pytest.mark.behaviour("4.9")
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("trouble", [[], [Denied("GrantRefused", "403")], [Unavailable("Unreachable", "away")] * 2])
def test_stopped_at_every_call(tmp_path: Path, after: bool, trouble: list[AlineoError]) -> None:
    for stop_at in range(1, 30):
        root = tmp_path / str(stop_at)
        root.mkdir()
        fill(root, 1, 2)
        world = World(stop_at, after, refusals=list(trouble))
        finished = run(root, world)
        assert run(root, world)
        assert world.ledger == {1: "k1", 2: "k2"}
        assert world.objects == {"k1": "m1", "k2": "m2"}
        assert len(world.events) == len(set(world.events))
        assert all(one.progress is Progress.RECORDED for one in Store(root, 3).read_all())
        if finished:
            assert stop_at > world.calls
            return
    pytest.fail("it never came to an end by itself")


@pytest.mark.behaviour("4.8")
def test_a_failure_is_told_once(tmp_path: Path) -> None:
    fill(tmp_path, 1)
    world = World(refusals=[Unavailable("Unreachable", "away")] * 5)
    assert run(tmp_path, world)
    assert world.events == [(1, ""), (1, "k1")]


def test_the_newest_comes_first(tmp_path: Path) -> None:
    fill(tmp_path, 1, 2, 3)
    world = World()
    assert run(tmp_path, world)
    assert world.events == [(3, "k3"), (2, "k2"), (1, "k1")]


def test_without_a_bucket_it_ends(tmp_path: Path) -> None:
    fill(tmp_path, 1)
    world = World(has_bucket=False)
    assert run(tmp_path, world, passes=2)
    assert world.events == [(1, "")]


def test_another_object_under_the_key_is_never_recorded(tmp_path: Path) -> None:
    fill(tmp_path, 1)
    world = World(objects={"k1": "foreign"})
    assert not run(tmp_path, world)
    assert world.events == []
    del world.objects["k1"]
    assert run(tmp_path, world)
    assert world.ledger == {1: "k1"}


def test_a_grant_that_is_still_good_is_used(tmp_path: Path) -> None:
    fill(tmp_path, 1, grant=Grant(method="PUT", url="u", key="k1", expires_at=NOW + 100))
    world = World()
    assert run(tmp_path, world)
    assert world.calls == 2


def test_one_that_is_pushed_out_meanwhile_is_forgotten(tmp_path: Path) -> None:
    store = fill(tmp_path, 1)
    world = World()

    def put(grant: Grant, path: Path, size: int, md5: str) -> None:
        if grant.key == "k1":
            fill(tmp_path, 2, 3, 4)
        world.put(grant, path, size, md5)

    uploader = Uploader(store, world, lambda: NOW, put)
    assert not any(path.exists() for path in [tmp_path / "000002-1.tar.zst"])
    assert uploader.pass_once()
    assert uploader.pass_once()
    assert world.ledger == {turn: f"k{turn}" for turn in (2, 3, 4)}
    assert [one.report.turn for one in store.read_all()] == [4, 3, 2]


def test_at_the_end_there_is_no_long_wait_between_tries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "_HASTE", 0.01)
    world, left = World(), iter(range(12))

    def report(report: CheckpointReport) -> Recorded:
        if next(left, None) is not None:
            raise Unavailable("Unreachable", "there is no leader for a moment")
        return World.report(world, report)

    monkeypatch.setattr(world, "report", report)
    uploader = Uploader(fill(tmp_path, 1), world, lambda: NOW, world.put)
    uploader.start()
    uploader.drain(30.0)
    assert world.ledger == {1: "k1"}
