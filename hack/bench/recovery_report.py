"""What the recovery bench found, as Markdown. Pure."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from statistics import median

BARE = "bare pod: made → answers HTTP"
CLAIM = "StatefulSet with a claim: pod deleted → answers HTTP"
FETCH = "transfer alone: GET and unpack"
SYNC = "transfer alone, until it is on the disk"
ALLOWED = 2.0  # s that a restore may take beyond a bare start and the transfer


class Step(StrEnum):
    """Of an agent's way back, each told in seconds since its pod was deleted."""

    GONE = "its object is gone"
    MADE = "the next pod is made"
    RECORDED = "the next pod stands in the ledger"
    SCHEDULED = "it has a node"
    RESTORING = "its restore container runs"
    RESTORED = "its restore container is done"
    RUNS = "its agent container runs"
    READY = "its bridge takes turns"
    STARTED = "the prompt is handed over"
    ANSWERED = "the prompt is answered"


class Restart(StrEnum):
    """Of an operator's restart, in seconds since the fault for the first and since the lease for the others."""

    LEASE = "fault → lease"
    REATTACHED = "lease → the last agent is reattached"
    SERVING = "lease → it serves"
    BACK = "fault → it serves"


Figures = Mapping[str, Sequence[float]]
ROWS = (BARE, CLAIM, FETCH, SYNC)


def name_size(size: int) -> str:
    """As people write it."""
    return f"{size // 10**9} GB" if size >= 10**9 else f"{size // 10**6} MB"


def build_losses(found: Mapping[int, Figures]) -> list[str]:
    """A column for each size of the home: of each figure the median, and the worst in brackets."""
    rounds = len(next(iter(found.values()))[BARE])
    lines = [f"A pod is lost, {rounds} times for each size of the home:", ""]
    lines += [f"| seconds, p50 (max) | {' | '.join(map(name_size, found))} |", "|---" * (len(found) + 1) + "|"]
    lines += [_build_row(name, [figures[name] for figures in found.values()]) for name in ROWS]
    lines.append(f"| agent: pod deleted → {' |' * len(found)} |".replace("  |", " |"))
    for step in Step:
        shown = f"**{step}**" if step is Step.ANSWERED else step
        lines.append(_build_row(f"… {shown}", [figures[step] for figures in found.values()]))
    goals = [compute_goal(figures) for figures in found.values()]
    lines.append(f"| goal: bare start + {ALLOWED:g} s + GET and unpack | {' | '.join(f'{g:.2f}' for g in goals)} |")
    verdicts = [median(figures[Step.ANSWERED]) <= goal for figures, goal in zip(found.values(), goals, strict=True)]
    return [*lines, f"| | {' | '.join('met' if met else '**not met**' for met in verdicts)} |"]


def compute_goal(figures: Figures) -> float:
    """The seconds within which the agent is to answer."""
    return median(figures[BARE]) + ALLOWED + median(figures[FETCH])


def _build_row(name: str, columns: Sequence[Sequence[float]]) -> str:
    return f"| {name} | {' | '.join(f'{median(values):.2f} ({max(values):.2f})' for values in columns)} |"


def build_restarts(found: Mapping[str, Figures], agents: int) -> list[str]:
    """A column for each kind of restart."""
    rounds = len(next(iter(found.values()))[Restart.LEASE])
    lines = [f"The operator is restarted over {agents} agents in the middle of a turn, {rounds} times each:", ""]
    lines += [f"| seconds, p50 (max) | {' | '.join(found)} |", "|---" * (len(found) + 1) + "|"]
    return [*lines, *(_build_row(row, [figures[row] for figures in found.values()]) for row in Restart)]
