"""What the durability contract claims of each layer under each kind of trouble. Pure; from the report alone.

A claim stands for some invariants in every cell of some rows, and is made where all of them held in their last run.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hack.faults.invariants import INVARIANTS
from hack.faults.report import Cell, Report, Result, find_cell
from hack.faults.table import LATER_ROWS, Column, Row

SHOWN = 6  # cells that are named in one place


@dataclass(frozen=True)
class Layer:
    """Something that is to survive: the invariants that show it, and what is claimed where they hold."""

    name: str
    invariants: Sequence[str]
    claim: str


@dataclass(frozen=True)
class Crash:
    """A kind of trouble: the rows that stand for it."""

    name: str
    rows: Sequence[Row]


LAYERS = (
    Layer(
        "Sandbox and conversation",
        ("back", "conversation", "told", "rung"),
        "yes, to the last turn that is saved, or better",
    ),
    Layer("Files of the home and `/workspace`", ("files",), "yes, those of the same turn"),
    Layer("Ledger, and what `status` shows of it", ("recorded", "chain", "status"), "yes, all of it"),
    Layer("Tree and waits", ("edges", "waiters"), "yes, all of it"),
    Layer("Side effects of a turn", ("once", "cut"), "at least once, and never repeated in silence"),
)
CRASHES = (
    Crash(
        "the operator crashes, or cannot reach the cluster",
        (Row.OPERATOR_KILLED, Row.TWO_LEADERS, Row.OPERATOR_UPGRADED, Row.API_SERVER_AWAY),
    ),
    Crash(
        "a process or container is lost",
        (Row.HARNESS_KILLED, Row.BRIDGE_KILLED, Row.BRIDGE_HUNG, Row.AGENT_OOM, Row.CONTAINER_KILLED),
    ),
    Crash("a pod is lost", (Row.POD_DELETED, Row.POD_FORCE_DELETED, Row.POD_EVICTED, Row.EVICTED_FOR_STORAGE)),
    Crash(
        "a node is lost",
        (Row.OPERATOR_AND_NODE_GONE, Row.NODE_DRAINED, Row.NODE_CUT_AND_BACK, Row.NODE_CUT_FOR_GOOD),
    ),
    Crash("a node or the cluster reboots", (Row.NODE_REBOOTED, Row.CLUSTER_REBOOTED)),
    Crash("the bucket is in trouble", (Row.BUCKET_AWAY, Row.BUCKET_SLOW, Row.NEWEST_DAMAGED, Row.ALL_DAMAGED)),
    Crash("a disk or the cluster is lost", (Row.DISK_LOST, Row.CLUSTER_LOST)),
)


def claim(report: Report, crash: Crash, layer: Layer) -> str:
    """What is claimed: only what every cell of every row of the crash has shown."""
    if all(row in LATER_ROWS for row in crash.rows):
        return "not yet (step 5)"
    failed, unknown = [], []
    for row, column, cell in walk(report, crash.rows):
        if cell.result is Result.NOT_RUN or not set(layer.invariants) <= {*cell.checked, *broken(cell)}:
            unknown.append(row)
        elif broken(cell) & set(layer.invariants):
            failed.append(f"{row} × {column}")
    if unknown:
        return f"not shown: {shorten(sorted(set(unknown)))}" if len(set(unknown)) < len(crash.rows) else "not shown yet"
    return f"**not always**: {shorten(failed)}" if failed else layer.claim


def walk(report: Report, rows: Sequence[Row]) -> Iterator[tuple[Row, Column, Cell]]:
    """Every cell that can be run today."""
    for row in rows:
        for column in Column:
            cell = find_cell(report, row, column)
            if cell.result not in (Result.LATER, Result.IMPOSSIBLE):
                yield row, column, cell


def broken(cell: Cell) -> set[str]:
    """The invariants that a cell has not held; all of them where it was not played to its end."""
    if cell.result is not Result.FAILED:
        return set()
    named = {words.partition(":")[0] for words in cell.words}
    return named if named and named <= set(INVARIANTS) else set(INVARIANTS)


def shorten(words: Sequence[str]) -> str:
    more = f" and {len(words) - SHOWN} more" if len(words) > SHOWN else ""
    return f"{', '.join(words[:SHOWN])}{more}"
