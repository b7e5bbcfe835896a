"""Server-side apply on plain mappings: who owns which field, and what an intent changes. Pure.

For the gateway in memory. It knows the two lists of ours that merge by a key; other lists are one value. It must
not know resources, versions or defaults.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

# A step into a mapping is its key; a step into a list that merges is the key field and its value.
Step = str | tuple[str, str]
T = TypeVar("T")
Path = tuple[Step, ...]

_MERGE_KEYS: Mapping[str, str] = {"conditions": "type", "ownerReferences": "uid"}


@dataclass(frozen=True, slots=True)
class Applied:
    """The object after an intent, and the owners of its fields; `disputed` are those others had set differently."""

    obj: dict[str, Any]
    owners: Mapping[Path, frozenset[str]]
    disputed: tuple[Path, ...] = field(default=())


def copy_json(value: T) -> T:
    """A copy that shares nothing with the value, by way of its JSON: far faster than a copy of anything."""
    copy: T = msgspec.json.decode(msgspec.json.encode(value))
    return copy


def find_leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every field that has a value of its own, with its path."""
    match value:
        case dict() if value:
            for name, inner in value.items():
                yield from find_leaves(inner, (*path, name))
        case list() if value and path and path[-1] in _MERGE_KEYS:
            key = _MERGE_KEYS[str(path[-1])]
            for item in value:
                yield from find_leaves(item, (*path, (key, str(item[key]))))
        case _:
            if path:
                yield path, value


def compute_applied(
    obj: Mapping[str, Any], owners: Mapping[Path, frozenset[str]], intent: Mapping[str, Any], manager: str
) -> Applied:
    """`obj` with the full intent of `manager`: its fields set, and those it no longer names and owned alone removed."""
    wanted = dict(find_leaves(copy_json(dict(intent))))
    present = dict(find_leaves(dict(obj)))
    result, owned = copy_json(dict(obj)), dict(owners)
    given_up = [path for path, who in owned.items() if manager in who and path not in wanted]
    # What finds an item in its list goes last.
    for path in sorted(given_up, key=_is_merge_key):
        others = owned[path] - {manager}
        if others:
            owned[path] = others
        else:
            del owned[path]
            _remove(result, path)
    disputed = []
    for path, value in wanted.items():
        changed = present.get(path) != value
        others = owned.get(path, frozenset()) - {manager}
        if changed and others:
            disputed.append(path)
        owned[path] = frozenset({manager}) if changed else others | {manager}
        if changed or path not in present:
            _set(result, path, value)
    return Applied(result, owned, tuple(disputed))


def _is_merge_key(path: Path) -> bool:
    return len(path) > 1 and isinstance(path[-2], tuple) and path[-2][0] == path[-1]


def _set(node: Any, path: Path, value: Any) -> None:
    *ways, last = path
    for position, step in enumerate(ways):
        following = path[position + 1]
        node = _enter(node, step, [] if isinstance(following, tuple) else {})
    empty_intent = value == {} or (value == [] and last in _MERGE_KEYS)
    # An empty mapping claims no field of those in it.
    if not (empty_intent and isinstance(node.get(last), type(value))):
        node[last] = value


def _enter(node: Any, step: Step, empty: Any) -> Any:
    if isinstance(step, tuple):
        key, wanted = step
        for item in node:
            if str(item.get(key)) == wanted:
                return item
        node.append({key: wanted})
        return node[-1]
    if not isinstance(node.get(step), type(empty)):
        node[step] = empty
    return node[step]


def _remove(node: Any, path: Path) -> bool:
    """Remove a field and whatever is empty without it; returns whether `node` itself is empty now."""
    step, rest = path[0], path[1:]
    if isinstance(step, tuple):
        key, wanted = step
        for item in [item for item in node if str(item.get(key)) == wanted]:
            if _remove(item, rest):
                node.remove(item)
    elif not rest:
        node.pop(step, None)
    elif step in node and _remove(node[step], rest):
        del node[step]
    return not node
