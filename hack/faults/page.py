"""`python3 -m hack.faults.page [--check]`: docs/durability-contract.md, from docs/fault-matrix.json.

The page says what survives what, and claims nothing that the report does not hold: a cell of its table is a claim about
some invariants in every cell of some rows. `--check` writes nothing and fails where the page says anything else.
"""

import argparse
import difflib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hack.faults.judge import INVARIANTS
from hack.faults.prose import AFTER, BEFORE
from hack.faults.report import Cell, Report, Result, find_cell, parse, render
from hack.faults.table import COLUMN_WORDS, LATER_ROWS, ROW_WORDS, Column, Row

ROOT = Path(__file__).resolve().parents[2]
REPORT, PAGE = "docs/fault-matrix.json", "docs/durability-contract.md"
BANNER = f"<!-- Written by `make generate` from {REPORT}, which `make fault-matrix` writes. Change it there. -->\n\n"
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
    Layer("Sandbox and conversation", ("back", "conversation"), "yes, to the last turn that is saved, or better"),
    Layer("Files of the home and `/workspace`", ("files",), "yes, those of the same turn"),
    Layer("Ledger, and what `status` shows of it", ("recorded", "chain", "status"), "yes, all of it"),
    Layer("Tree and waits", ("edges", "waiters"), "yes, all of it"),
    Layer("Side effects of a turn", ("once",), "at least once, and never repeated in silence"),
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


def build_page(report: Report) -> str:
    """The whole page; the same report gives the same page."""
    parts = (BANNER + BEFORE, _build_claims(report), AFTER, _build_gaps(report), _build_matrix(report), _build_words())
    return "\n".join(parts)


def _build_claims(report: Report) -> str:
    lines = ["## What survives what\n", f"| when | {' | '.join(layer.name for layer in LAYERS)} | shown by |"]
    lines.append("|---" * (len(LAYERS) + 2) + "|")
    for crash in CRASHES:
        claims = [claim(report, crash, layer) for layer in LAYERS]
        lines.append(f"| {crash.name} | {' | '.join(claims)} | {_describe_proof(report, crash)} |")
    return "\n".join([*lines, ""])


def claim(report: Report, crash: Crash, layer: Layer) -> str:
    """What is claimed: only what every cell of every row of the crash has shown."""
    if all(row in LATER_ROWS for row in crash.rows):
        return "not yet (step 5)"
    failed, unknown = [], []
    for row, column, cell in _walk(report, crash.rows):
        if cell.result is Result.NOT_RUN or not set(layer.invariants) <= {*cell.checked, *_broken(cell)}:
            unknown.append(row)
        elif _broken(cell) & set(layer.invariants):
            failed.append(f"{row} × {column}")
    if unknown:
        return (
            f"not shown: {_shorten(sorted(set(unknown)))}" if len(set(unknown)) < len(crash.rows) else "not shown yet"
        )
    return f"**not always**: {_shorten(failed)}" if failed else layer.claim


def _describe_proof(report: Report, crash: Crash) -> str:
    """The rows and how many cells of each were run, with the newest date."""
    if all(row in LATER_ROWS for row in crash.rows):
        return "–"
    cells = [cell for _, _, cell in _walk(report, crash.rows) if cell.result is not Result.NOT_RUN]
    dates = [found.date for row in crash.rows if (found := report.get(row))]
    when = f", {min(dates)}" if dates else ""
    return f"{', '.join(crash.rows)}: {len(cells)} cells{when}"


def _walk(report: Report, rows: Sequence[Row]) -> Iterator[tuple[Row, Column, Cell]]:
    """Every cell that can be run today."""
    for row in rows:
        for column in Column:
            cell = find_cell(report, row, column)
            if cell.result not in (Result.LATER, Result.IMPOSSIBLE):
                yield row, column, cell


def _broken(cell: Cell) -> set[str]:
    """The invariants that a cell has not held; all of them where it was not played to its end."""
    if cell.result is not Result.FAILED:
        return set()
    named = {words.partition(":")[0] for words in cell.words}
    return named if named and named <= set(INVARIANTS) else set(INVARIANTS)


def _shorten(words: Sequence[str]) -> str:
    more = f" and {len(words) - SHOWN} more" if len(words) > SHOWN else ""
    return f"{', '.join(words[:SHOWN])}{more}"


def _build_gaps(report: Report) -> str:
    """What failed when it was last run, cell by cell."""
    lines = [
        "## Known gaps\n",
        "- Losing a disk or the whole cluster: joins in step 5, and is not shown until then.",
    ]
    lines.append("- Paused and blocked agents: their columns join with step 4.")
    for row, column, cell in _walk(report, list(Row)):
        if cell.result is Result.FAILED:
            lines.append(f"- {row} × {column}: {_escape('; '.join(cell.words))[:300]}")
    return "\n".join([*lines, ""])


def _build_matrix(report: Report) -> str:
    lines = ["## The matrix\n", f"| fault | {' | '.join(Column)} | run |", "|---" * (len(Column) + 2) + "|"]
    for row in Row:
        cells = [_show(find_cell(report, row, column)) for column in Column]
        found = report.get(row)
        ran = f"{found.date}, {found.seconds} s, `{found.commit}`" if found else "–"
        lines.append(f"| {row} | {' | '.join(cells)} | {ran} |")
    return "\n".join([*lines, ""])


def _show(cell: Cell) -> str:
    match cell.result:
        case Result.HELD:
            return cell.rung or "held"
        case Result.FAILED:
            return "**failed**"
        case Result.IMPOSSIBLE:
            return "–"
        case Result.LATER:
            return "later"
        case Result.NOT_RUN:
            return "not run"


def _build_words() -> str:
    """What rows, columns and invariants are, and why a cell cannot be."""
    lines = ["A cell names the rung that brought the agent back, or `held` where it never was away.\n", "Faults:\n"]
    lines += [f"- `{row}`: {words}" for row, words in ROW_WORDS.items()]
    lines += ["\nStates of the agent when the fault strikes:\n"]
    lines += [f"- `{column}`: {words}" for column, words in COLUMN_WORDS.items()]
    lines += ["\nWhat each cell is checked for, from outside:\n"]
    lines += [f"- `{name}`: {_first_line(find)}" for name, find in INVARIANTS.items()]
    lines += ["\nCells that cannot be:\n", *_build_impossible()]
    return "\n".join([*lines, ""])


def _build_impossible() -> Iterator[str]:
    for row in Row:
        by_reason: dict[str, list[str]] = {}
        for column in Column:
            cell = find_cell({}, row, column)
            if cell.result is Result.IMPOSSIBLE:
                by_reason.setdefault(cell.words[0], []).append(column)
        yield from (f"- `{row}` × {', '.join(columns)}: {reason}." for reason, columns in by_reason.items())


def _first_line(find: object) -> str:
    return str(find.__doc__).strip().splitlines()[0]


def _escape(words: str) -> str:
    return words.replace("\n", " ").replace("<", "&lt;")


def check(report_text: str, page: str) -> Iterator[str]:
    """Lines about what is not as the report has it; none when all is well."""
    report = parse(report_text)
    if render(report) != report_text:
        yield f"{REPORT} is not as `make fault-matrix` writes it: run the rows that were changed again"
    yield from difflib.unified_diff(
        page.splitlines(), build_page(report).splitlines(), PAGE, f"{PAGE} (generated)", lineterm=""
    )


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m hack.faults.page", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; show what differs and exit 1")
    text, page = (ROOT / REPORT).read_text(), ROOT / PAGE
    if not parser.parse_args(arguments).check:
        page.write_text(build_page(parse(text)))
        return 0
    lines = list(check(text, page.read_text() if page.is_file() else ""))
    print("\n".join([*lines, f"{PAGE} differs from its report: run `make generate`"] if lines else ()), end="")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
