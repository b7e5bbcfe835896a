"""A swarm as lines: shape, order, and the words a person needs."""

from typing import Any

import pytest

from alineod.cli.tree import build_lines, parse_node


def agent(name: str, parent: str = "", **more: Any) -> dict[str, Any]:
    status = {"phase": more.pop("phase", "Done"), "turn": {"number": 1}, **more.pop("status", {})}
    return {"metadata": {"name": f"s-{name}"}, "spec": {"alias": name, "parent": parent, **more}, "status": status}


@pytest.mark.parametrize(
    ("agents", "lines"),
    [
        ([], []),
        (
            [agent("lead"), agent("left", "lead"), agent("deep", "left"), agent("right", "lead", phase="Running")],
            [
                "lead         Done  turn 1",
                "├─ left      Done  turn 1",
                "│  └─ deep   Done  turn 1",
                "└─ right     Running  turn 1",
            ],
        ),
        ([agent("orphan", "nobody")], ["orphan  Done  turn 1"]),
        (
            [agent("w", waitFor={"agents": ["a", "b"]}, phase="Waiting", status={"turn": None})],
            ["w  Waiting  waits for a, b"],
        ),
        ([agent("w", waitFor=["a"], phase="Waiting", status={"turn": None})], ["w  Waiting  waits for a"]),
        (
            [agent("x", status={"conditions": [{"type": "Stalled", "status": "True", "message": "No Secret."}]})],
            ["x  Done  turn 1  No Secret."],
        ),
        ([{"metadata": {"name": "bare"}, "spec": {"swarm": "s"}}], ["bare  New"]),
    ],
)
def test_lines(agents: list[dict[str, Any]], lines: list[str]) -> None:
    built = build_lines([parse_node(each) for each in agents])
    assert [" ".join(line.split()) for line in built] == [" ".join(line.split()) for line in lines]
    assert len({line.index("  ") for line in built if "─" not in line}) <= 1


def test_a_circle_of_parents_ends() -> None:
    nodes = [parse_node(each) for each in (agent("top"), agent("a", "b"), agent("b", "a"))]
    assert build_lines(nodes) == ["top  Done  turn 1"]
