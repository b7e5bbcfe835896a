"""What was done in a run, counted and as text. Pure."""

import statistics
from collections import Counter
from dataclasses import dataclass, field

from hack.chaos.plan import Kind


@dataclass
class Tally:
    """What was done; `seconds` from a fault to the successor's first answers, by kind."""

    struck: Counter[Kind] = field(default_factory=Counter)
    seconds: dict[Kind, list[float]] = field(default_factory=dict)
    zombies: int = 0
    fenced: int = 0


def describe_tally(tally: Tally) -> list[str]:
    """How many of which fault, and the seconds until the successor's first answers; then the zombies."""
    lines = [f"kills         {sum(tally.struck.values()) - tally.zombies:>8}"]
    lines += [f"zombies       {tally.zombies:>8}  ({tally.fenced} ended with code 75)"]
    lines += [f"{'until the next leader answers, s':<36}  {'median':>7}  {'max':>7}  {'n':>3}"]
    for kind, seconds in sorted(tally.seconds.items()):
        name = kind.name.lower().replace("_", " ")
        lines.append(f"  {name:<34}  {statistics.median(seconds):7.1f}  {max(seconds):7.1f}  {len(seconds):>3}")
    return lines
