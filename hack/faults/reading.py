"""An agent by its rows of a dumped ledger: a second, smaller fold than the product's own, so that both can be wrong.

Pure. Reads what `alineod ledger dump` prints and nothing else.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

Json = Mapping[str, Any]

PHASES = {
    "spawning": "Waiting",
    "provisioning": "Provisioning",
    "running": "Running",
    "paused": "Paused",
    "blocked": "Blocked",
    "done": "Done",
    "failed": "Failed",
    "aborted": "Aborted",
    "lost": "Lost",
}
ENDS = {
    "agent.turn_ended": "Clean",
    "agent.turn_failed": "Failed",
    "agent.turn_interrupted": "Interrupted",
}


@dataclass(frozen=True)
class Turn:
    """`starts` counts its attempts, `ends` how each of them ended; `settled` the seq of its settlements.

    `text` and `tools` are what survived of one that was cut, `result` is what it was settled with.
    """

    starts: int = 0
    ends: tuple[str, ...] = ()
    settled: tuple[int, ...] = ()
    retries: int = 0  # of the harness, within it
    text: str = ""
    tools: tuple[str, ...] = ()
    result: str = ""


@dataclass(frozen=True)
class Read:
    """One agent. `memory` are the clean turns its conversation has, `forgotten` those it came back without."""

    phase: str = ""
    parent: str | None = None
    spawned: int = 0
    turns: Mapping[int, Turn] = field(default_factory=dict)
    last: int = 0  # the newest turn
    memory: tuple[int, ...] = ()
    forgotten: tuple[int, ...] = ()
    saved: tuple[int, ...] = ()  # turns whose checkpoint was recorded as being in the bucket
    pod: str = ""
    incarnation: int = 0
    rung: str = ""
    rungs: tuple[tuple[int, str], ...] = ()  # by seq
    fresh: bool = False  # the newest incarnation's files are those of a checkpoint
    interrupted: bool = False
    waits: tuple[int, ...] = ()  # seq of each time its wait was resolved


def read_agent(rows: Iterable[Json], agent: str) -> Read:
    """Fold the rows of `agent` (`namespace/name`)."""
    read = Read()
    for row in rows:
        if row["agent"] == agent:
            read = _step(read, row)
    return read


def _step(read: Read, row: Json) -> Read:
    event, body = row["event"], row["payload"]
    if event in STEPS:
        return STEPS[event](read, row, body)
    return _step_turn(read, event, body) if event.startswith("agent.turn_") else read


def _spawn(read: Read, _: Json, body: Json) -> Read:
    return replace(read, phase="Waiting", parent=body.get("parent"), spawned=read.spawned + 1)


def _provision(read: Read, _: Json, body: Json) -> Read:
    return replace(read, pod=body["pod"], incarnation=body["incarnation"])


def _end(read: Read, _: Json, body: Json) -> Read:
    return replace(read, phase={"aborted": "Aborted", "lost": "Lost"}.get(body["outcome"], "Failed"))


def _save(read: Read, _: Json, body: Json) -> Read:
    return replace(read, saved=(*read.saved, body["turn"])) if body.get("remoteRef") else read


def _settle(read: Read, row: Json, body: Json) -> Read:
    turn = read.turns.get(body.get("turn", 0), Turn())
    if not turn.starts:
        return read
    settled = replace(turn, settled=(*turn.settled, row["seq"]), result=body.get("result", ""))
    return _with_turn(read, body["turn"], settled)


def _retry(read: Read, _: Json, body: Json) -> Read:
    if body["data"].get("phase") != "started":
        return read
    turn = read.turns.get(body["turn"], Turn())
    return _with_turn(read, body["turn"], replace(turn, retries=turn.retries + 1))


def _step_turn(read: Read, event: str, body: Json) -> Read:
    number = body["turn"]
    turn = read.turns.get(number, Turn())
    if event == "agent.turn_started":
        started = _with_turn(read, number, replace(turn, starts=turn.starts + 1))
        return replace(started, last=number, phase="Running")
    kept = {"text": body.get("text", ""), "tools": tuple(body.get("tools") or ())}
    ended = _with_turn(read, number, replace(turn, ends=(*turn.ends, ENDS[event]), **kept))
    if event == "agent.turn_ended":
        return replace(ended, memory=(*read.memory, number), interrupted=False)
    return replace(ended, interrupted=read.interrupted or event == "agent.turn_interrupted")


def _restore(read: Read, row: Json, body: Json) -> Read:
    back = replace(read, rung=body["rung"], rungs=(*read.rungs, (row["seq"], body["rung"])))
    if body["rung"] != "Restore":
        return replace(back, fresh=False) if body["rung"] == "Resume" else back
    kept = body.get("checkpointTurn") or 0
    lost = tuple(turn for turn in read.memory if turn > kept)
    return replace(
        back,
        memory=tuple(turn for turn in read.memory if turn <= kept),
        forgotten=(*read.forgotten, *lost),
        interrupted=read.interrupted or bool(lost),
        fresh=True,
    )


def _with_turn(read: Read, number: int, turn: Turn) -> Read:
    return replace(read, turns={**read.turns, number: turn})


STEPS: Mapping[str, Callable[[Read, Json, Json], Read]] = {
    "agent.spawned": _spawn,
    "agent.state_changed": lambda read, _, body: replace(read, phase=PHASES[body["state"]]),
    "agent.provisioned": _provision,
    "agent.released": lambda read, _, body: replace(read, pod=""),
    "agent.ended": _end,
    "agent.restored": _restore,
    "agent.checkpointed": _save,
    "agent.checkpoint_uploaded": _save,
    "handle.settled": _settle,
    "harness.retry": _retry,
    "wait.resolved": lambda read, row, _: replace(read, waits=(*read.waits, row["seq"])),
}
"""What each event but a turn's start and ends does to what is known; other events do nothing."""
