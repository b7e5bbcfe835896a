"""Collects what the judge looks at, from outside: objects, the dumped ledger, the bucket, the model's own log."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hack.demo.run import DemoError
from hack.faults import scene
from hack.faults.evidence import Answer, Chain, Evidence, Json, Look
from hack.faults.scene import SWARM, name_of
from hack.faults.stage import Stage
from hack.faults.table import Column
from tests.support.e2e_expect import status_of

ANSWER_LIMIT = 150.0  # s for everybody's answer together
QUESTION = "Question to"


def look(stage: Stage) -> Look:
    """This moment. The objects are read first: what they show stands in the ledger then."""
    agents, pods, rows = stage.read_agents(), stage.read_pods(), stage.world.read_ledger()
    return build_look(f"{stage.namespace}/{SWARM}", agents, pods, rows)


def build_look(run: str, agents: Mapping[str, Json], pods: Mapping[str, Json], rows: Sequence[Json]) -> Look:
    head = (rows[-1]["seq"], rows[-1]["hash"]) if rows else (0, "")
    return Look(agents, pods, [row for row in rows if row["run"] == run], head)


def read_chain(stage: Stage) -> Chain:
    """Every row's place, and what the operator's own check says of them."""
    world = stage.world
    links = [(row["seq"], row["prev"], row["hash"]) for row in world.read_ledger()]
    leader = world.until("an operator should lead", world.find_leader)
    command = ("exec", leader, "--container=operator", "--", "alineod", "ledger", "verify")
    ran = stage.target.kubectl(f"--namespace={world.release.namespace}", *command, check=False)
    return Chain(ran.code == 0, ran.words, links)


def find_readable(stage: Stage) -> dict[str, list[int]]:
    """The turns whose checkpoints are in the bucket and whole, by agent."""
    return {
        name_of(column): [parse_turn(key) for key in keys if key not in stage.damaged]
        for column, keys in stage.list_checkpoints().items()
    }


def parse_turn(key: str) -> int:
    """The turn in the key of a checkpoint, `.../000002-1.tar.zst`."""
    return int(key.rpartition("/")[2].partition("-")[0])


def ask_everybody(stage: Stage, unsettled: Mapping[str, str]) -> dict[str, Answer]:
    """What each agent that is at rest remembers."""
    answers = {name_of(c): _ask(stage, c) for c in stage.columns if name_of(c) not in unsettled}
    end = time.monotonic() + ANSWER_LIMIT
    for name, answer in answers.items():
        answers[name] = _hear(stage, name, answer, end)
    return answers


def _ask(stage: Stage, column: Column) -> Answer:
    say = f"{QUESTION} {column} in {stage.tag}."
    try:
        answer = stage.api.prompt(f"{stage.namespace}/{name_of(column)}", scene.build_ask(say))
    except DemoError as error:
        return Answer(late=str(error))
    turn = int(answer.body.get("turn") or 0)
    if not turn:
        return Answer(status=answer.status, late=f"its prompt was answered with {answer.status} {answer.body}")
    stage.note(column, turn, say)
    return Answer(turn)


def _hear(stage: Stage, name: str, answer: Answer, end: float) -> Answer:
    while not answer.late:
        try:
            heard = stage.api.result(f"{stage.namespace}/{name}", turn=answer.turn, wait=10)
        except DemoError as error:
            return replace(answer, late=str(error))
        if heard.status != 202:
            body = heard.body
            return replace(answer, status=heard.status, outcome=body.get("outcome", ""), result=body.get("result", ""))
        if time.monotonic() > end:
            return replace(answer, status=202, late="no result of its turn")
    return answer


def read_asked(stage: Stage) -> list[dict[str, Any]]:
    """What the model was asked in this row, over a restart of the model as well."""
    return join_logs(stage.asked_before, stage.model.read_log(), stage.tag)


def join_logs(before: list[dict[str, Any]], now: list[dict[str, Any]], tag: str) -> list[dict[str, Any]]:
    """The model forgets its log when it restarts: then what was read before comes first."""
    restarted = bool(before) and (not now or now[0]["time"] != before[0]["time"])
    whole = [*before, *now] if restarted else now
    return [one for one in whole if any(tag in said for said in one["users"])]


def build_evidence(stage: Stage, before: Look, settled: Look, **more: Any) -> Evidence:
    """All of it, once everybody has been asked."""
    names = {str(column): name_of(column) for column in stage.columns}
    return Evidence(
        row=str(stage.row),
        agents=names,
        namespace=stage.namespace,
        said=stage.said,
        before=before,
        settled=settled,
        after=look(stage),
        chain=read_chain(stage),
        asked=read_asked(stage),
        **more,
    )


def describe_phases(stage: Stage) -> str:
    """Everybody's phase, in a line."""
    agents = stage.read_agents()
    return ", ".join(f"{c}: {status_of(agents.get(name_of(c), {})).get('phase', 'gone')}" for c in stage.columns)
