"""`python3 -m hack.faults.page [--check]`: docs/durability-contract.md, from docs/fault-matrix.json.

The page says what survives what, and claims nothing that the report does not hold. `--check` writes nothing and fails
where the page says anything else.
"""

import argparse
import difflib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from hack.faults.claims import CRASHES, LAYERS, Crash, claim, walk
from hack.faults.invariants import INVARIANTS
from hack.faults.prose import AFTER, BEFORE
from hack.faults.report import Cell, Report, Result, find_cell, parse, render
from hack.faults.table import COLUMN_WORDS, LATER_ROWS, ROW_WORDS, Column, Row

ROOT = Path(__file__).resolve().parents[2]
REPORT, PAGE = "docs/fault-matrix.json", "docs/durability-contract.md"
BANNER = f"<!-- Written by `make generate` from {REPORT}, which `make fault-matrix` writes. Change it there. -->\n\n"


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


def _describe_proof(report: Report, crash: Crash) -> str:
    """The rows and how many cells of each were run, and since when that has been so."""
    if all(row in LATER_ROWS for row in crash.rows):
        return "–"
    cells = [cell for _, _, cell in walk(report, crash.rows) if cell.result is not Result.NOT_RUN]
    dates = [found.date for row in crash.rows if (found := report.get(row))]
    when = f", {min(dates)}" if dates else ""
    return f"{', '.join(crash.rows)}: {len(cells)} cells{when}"


def _build_gaps(report: Report) -> str:
    """What failed when it was last run, cell by cell."""
    lines = [
        "## Known gaps\n",
        "- Losing a disk or the whole cluster: joins in step 5, and is not shown until then.",
    ]
    lines.append("- Paused and blocked agents: their columns join with step 4.")
    for row, column, cell in walk(report, list(Row)):
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
