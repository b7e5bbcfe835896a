"""Brings a swarm to where an agent is in every state at once, and says what is missing when it does not come about."""

import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from hack.demo.run import DemoError
from hack.faults import scene
from hack.faults.hold import CutHold, Gate, UploadHold
from hack.faults.operators import spread_operators
from hack.faults.scene import name_of
from hack.faults.stage import KEPT, STRUCK, Stage
from hack.faults.table import NODE_ROWS, Column, Row
from tests.support.e2e_expect import Json, has_checkpoint, has_turn, in_phase, status_of

CALM_LIMIT = 300.0  # s until the first turns are saved
STATES_LIMIT = 180.0  # s until everyone is in its state
LOOK = 0.5
TEXT_AFTER = 2.0  # s after which the text that comes before the gate has been heard
Check = Callable[[Stage, int, Mapping[str, Json]], bool]


def prepare(stage: Stage) -> None:
    """Everyone in its state. What is held there goes on by `stage.release`.

    Raises:
        DemoError: somebody did not get there.
    """
    with _all_where_it_strikes(stage):
        _bring_into_states(stage)


@contextmanager
def _all_where_it_strikes(stage: Stage) -> Iterator[None]:
    """A row that strikes a node finds everybody on it."""
    if stage.row not in NODE_ROWS:
        yield
        return
    spread_operators(stage.world, STRUCK if stage.row is Row.OPERATOR_AND_NODE_GONE else "")
    stage.target.kubectl("cordon", KEPT)
    try:
        yield
    finally:
        stage.target.kubectl("uncordon", KEPT)


def _bring_into_states(stage: Stage) -> None:
    stage.world.apply(stage.namespace, scene.build_first_swarm(stage.tag, stage.needs, stage.columns))
    _wait_saved(stage, 1)
    for turn in range(2, stage.needs.clean_turns + 1):
        for column in stage.first:
            _prompt(stage, column, scene.build_clean(column, turn, stage.tag), turn)
        _wait_saved(stage, turn)
    stage.api.result(f"{stage.namespace}/{name_of(Column.DONE)}", turn=1)
    cut = _begin_states(stage)
    _wait_states(stage, cut)


def build_tag() -> str:
    """Words that no other run has in its prompts."""
    return f"run-{secrets.token_hex(3)}"


def _wait_saved(stage: Stage, turn: int) -> None:
    for column in stage.first:
        expected = in_phase("Done") & has_turn(turn, "Clean") & has_checkpoint(turn)
        stage.world.wait_agent(stage.namespace, name_of(column), expected, CALM_LIMIT)
        stage.note(column, turn, scene.build_say(column, turn, stage.tag))


def _prompt(stage: Stage, column: Column, prompt: str, turn: int) -> None:
    answer = stage.api.prompt(f"{stage.namespace}/{name_of(column)}", prompt)
    if answer.body.get("turn") != turn:
        raise DemoError(f"{column} should take its prompt as turn {turn}: {answer}")
    stage.note(column, turn, scene.build_say(column, turn, stage.tag))


def _begin_states(stage: Stage) -> CutHold | None:
    """Prompt everyone; the cut that is to be held, where there is one."""
    cut = _hold(stage)
    turn = stage.needs.clean_turns + 1
    for column in reversed(stage.first):
        if prompt := scene.build_struck(column, turn, stage.tag):
            _prompt(stage, column, prompt, turn)
    if Column.HELD in stage.columns:
        stage.world.apply(stage.namespace, *scene.build_late_agents(stage.tag))
        for column in (Column.PROVISIONING, Column.HELD):
            stage.note(column, 1, scene.build_say(column, 1, stage.tag))
    return cut


def _hold(stage: Stage) -> CutHold | None:
    """Lay hands on what would pass in a moment; `stage.release` takes them away."""
    sandboxes, gate = stage.find_sandboxes(), Gate(stage.world, stage.tag)
    cut = CutHold(sandboxes[Column.CUTTING]) if Column.CUTTING in stage.columns else None
    upload = UploadHold(sandboxes[Column.UPLOADING]) if Column.UPLOADING in stage.columns else None

    def release() -> None:
        if cut:
            cut.release()
        if upload:
            upload.release()
        gate.open()

    stage.release = release
    if cut:
        cut.start()
    return cut


def _wait_states(stage: Stage, cut: CutHold | None) -> None:
    end, turn = time.monotonic() + STATES_LIMIT, stage.needs.clean_turns + 1
    checks = {column: check for column, check in CHECKS.items() if column in stage.columns}
    while True:
        agents = stage.read_agents()
        missing = [column for column, check in checks.items() if not check(stage, turn, agents)]
        missing += [Column.CUTTING] if cut and not cut.caught.is_set() else []
        if not missing:
            return
        if time.monotonic() > end:
            raise DemoError(f"these did not get into their states: {', '.join(missing)}")
        time.sleep(LOOK)


def _is_asked(stage: Stage, column: Column, turn: int, since: float) -> bool:
    """Whether the model is answering its prompt, for so many seconds already."""
    say = scene.build_say(column, turn, stage.tag)
    running = [one for one in stage.model.find(say) if one["outcome"] == "running"]
    return any(time.time() - one["time"] >= since and "until" in one["step"] for one in running)


def _has_noted(stage: Stage, turn: int, agents: Mapping[str, Json]) -> bool:
    pod = status_of(agents[name_of(Column.IN_TOOL)]).get("sandbox", {}).get("pod", "")
    return str(turn) in stage.kubectl("exec", pod, "--container=agent", "--", "cat", "/root/notes", check=False).split()


def _is_unsaved(stage: Stage, turn: int, agents: Mapping[str, Json]) -> bool:
    agent = agents[name_of(Column.UPLOADING)]
    return has_turn(turn, "Clean").holds(agent) and not has_checkpoint(turn).holds(agent)


def _is_set_up(stage: Stage, turn: int, agents: Mapping[str, Json]) -> bool:
    sandbox = stage.find_sandboxes().get(Column.PROVISIONING)
    coming = in_phase("Provisioning").holds(agents.get(name_of(Column.PROVISIONING), {}))
    return coming and sandbox is not None and "agent" in sandbox.containers


def _is_waiting(stage: Stage, turn: int, agents: Mapping[str, Json]) -> bool:
    return in_phase("Waiting").holds(agents.get(name_of(Column.HELD), {}))


CHECKS: Mapping[Column, Check] = {
    Column.BEFORE_OUTPUT: lambda stage, turn, _: _is_asked(stage, Column.BEFORE_OUTPUT, turn, 0),
    Column.WITH_TEXT: lambda stage, turn, _: _is_asked(stage, Column.WITH_TEXT, turn, TEXT_AFTER),
    Column.IN_TOOL: _has_noted,
    Column.UPLOADING: _is_unsaved,
    Column.PROVISIONING: _is_set_up,
    Column.HELD: _is_waiting,
}
"""How to tell that an agent is in its state; the others were waited for, or are held by us."""
