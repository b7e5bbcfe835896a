"""The judge of the fault matrix: it is content with a good row, and each invariant finds what breaks it."""

from dataclasses import replace
from typing import Any

import pytest

from hack.faults import evidence as kept
from hack.faults.evidence import Answer, Chain, Evidence, Look
from hack.faults.expected import EXPECTED
from hack.faults.invariants import INVARIANTS
from hack.faults.judge import find_rung, judge
from hack.faults.scene import WORDS
from hack.faults.table import Column, list_rows

Json = dict[str, Any]
SPACE, NAME, GATE = "space", "faults-with-text", "faults-provisioning"
KEY = f"{SPACE}/{NAME}"
KEPT = WORDS[:11]
SAID = {1: "Turn 1.", 2: "Turn 2.", 3: "Question."}


def row(seq: int, event: str, agent: str = KEY, **payload: Any) -> Json:
    return {"seq": seq, "agent": agent, "event": event, "payload": payload, "run": f"{SPACE}/faults"}


BEFORE = [
    row(1, "agent.spawned", parent=f"{SPACE}/faults-done"),
    row(2, "agent.provisioned", pod=f"{NAME}-1", incarnation=1),
    row(3, "agent.turn_started", turn=1),
    row(4, "agent.turn_ended", turn=1),
    row(5, "handle.settled", turn=1),
    row(6, "agent.state_changed", state="done"),
    row(7, "agent.checkpointed", turn=1, remoteRef="k1"),
    row(8, "agent.turn_started", turn=2),
]
CUT = [
    *BEFORE,
    row(9, "agent.turn_interrupted", turn=2, text=KEPT, tools=["bash"]),
    row(10, "handle.settled", turn=2, result=KEPT),
    row(11, "agent.state_changed", state="failed"),
    row(12, "agent.provisioned", pod=f"{NAME}-2", incarnation=2),
    row(13, "agent.restored", rung="Restore", checkpointTurn=1),
]
ASKED = [
    *CUT,
    row(14, "agent.turn_started", turn=3),
    row(15, "agent.turn_ended", turn=3),
    row(16, "handle.settled", turn=3),
    row(17, "agent.state_changed", state="done"),
    row(18, "agent.checkpointed", turn=3, remoteRef="k3"),
]


def shown(turn: int, state: str, pod: str, *, phase: str, interrupted: str = "False", rung: str = "Restore") -> Json:
    conditions = [
        {"type": "Running", "status": "False", "reason": "TurnEnded"},
        {"type": "Interrupted", "status": interrupted, "reason": "PodGone"},
        {"type": "Checkpointed", "status": "True", "reason": "Uploaded"},
    ]
    status = {"phase": phase, "turn": {"number": turn, "state": state}, "sandbox": {"pod": pod}}
    status |= {"conditions": conditions, "restore": {"rung": rung}}
    return {"spec": {"parent": "done"}, "status": status}


def request(*users: str, tool: str = "") -> Json:
    roles = ["user"] * len(users)
    return {"users": list(users), "roles": [*roles, "tool"] if tool else roles, "tool_results": [tool] if tool else []}


def build_look(rows: list[Json], agent: Json) -> Look:
    return Look({NAME: agent}, {}, rows, (rows[-1]["seq"], f"h{rows[-1]['seq']}"))


def link(rows: list[Json]) -> list[tuple[int, str, str]]:
    return [(r["seq"], f"h{r['seq'] - 1}", f"h{r['seq']}") for r in rows]


GOOD = Evidence(
    row="pod-force-deleted",
    agents={"with-text": NAME, "provisioning": GATE, "held": NAME},
    namespace=SPACE,
    said={NAME: SAID},
    before=build_look(BEFORE, shown(2, "Running", f"{NAME}-1", phase="Running")),
    settled=build_look(CUT, shown(2, "Interrupted", f"{NAME}-2", phase="Failed", interrupted="True")),
    after=build_look(ASKED, shown(3, "Clean", f"{NAME}-2", phase="Done")),
    chain=Chain(True, "intact", link(ASKED)),
    asked=[
        request("Turn 1."),
        request("Turn 1.", tool=""),
        request("Turn 1.", "Turn 2."),
        request("Turn 1.", "[Turn 2 was cut off.] Question."),
        request("Turn 1.", "[Turn 2 was cut off.] Question.", tool="1\n"),
    ],
    readable={NAME: [1]},
    answers={NAME: Answer(3, 200, "success", "SEEN 2: ...")},
)
GOOD = replace(GOOD, asked=[GOOD.asked[0], *GOOD.asked[2:]])


def with_rows(rows: list[Json], **more: Any) -> Evidence:
    """The rows at the end are others; so is nothing else."""
    return replace(GOOD, after=replace(GOOD.after, rows=rows), **more)


def without(rows: list[Json], *seqs: int) -> list[Json]:
    return [r for r in rows if r["seq"] not in seqs]


def with_request(*more: Json) -> Evidence:
    return replace(GOOD, asked=[*GOOD.asked[:2], *more])


def with_status(**status: Any) -> Evidence:
    agent = GOOD.after.agents[NAME]
    return replace(GOOD, after=replace(GOOD.after, agents={NAME: {**agent, "status": {**agent["status"], **status}}}))


def test_a_good_row_holds_and_names_the_rung() -> None:
    assert judge(GOOD, Column.WITH_TEXT) == []
    assert find_rung(GOOD, Column.WITH_TEXT) == "Restore"


def test_a_row_that_needed_no_rung_has_none() -> None:
    assert find_rung(replace(GOOD, before=replace(GOOD.before, head=(13, "h13"))), Column.WITH_TEXT) == ""


def test_evidence_is_kept_whole() -> None:
    assert judge(kept.parse(kept.render(GOOD)), Column.WITH_TEXT) == []
    assert kept.parse(kept.render(GOOD)).chain == GOOD.chain


def with_settled(rows: list[Json]) -> Evidence:
    """The rows at rest are others; so is nothing else."""
    return replace(GOOD, settled=replace(GOOD.settled, rows=rows))


def with_event(seq: int, event: str) -> list[Json]:
    return [{**r, "event": event} if r["seq"] == seq else r for r in CUT]


def with_payload(seq: int, **change: Any) -> list[Json]:
    return [{**r, "payload": {**r["payload"], **change}} if r["seq"] == seq else r for r in CUT]


CLEAN = with_event(9, "agent.turn_ended")
OTHER = [
    *CUT[:-1],
    row(13, "agent.restored", rung="Restore"),
    *ASKED[13:],
]
QUESTION = "[Turn 2 was cut off.] Question."
BROKEN: dict[str, tuple[str, Evidence, str]] = {
    "not at rest": ("back", replace(GOOD, unsettled={NAME: "its pod is not up"}), "its pod is not up"),
    "not asked": ("back", replace(GOOD, answers={}), "did not answer"),
    "no result": ("back", replace(GOOD, answers={NAME: Answer(3, 202, late="no result")}), "no result"),
    "no success": ("back", replace(GOOD, answers={NAME: Answer(3, 200, "failed", "no")}), "200 failed"),
    "a clean turn forgotten": (
        "conversation", with_request(request(QUESTION, tool="1\n")), "holds the turns []",
    ),
    "a cut turn remembered": (
        "conversation", with_request(request("Turn 1.", "Turn 2.", QUESTION, tool="1\n")), "holds the turns [1, 2]",
    ),
    "strange words remembered": (
        "conversation", with_request(request("Turn 1.", "Who?", QUESTION, tool="1\n")), "holds the turns [1, -1]",
    ),
    "a readable checkpoint passed over": (
        "conversation",
        with_rows(OTHER, asked=[*GOOD.asked[:2], request(QUESTION, tool="no file\n")]),
        "their checkpoints could be read",
    ),
    "a clean turn lost without a word": (
        "conversation",
        with_rows(
            OTHER, readable={}, asked=[*GOOD.asked[:2], request(QUESTION, tool="no file\n")],
            settled=replace(GOOD.settled, rows=OTHER[:13]),
        ),
        "no condition says so",
    ),
    "files lost": ("files", with_request(request("Turn 1.", QUESTION, tool="no such file\n")), "lack"),
    "files of a cut turn": ("files", with_request(request("Turn 1.", QUESTION, tool="1\n2\n")), "does not know"),
    "asked twice": (
        "once", replace(GOOD, asked=[*GOOD.asked, request("Turn 1.", "Turn 2.")]), "turn 2 reached the model 2 times",
    ),
    "cut and not recorded": ("recorded", with_rows(without(ASKED, 9)), "turn 2 was begun 1 times"),
    "ended twice": ("recorded", with_rows([*ASKED, row(19, "agent.turn_ended", turn=2)]), "Interrupted, Clean"),
    "a turn unknown": ("recorded", with_rows(without(ASKED, 8, 9, 10)), "lost it"),
    "cut by what cuts nobody": ("cut", replace(GOOD, row="pod-deleted"), "turn 2 has ended as Interrupted"),
    "not cut by what cuts everybody": (
        "cut", replace(with_settled(CLEAN), row="bridge-killed"), "turn 2 ran when the fault struck",
    ),
    "failed": ("cut", with_settled(with_event(9, "agent.turn_failed")), "turn 2 has ended as Failed"),
    "its text lost": ("told", with_settled(with_payload(9, text="")), "the text '' is kept"),
    "another text": ("told", with_settled(with_payload(9, text="Else")), "the text 'Else' is kept"),
    "whoever waits has less": ("told", with_settled(with_payload(10, result="")), "was settled with ''"),
    "not told": (
        "told", with_request(request("Turn 1.", "Question.", tool="1\n")), "the next prompt says nothing of turn 2",
    ),
    "by another rung": ("rung", replace(GOOD, row="bridge-killed"), "it came back by Restore; the fault asks for"),
    "by none": ("rung", with_settled(CUT[:-1]), "it came back by nothing"),
    "nobody let go": ("waiters", with_rows(without(ASKED, 10)), "settled 0 times"),
    "let go twice": ("waiters", with_rows([*ASKED, row(19, "handle.settled", turn=2)]), "settled 2 times"),
    "another parent": (
        "edges", with_rows([row(1, "agent.spawned", parent="space/x"), *ASKED[1:]]), "its parent was",
    ),
    "spawned twice": ("edges", with_rows([ASKED[0], *ASKED]), "spawned 2 times"),
    "object gone": ("edges", replace(GOOD, after=replace(GOOD.after, agents={})), "gone"),
    "chain refused": ("chain", replace(GOOD, chain=Chain(False, "row 3 was changed", link(ASKED))), "was changed"),
    "a gap": ("chain", replace(GOOD, chain=Chain(True, "", link(without(ASKED, 4)))), "row 5 does not follow row 3"),
    "another past": (
        "chain", replace(GOOD, before=replace(GOOD.before, head=(8, "other"))), "row 8 stood in the ledger",
    ),
    "another phase": ("status", with_status(phase="Running"), "shows the phase 'Running'"),
    "another turn": ("status", with_status(turn={"number": 2, "state": "Clean"}), "shows the turn 2"),
    "another pod": ("status", with_status(sandbox={"pod": f"{NAME}-1"}), "shows the pod"),
    "another rung": ("status", with_status(restore={"rung": "Reattach"}), "shows the rung 'Reattach'"),
    "no conditions": ("status", with_status(conditions=[]), "shows Interrupted None"),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_broken_is_found_by_its_invariant(what: str) -> None:
    invariant, evidence, words = BROKEN[what]
    found = [one for one in judge(evidence, Column.WITH_TEXT) if one.startswith(f"{invariant}: ")]
    assert any(words in one for one in found), judge(evidence, Column.WITH_TEXT)


def test_every_invariant_is_shown_to_fail() -> None:
    assert {invariant for invariant, _, _ in BROKEN.values()} == set(INVARIANTS)


def test_a_retry_of_the_harness_may_ask_again() -> None:
    retried = [*ASKED[:8], row(8.5, "harness.retry", turn=2, data={"phase": "started"}), *ASKED[8:]]  # type: ignore[arg-type]
    asked = [*GOOD.asked, request("Turn 1.", "Turn 2.")]
    assert not [one for one in judge(with_rows(retried, asked=asked), Column.WITH_TEXT) if one.startswith("once")]


def test_the_prompt_of_a_turn_that_failed_may_be_remembered() -> None:
    rows = [row(9, "agent.turn_failed", turn=2) if r["seq"] == 9 else r for r in ASKED]
    asked = [*GOOD.asked[:2], request("Turn 1.", "Turn 2.", QUESTION, tool="1\n2\n")]
    assert not [one for one in judge(with_rows(rows, asked=asked), Column.WITH_TEXT) if one.startswith("conversation")]


WAITED = [
    row(20, "agent.turn_started", f"{SPACE}/{GATE}", turn=1),
    row(21, "handle.settled", f"{SPACE}/{GATE}", turn=1),
]
RESOLVED = row(22, "wait.resolved")


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([*ASKED, *WAITED, RESOLVED], ""),
        (ASKED, ""),
        ([*ASKED, *WAITED], "resolved 0 times"),
        ([*ASKED, *WAITED, RESOLVED, RESOLVED], "resolved 2 times"),
        ([*ASKED, row(19, "wait.resolved"), *WAITED], "before the agent it waits for"),
    ],
)
def test_a_held_agent_is_let_go_once_and_not_before(rows: list[Json], words: str) -> None:
    found = [one for one in judge(with_rows(rows), Column.HELD) if one.startswith("waiters")]
    assert (words in found[0]) if words else not found


def test_what_a_tool_had_begun_has_to_be_kept() -> None:
    told = "told: of turn 2 the tools [] are kept, and it had started bash"
    assert told not in judge(replace(GOOD, agents={**GOOD.agents, "in-tool": NAME}), Column.IN_TOOL)
    untold = with_settled(with_payload(9, tools=[]))
    assert told in judge(replace(untold, agents={**GOOD.agents, "in-tool": NAME}), Column.IN_TOOL)


def test_every_row_that_can_be_run_says_what_is_expected_of_it() -> None:
    assert set(EXPECTED) == set(list_rows())


def test_a_row_that_kills_the_operator_too_may_lose_the_text() -> None:
    lost = replace(with_settled(with_payload(9, text="")), row="cluster-rebooted")
    assert not [words for words in judge(lost, Column.WITH_TEXT) if "text ''" in words]
