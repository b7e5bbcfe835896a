"""Circles and depths in graphs of names. Iterative, so that a chain of thousands is no problem."""

from collections.abc import Iterator, Mapping, Sequence


def find_cycle(edges: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """One circle as the path that closes it, such as `("a", "b", "a")`; empty when there is none.

    Names that `edges` has no entry for lead nowhere.
    """
    finished: set[str] = set()
    for start in edges:
        if start not in finished and (path := _walk(start, edges, finished)):
            return path
    return ()


def _walk(start: str, edges: Mapping[str, Sequence[str]], finished: set[str]) -> tuple[str, ...]:
    path = {start: None}  # a dict, for its order and its quick look-up
    todo: list[Iterator[str]] = [iter(edges[start])]
    while todo:
        name = next(todo[-1], None)
        if name is None:
            todo.pop()
            finished.add(path.popitem()[0])
        elif name in path:
            names = list(path)
            return (*names[names.index(name) :], name)
        elif name not in finished and name in edges:
            path[name] = None
            todo.append(iter(edges[name]))
    return ()


def measure_depth(parents: Mapping[str, str | None]) -> int:
    """Levels below the roots of a forest without circles; a parent that is not in the mapping counts as a root."""
    depths: dict[str, int] = {}
    for name in parents:
        chain: list[str] = []
        at: str | None = name
        while at is not None and at in parents and at not in depths:
            chain.append(at)
            at = parents[at]
        below = depths.get(at, 0) + 1 if at is not None else 0
        for depth, member in enumerate(reversed(chain), start=below):
            depths[member] = depth
    return max(depths.values(), default=0)
