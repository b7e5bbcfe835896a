"""A swarm as a person reads it: lines of text from the Agent objects. Pure; knows nothing of clusters or terminals."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Node:
    """One agent. `name` is what agents of the swarm call it; `waits_for` are the names it waits for."""

    name: str
    object: str
    parent: str
    phase: str
    turn: int | None
    waits_for: tuple[str, ...]
    message: str


def parse_node(agent: Mapping[str, Any]) -> Node:
    """Read an Agent as the API server sends it."""
    spec, status = agent.get("spec") or {}, agent.get("status") or {}
    wait = spec.get("waitFor") or ()
    return Node(
        name=spec.get("alias") or agent["metadata"]["name"],
        object=agent["metadata"]["name"],
        parent=spec.get("parent") or "",
        phase=status.get("phase") or "New",
        turn=(status.get("turn") or {}).get("number"),
        waits_for=tuple(wait["agents"] if isinstance(wait, Mapping) else wait),
        message=_find_message(status.get("phase"), status.get("conditions") or ()),
    )


def build_lines(nodes: Sequence[Node]) -> list[str]:
    """Each agent below its parent. One whose parent is not there stands at the top."""
    names = {node.name for node in nodes}
    rows = list(_walk("", "", nodes, names, frozenset()))
    width = max((len(head) for head, _ in rows), default=0)
    return [f"{head:<{width}}  {_describe(node)}" for head, node in rows]


def _walk(
    parent: str, indent: str, nodes: Sequence[Node], names: set[str], above: frozenset[str]
) -> Iterable[tuple[str, Node]]:
    children = [node for node in nodes if (node.parent if node.parent in names else "") == parent]
    for place, node in enumerate(children, 1):
        last = place == len(children)
        branch, further = ("", "") if not parent else ("└─ ", "   ") if last else ("├─ ", "│  ")
        yield f"{indent}{branch}{node.name}", node
        if node.name not in above:  # a circle of parents must not hang a terminal
            yield from _walk(node.name, indent + further, nodes, names, above | {node.name})


def _describe(node: Node) -> str:
    words = [node.phase]
    if node.turn is not None:
        words.append(f"turn {node.turn}")
    if node.phase == "Waiting" and node.waits_for:
        words.append(f"waits for {', '.join(node.waits_for)}")
    if node.message:
        words.append(node.message)
    return "  ".join(words)


def _find_message(phase: str | None, conditions: Iterable[Mapping[str, Any]]) -> str:
    """What a person must know: why it is stuck, what was cut off, or why it failed."""
    told = {c["type"]: c.get("message", "") for c in conditions if c.get("status") == "True"}
    failed = told.get("Ready") if phase == "Failed" else ""
    return str(told.get("Stalled") or told.get("Lost") or told.get("Interrupted") or failed or "")
