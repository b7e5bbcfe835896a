"""What the demo shows of a swarm, and which cluster it takes itself to mean."""

import io
from typing import Any

import pytest

from hack.demo.run import DemoError, run
from hack.demo.show import Show
from hack.demo.target import Kind, parse_kind, read_exports
from hack.demo.tree import Leaf, build_tree, compute_changes, parse_leaf


def _leaf(name: str, parent: str = "", phase: str = "Done", about: str = "") -> Leaf:
    return Leaf(name, parent, phase, about)


def test_a_tree_has_children_below_their_parent() -> None:
    leaves = [_leaf("lead"), _leaf("left", "lead"), _leaf("deep", "left", "Running", "turn 1"), _leaf("right", "lead")]
    assert build_tree(leaves) == [
        "lead        Done",
        "├─ left     Done",
        "│  └─ deep  Running       turn 1",
        "└─ right    Done",
    ]


def test_a_parent_that_is_not_shown_hides_nobody() -> None:
    assert build_tree([_leaf("left", "gone")]) == ["left  Done"]


def test_parents_in_a_circle_end() -> None:
    assert build_tree([_leaf("a", "b"), _leaf("b", "a")]) == []


STATUS: dict[str, Any] = {
    "phase": "Done",
    "turn": {"number": 2, "state": "Clean"},
    "sandbox": {"pod": "s-left-2", "node": "n1"},
    "checkpoint": {"turn": 2, "remoteRef": "key"},
    "restore": {"rung": "Restore"},
}
WAITING: dict[str, Any] = {"phase": "Waiting", "conditions": [{"type": "Ready", "message": "waits for lead"}]}


@pytest.mark.parametrize(
    ("status", "about"),
    [
        (STATUS, "turn 2 clean, checkpoint 2, back by Restore, s-left-2 on n1"),
        (STATUS | {"checkpoint": {"turn": 2, "uploadError": "no"}, "restore": None}, "turn 2 clean, s-left-2 on n1"),
        (WAITING, "waits for lead"),
        (None, ""),
    ],
)
def test_an_agent_is_told_in_a_few_words(status: dict[str, Any] | None, about: str) -> None:
    agent = {"metadata": {"name": "s-left"}, "spec": {"alias": "left", "parent": "lead"}, "status": status}
    assert parse_leaf(agent) == Leaf("left", "lead", (status or {}).get("phase", ""), about)


def test_only_what_changed_is_told() -> None:
    before = [_leaf("a", phase="Waiting"), _leaf("b")]
    after = [_leaf("a", phase="Running", about="turn 1 running"), _leaf("b"), _leaf("c", phase="")]
    assert compute_changes(before, after) == ["a: Running, turn 1 running", "c: new"]


def test_where_nothing_can_be_overwritten_changes_are_told_line_by_line() -> None:
    out = io.StringIO()
    show = Show(out)
    show.tree([_leaf("a", phase="Waiting")])
    show.tree([_leaf("a", phase="Waiting")])
    show.tree([_leaf("a")])
    assert out.getvalue() == "   a: Waiting\n   a: Done\n"


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_the_tree_stays_in_its_place() -> None:
    out = _Terminal()
    show = Show(out)
    show.tree([_leaf("a", phase="Waiting"), _leaf("b", "a", "Waiting")])
    show.tree([_leaf("a"), _leaf("b", "a", "Waiting")])
    assert out.getvalue().count("\x1b[2A\x1b[J") == 1
    show.say("between")
    show.tree([_leaf("a"), _leaf("b", "a")])
    assert out.getvalue().count("\x1b[") == 2


def test_steps_are_timed() -> None:
    out, clock = io.StringIO(), iter((1.0, 3.5))
    show = Show(out, lambda: next(clock))
    with show.step("work"):
        show.quote("it\n\ndoes")
    show.table()
    assert out.getvalue() == "== work\n   | it\n   | does\n   2.5 s\n   work      2.5 s\n"


@pytest.mark.parametrize(
    ("env", "kind"), [({}, Kind.DEV), ({"CLUSTER": ""}, Kind.DEV), ({"CLUSTER": "kind"}, Kind.KIND)]
)
def test_the_cluster_is_ours_unless_another_is_named(env: dict[str, str], kind: Kind) -> None:
    assert parse_kind(env) is kind


def test_a_cluster_nobody_knows_is_refused_with_the_ones_there_are() -> None:
    with pytest.raises(DemoError, match="CLUSTER=production is not known: use dev, kind, current"):
        parse_kind({"CLUSTER": "production"})


def test_exports_are_read() -> None:
    text = "export KUBECONFIG='/a b/config'\nexport PATH='/bin':\"$PATH\"\necho no\n"
    assert read_exports(text)["KUBECONFIG"] == "/a b/config"


def test_a_program_that_fails_says_so_in_its_own_words() -> None:
    with pytest.raises(DemoError, match="sh -c echo no >&2; exit 4 failed \\(4\\): no"):
        run(["/bin/sh", "-c", "echo no >&2; exit 4"])
    assert run(["/bin/sh", "-c", "exit 4"], check=False).code == 4
    with pytest.raises(DemoError, match="is not installed"):
        run(["no-such-program"])
    with pytest.raises(DemoError, match="did not end within"):
        run(["sleep", "5"], timeout=0.05)
