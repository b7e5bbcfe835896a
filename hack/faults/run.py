"""One row: the scene, the fault, the wait until everybody rests, the questions, the verdict."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from hack.demo.api import ControlApi
from hack.demo.forward import Forward
from hack.demo.install import Images
from hack.faults.collect import ask_everybody, build_evidence, describe_phases, find_readable, look
from hack.faults.evidence import Evidence, render
from hack.faults.invariants import INVARIANTS
from hack.faults.judge import find_rung, judge
from hack.faults.report import Cell, Result
from hack.faults.rest import LIMIT, wait_rest
from hack.faults.scene import Needs
from hack.faults.stage import Stage
from hack.faults.states import build_tag, prepare
from hack.faults.strike import NEEDS, STRIKES
from hack.faults.table import TODAY, Column, Row
from tests.support.e2e_objects import MODEL_KEY, MODEL_SECRET, build_secret
from tests.support.e2e_parts import Bucket, ScriptedModel
from tests.support.e2e_world import World

AFTERWARDS = 120.0  # s until what was said in the answers is saved too
LABELS = {"alineo.dev/e2e": "true", "pod-security.kubernetes.io/enforce": "baseline"}


@dataclass(frozen=True)
class Site:
    """What rows are played on. `folder` keeps the evidence of each, for whoever reads a failure."""

    world: World
    images: Images
    bucket: Bucket
    model: ScriptedModel
    forward: Forward
    folder: Path
    say: Callable[[str], None] = print


def run_row(site: Site, row: Row, columns: Sequence[Column] = TODAY) -> dict[Column, Cell]:
    """The cells of the row, with these columns on the stage; whoever could not be brought on it has failed as well."""
    with _having_stage(site, row, columns) as stage:
        try:
            evidence = play(stage)
        except Exception as error:  # whatever it is, the next row is played all the same
            with suppress(Exception):
                stage.release()
            words = f"the row was not played to its end: {type(error).__name__}: {str(error)[:2000]}"
            return {column: Cell(Result.FAILED, words=(words,)) for column in stage.struck}
    (site.folder / f"faults-{row}.json").write_text(render(evidence))
    return build_cells(evidence, stage.struck)


def build_cells(evidence: Evidence, columns: Sequence[Column]) -> dict[Column, Cell]:
    """The verdict on each cell. Pure."""
    return {column: _build_cell(evidence, column) for column in columns}


def _build_cell(evidence: Evidence, column: Column) -> Cell:
    words = judge(evidence, column)
    result = Result.FAILED if words else Result.HELD
    return Cell(result, find_rung(evidence, column), tuple(INVARIANTS), tuple(words))


def play(stage: Stage) -> Evidence:
    """From the empty namespace to what is known at the end."""
    with _timed(stage, "everyone in their states"):
        prepare(stage)
    before, stage.asked_before = look(stage), stage.model.read_log()
    begun = time.monotonic()
    with STRIKES[stage.row](stage):
        readable = find_readable(stage)
        stage.say(f"   struck after {time.monotonic() - begun:.0f} s: {describe_phases(stage)}")
        unsettled = wait_rest(stage)
    unsettled = wait_rest(stage, LIMIT if not unsettled else LIMIT / 8)
    stage.say(f"   at rest after {time.monotonic() - begun:.0f} s, but for: {dict(unsettled) or 'nobody'}")
    settled = look(stage)
    answers = ask_everybody(stage, unsettled)
    late = wait_rest(stage, AFTERWARDS)
    return build_evidence(stage, before, settled, readable=readable, answers=answers, unsettled={**late, **unsettled})


@contextmanager
def _having_stage(site: Site, row: Row, columns: Sequence[Column]) -> Iterator[Stage]:
    """A namespace for the row, gone afterwards."""
    tag, world = build_tag(), site.world
    namespace = f"faults-{row}-{tag.removeprefix('run-')}"
    world.create_namespace(namespace, LABELS)
    try:
        world.apply(namespace, build_secret(MODEL_SECRET, {"api-key": MODEL_KEY}))
        api = ControlApi(site.forward, _make_token(world, namespace))
        needs = NEEDS.get(row, Needs())
        parts = (site.images, site.bucket, site.model, api)
        yield Stage(world, *parts, namespace, tag, row, needs, columns, site.say)
    finally:
        world.remove_namespace(namespace, wait=False)


def _make_token(world: World, namespace: str) -> str:
    world.kubectl(namespace, "create", "serviceaccount", "editor")
    subject = f"--serviceaccount={namespace}:editor"
    world.kubectl(namespace, "create", "rolebinding", "editor", "--clusterrole=edit", subject)
    return world.kubectl(namespace, "create", "token", "editor").strip()


@contextmanager
def _timed(stage: Stage, what: str) -> Iterator[None]:
    begun = time.monotonic()
    yield
    stage.say(f"   {what} after {time.monotonic() - begun:.0f} s")
