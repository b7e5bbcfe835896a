"""The swarm of a row: one agent for each column, and what each is asked. Pure; prompts hold their own script."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hack.faults.table import Column
from tests.support.e2e_objects import MODEL_URL, Json, bash, build_agent, build_harness, build_swarm, play, text

SWARM = "faults"
GATES = f"{MODEL_URL.removesuffix('/v1')}/_gates"
FRAMES = 5  # of a text, after which the model falls silent until the gate opens
LARGE = "48M"  # of what cannot be compressed: an archive whose making can be seen
WORDS = "Said before it was struck, in a text of many pieces that goes on when the gate is opened."
FIRST = (
    Column.DONE,
    Column.IDLE,
    Column.BEFORE_OUTPUT,
    Column.WITH_TEXT,
    Column.IN_TOOL,
    Column.CUTTING,
    Column.UPLOADING,
)
"""Those that work from the beginning, the parent of all first. The others come when these are in their states."""


@dataclass(frozen=True)
class Needs:
    """What a row wants of its scene beside the states."""

    clean_turns: int = 1  # that end and are saved before anything strikes
    memory: str = ""  # limit of the agent's container
    home: str = ""  # sizeLimit of the home


def name_of(column: Column) -> str:
    """The Agent object of a column."""
    return f"{SWARM}-{column}"


def build_say(column: Column, turn: int, tag: str) -> str:
    """What a person reads of a turn's prompt; no other prompt of any run has the same words."""
    return f"Turn {turn} of {column} in {tag}."


def build_first_swarm(tag: str, needs: Needs, columns: Sequence[Column] = FIRST) -> Json:
    """The swarm of those among `columns` that work from the beginning."""
    agents: list[Json] = [_build_entry(column, tag) for column in FIRST if column in columns]
    sandbox: Json = {"resources": {"requests": {"cpu": "20m", "memory": "64Mi"}}}
    if needs.memory:
        sandbox["resources"]["limits"] = {"memory": needs.memory}
    if needs.home:
        sandbox["storage"] = {"home": {"sizeLimit": needs.home}}
    return build_swarm(SWARM, agents, defaults={"checkpoint": True, "harness": build_harness(), "sandbox": sandbox})


def _build_entry(column: Column, tag: str) -> Json:
    place = {} if column is Column.DONE else {"parent": str(Column.DONE), "from": "Fresh"}
    return {"name": str(column), "prompt": build_clean(column, 1, tag), **place}


def build_late_agents(tag: str) -> Sequence[Json]:
    """The agent that is being provisioned, and the one that waits for it."""
    place: dict[str, Any] = {"parent": str(Column.DONE), "from": "Fresh"}
    sandbox = {"setup": build_waiting(tag)}
    wait = {"agents": [str(Column.PROVISIONING)], "mode": "Settled"}
    return [
        _build_late(Column.PROVISIONING, tag, **place, sandbox=sandbox),
        _build_late(Column.HELD, tag, **place, waitFor=wait),
    ]


def _build_late(column: Column, tag: str, **spec: Any) -> Json:
    return build_agent(name_of(column), SWARM, build_clean(column, 1, tag), alias=str(column), **spec)


def build_clean(column: Column, turn: int, tag: str) -> str:
    """A turn that notes its number in a file and ends."""
    return play(bash(_note(turn)), text(f"That was turn {turn}."), say=build_say(column, turn, tag))


def build_ask(say: str) -> str:
    """The question afterwards: what is in the file, and what is in the conversation."""
    return play(bash("cat ~/notes"), {"recall": True}, say=say)


def build_struck(column: Column, turn: int, tag: str) -> str:
    """The prompt of the turn that is to be struck; empty for a column that is struck at rest."""
    say, end = build_say(column, turn, tag), text(f"That was turn {turn}.")
    match column:
        case Column.BEFORE_OUTPUT:
            return play(bash(_note(turn), until=tag), end, say=say)
        case Column.WITH_TEXT:
            return play(bash(_note(turn)), {"until": tag, "after": FRAMES, "text": WORDS}, say=say)
        case Column.IN_TOOL:
            return play(bash(f"{_note(turn)}; {build_waiting(tag)}"), end, say=say)
        case Column.CUTTING | Column.UPLOADING:
            return play(bash(f"{_note(turn)}; head -c {LARGE} /dev/urandom > ~/large"), end, say=say)
        case _:
            return ""


def build_waiting(tag: str) -> str:
    """A command that goes on until the gate is open."""
    return f"until curl -sf {GATES}/{tag} > /dev/null; do sleep 0.3; done"


def _note(turn: int) -> str:
    return f"echo {turn} >> ~/notes"
