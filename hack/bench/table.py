"""Figures as text. Pure but for what it asks of the machine it runs on."""

import os
import platform
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True)
class Cost:
    """What a container costs while nothing happens: bytes that cannot be reclaimed, and CPU in thousandths."""

    rss: int
    working_set: int
    millicores: float


def describe_machine() -> str:
    return f"{os.cpu_count()} CPUs, {platform.system()} {platform.release()}, {platform.machine()}"


def build_table(figures: Mapping[str, Sequence[float]], costs: Mapping[str, Sequence[Cost]]) -> list[str]:
    """Seconds first, then costs; of each the median, and the range where there are several."""
    width = max(map(len, (*figures, *costs)))
    lines = ["", f"{'seconds':<{width}}  {'median':>8}  {'min':>8}  {'max':>8}  {'n':>3}"]
    for name, values in figures.items():
        lines.append(
            f"{name:<{width}}  {statistics.median(values):8.2f}  {min(values):8.2f}  {max(values):8.2f}"
            f"  {len(values):3}"
        )
    lines += ["", f"{'idle, of each container':<{width}}  {'RSS MiB':>8}  {'set MiB':>8}  {'milliCPU':>8}  {'n':>3}"]
    for name, ones in costs.items():
        lines.append(
            f"{name:<{width}}  {statistics.median(one.rss for one in ones) / MIB:8.1f}"
            f"  {statistics.median(one.working_set for one in ones) / MIB:8.1f}"
            f"  {statistics.median(one.millicores for one in ones):8.2f}  {len(ones):3}"
        )
    return lines
