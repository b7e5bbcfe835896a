"""A swarm as lines of text. Pure: Agent objects in, lines out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

FINISHED = ("Done", "Failed", "Aborted", "Lost")


@dataclass(frozen=True)
class Leaf:
    """One agent as it is shown; `name` is its short name."""

    name: str
    parent: str
    phase: str
    about: str

    @property
    def finished(self) -> bool:
        return self.phase in FINISHED


def parse_leaf(agent: Mapping[str, Any]) -> Leaf:
    spec, status = agent["spec"], agent.get("status") or {}
    name = spec.get("alias") or agent["metadata"]["name"]
    return Leaf(name, spec.get("parent") or "", status.get("phase") or "", _describe(status))


def _describe(status: Mapping[str, Any]) -> str:
    turn, sandbox = status.get("turn") or {}, status.get("sandbox") or {}
    checkpoint, restore = status.get("checkpoint") or {}, status.get("restore") or {}
    parts = [
        f"turn {turn['number']} {turn['state'].lower()}" if turn else "",
        f"checkpoint {checkpoint['turn']}" if checkpoint.get("remoteRef") else "",
        f"back by {restore['rung']}" if restore else "",
        f"{sandbox['pod']} on {sandbox.get('node') or 'no node yet'}" if sandbox else "",
    ]
    return ", ".join(filter(None, parts)) or _find_message(status)


def _find_message(status: Mapping[str, Any]) -> str:
    ready: Mapping[str, Any] = next((c for c in status.get("conditions") or () if c["type"] == "Ready"), {})
    return str(ready.get("message", ""))


def build_tree(leaves: Sequence[Leaf]) -> list[str]:
    """Lines with the children of each agent below it, in the order given."""
    names = {leaf.name for leaf in leaves}
    width = max((len(leaf.name) + 3 * _depth(leaf, leaves) for leaf in leaves), default=0)

    def below(parent: str, indent: str) -> list[str]:
        lines: list[str] = []
        children = [leaf for leaf in leaves if (leaf.parent if leaf.parent in names else "") == parent]
        for leaf in children:
            last = leaf is children[-1]
            branch, further = ("", "") if not parent else ("└─ ", "   ") if last else ("├─ ", "│  ")
            head = f"{indent}{branch}{leaf.name}"
            lines.append(f"{head:<{width}}  {leaf.phase:<12}  {leaf.about}".rstrip())
            lines += below(leaf.name, indent + further)
        return lines

    return below("", "")


def _depth(leaf: Leaf, leaves: Sequence[Leaf]) -> int:
    parents = {other.name: other.parent for other in leaves}
    depth, at = 0, leaf.parent
    while at in parents and depth < len(parents):
        depth, at = depth + 1, parents[at]
    return depth


def compute_changes(before: Sequence[Leaf], after: Sequence[Leaf]) -> list[str]:
    """A line for each agent that is not as it was."""
    known = {leaf.name: leaf for leaf in before}
    return [
        f"{leaf.name}: {leaf.phase or 'new'}" + (f", {leaf.about}" if leaf.about else "")
        for leaf in after
        if known.get(leaf.name) != leaf
    ]
