"""What the ledger's bench found, as figures, tables and verdicts. Pure."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hack.bench.ledger_load import Cell, Sample

GOAL_CELL = Cell(clients=32, batch=10)
GOAL_RATE = 5800.0
GOAL_P50 = 60.0
GOAL_DRIFT = 0.15


@dataclass(frozen=True)
class Figures:
    """Acknowledged events a second; milliseconds an append took."""

    rate: float
    p50: float
    p99: float


Rounds = Mapping[Cell, list[Figures]]
"""Of each cell what every round found."""


def compute_figures(samples: Sequence[Sample], batch: int, begin: float, end: float) -> Figures:
    """Of the appends that were acknowledged from `begin` until before `end` (monotonic seconds)."""
    took = [sample.took * 1000 for sample in samples if begin <= sample.at < end]
    if len(took) < 2:
        raise ValueError(f"{len(took)} appends were acknowledged in {end - begin:.1f} s: too few for a figure")
    cuts = statistics.quantiles(took, n=100, method="inclusive")
    return Figures(len(took) * batch / (end - begin), cuts[49], cuts[98])


def compute_median(rounds: Sequence[Figures]) -> Figures:
    """Each figure's own median over several rounds."""
    return Figures(*(statistics.median(getattr(one, name) for one in rounds) for name in ("rate", "p50", "p99")))


def compute_minutes(samples: Sequence[Sample], begin: float, minute: float, count: int) -> list[float]:
    """The p50 (ms) of each of `count` parts of `minute` seconds."""
    found = []
    for number in range(count):
        start = begin + number * minute
        found.append(compute_figures(samples, 1, start, start + minute).p50)
    return found


def build_table(ours: Rounds, raw: Rounds) -> list[str]:
    """The medians of all rounds, and the range of the rates."""
    titles = f"{'events/s':>9}  {'from':>8} {'to':>8}  {'p50 ms':>7}  {'p99 ms':>7}"
    where = f"{'clients':>7}  {'batch':>5}"
    lines = [f"{'':{len(where)}} | {'acknowledged by the ledger':{len(titles)}} | committed, not confirmed (raw)"]
    lines.append(f"{where} | {titles} | {titles}")
    for cell in ours:
        sides = " | ".join(_describe(side[cell]) for side in (ours, raw))
        lines.append(f"{cell.clients:>7}  {cell.batch:>5} | {sides}")
    return lines


def _describe(rounds: Sequence[Figures]) -> str:
    middle, rates = compute_median(rounds), [one.rate for one in rounds]
    return f"{middle.rate:9,.0f}  {min(rates):8,.0f} {max(rates):8,.0f}  {middle.p50:7.1f}  {middle.p99:7.1f}"


def decide_goals(found: Figures, minutes: Sequence[float]) -> list[str]:
    """A sentence for each goal: whether it is met, and the figure.

    Args:
        found: of the cell that the goals name.
        minutes: the p50 (ms) of each minute of the steady load.
    """
    where = f"at {GOAL_CELL.clients} × {GOAL_CELL.batch}"
    drift = minutes[-1] / minutes[0] - 1
    said = [
        (found.rate >= GOAL_RATE, f"at least {GOAL_RATE:,.0f} acknowledged events/s {where}: {found.rate:,.0f}"),
        (found.p50 <= GOAL_P50, f"p50 of at most {GOAL_P50:.0f} ms {where}: {found.p50:.1f} ms"),
        (
            abs(minutes[-1] - minutes[0]) <= GOAL_DRIFT * minutes[0],
            f"p50 of the last minute within {GOAL_DRIFT:.0%} of the first's: {minutes[0]:.1f} ms, then"
            f" {minutes[-1]:.1f} ms ({drift:+.1%})",
        ),
    ]
    return [f"{'met    ' if met else 'NOT MET'}  {sentence}" for met, sentence in said]
