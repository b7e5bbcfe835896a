"""What the bench of the loop found, as text. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from statistics import quantiles

from hack.bench.loop_watch import LATE, Looks

LIMIT = 0.1
"""Seconds that the loop may be held up."""
CAUSES = 6  # that are named
HEAD = ("late p50", "p99", "max", "> 100", "CPU p99", "max", "> 100", "busy", "GC max", "full GCs", "passes/s")


def build_table(found: Mapping[str, Looks], passes: Mapping[str, float]) -> list[str]:
    """A line for each phase; milliseconds, and counts of looks above 100 ms."""
    width = max(map(len, found))
    lines = ["".join([f"{'ms':<{width}}  {'s':>6}", *(f"  {name:>8}" for name in HEAD)])]
    for name, looks in found.items():
        cells = [*_cells(looks), f"{passes[name] / looks.seconds:.0f}"]
        lines.append("".join([f"{name:<{width}}  {looks.seconds:6.1f}", *(f"  {cell:>8}" for cell in cells)]))
    return lines


def _cells(looks: Looks) -> Iterator[str]:
    late, used = _cut(looks.late), _cut(looks.used)
    yield from (_ms(late[49]), _ms(late[98]), _ms(max(looks.late)), str(count_above(looks.late)))
    yield from (_ms(used[98]), _ms(max(looks.used)), str(count_above(looks.used)))
    yield f"{sum(looks.used) / looks.seconds:.0%}"
    yield _ms(max(chain(*looks.collections), default=0.0))
    yield str(len(looks.collections[-1]))


def _cut(values: Sequence[float]) -> list[float]:
    return quantiles(values, n=100, method="inclusive")


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f}"


def count_above(values: Sequence[float]) -> int:
    """How many are above the limit."""
    return sum(value > LIMIT for value in values)


def build_causes(found: Mapping[str, Looks]) -> Iterator[str]:
    """Where the loop was while a look was late, most seen first."""
    for name, looks in found.items():
        if looks.causes:
            yield f"{name}: samples while a look was more than {LATE * 1000:.0f} ms late"
            yield from (f"  {count:4}  {stack}" for stack, count in looks.causes.most_common(CAUSES))
