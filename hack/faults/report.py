"""The report: what each cell came to, when, and with which images. Pure; its order is that of the tables."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from hack.faults.table import Column, Row, find_impossible, find_later, list_rows

ROWS = frozenset(Row)


class Result(StrEnum):
    HELD = "held"
    FAILED = "failed"
    IMPOSSIBLE = "impossible"
    LATER = "later"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Cell:
    """One cell. `rung` brought the agent back, empty where nothing had to; `words` say why it is as it is."""

    result: Result
    rung: str = ""
    checked: Sequence[str] = ()
    words: Sequence[str] = ()


@dataclass(frozen=True)
class RowReport:
    """One run. `commit` is the last one that changed the product, `images` are the tags of what ran."""

    commit: str
    images: Mapping[str, str]
    date: str
    seconds: int
    cells: Mapping[Column, Cell] = field(default_factory=dict)

    @property
    def held(self) -> bool:
        """Every cell that was run held, and one was."""
        results = {cell.result for cell in self.cells.values()}
        return Result.HELD in results and not results & {Result.FAILED, Result.NOT_RUN}


Report = Mapping[Row, RowReport]


def find_cell(report: Report, row: Row, column: Column) -> Cell:
    """A cell of the whole matrix; what was never run is `not run`."""
    if words := find_later(row, column):
        return Cell(Result.LATER, words=(words,))
    if words := find_impossible(row, column):
        return Cell(Result.IMPOSSIBLE, words=(words,))
    found = report.get(row)
    return found.cells.get(column, Cell(Result.NOT_RUN)) if found else Cell(Result.NOT_RUN)


def render(report: Report) -> str:
    """JSON, a row after another with a line for each cell, so that a difference is small."""
    rows = ",\n".join(f" {json.dumps(str(row))}: {{\n{_render_row(report, row)}\n }}" for row in Row)
    return f'{{"rows": {{\n{rows}\n}}}}\n'


def _render_row(report: Report, row: Row) -> str:
    found = report.get(row)
    about = {"commit": found.commit, "images": dict(sorted(found.images.items())), "date": found.date,
             "seconds": found.seconds} if found else {}  # fmt: skip
    cells = {str(column): _render_cell(find_cell(report, row, column)) for column in Column}
    lines = [f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in about.items()]
    inner = ",\n".join(f"   {json.dumps(name)}: {json.dumps(cell, ensure_ascii=False)}" for name, cell in cells.items())
    return ",\n".join([*lines, f'  "cells": {{\n{inner}\n  }}'])


def _render_cell(cell: Cell) -> dict[str, Any]:
    parts = {"result": str(cell.result), "rung": cell.rung, "checked": list(cell.checked), "words": list(cell.words)}
    return {name: value for name, value in parts.items() if value}


def parse(text: str) -> dict[Row, RowReport]:
    """What `render` wrote. Rows and columns that are not in the tables any more are left out."""
    raw = json.loads(text)["rows"]
    return {Row(name): _parse_row(row) for name, row in raw.items() if name in ROWS and "commit" in row}


def _parse_row(raw: Mapping[str, Any]) -> RowReport:
    cells = {Column(name): _parse_cell(cell) for name, cell in raw["cells"].items() if name in frozenset(Column)}
    ran = {column: cell for column, cell in cells.items() if cell.result in (Result.HELD, Result.FAILED)}
    return RowReport(raw["commit"], raw["images"], raw["date"], raw["seconds"], ran)


def _parse_cell(raw: Mapping[str, Any]) -> Cell:
    return Cell(Result(raw["result"]), raw.get("rung", ""), tuple(raw.get("checked", ())), tuple(raw.get("words", ())))


def choose_rows(report: Report, wanted: Sequence[Row], *, resume: bool, commit: str | None) -> list[Row]:
    """The rows to run, in the order wanted. With `resume` not those that held at `commit`, at any where it is None."""
    rows = list(wanted or list_rows())
    if not resume:
        return rows
    return [row for row in rows if not _has_held(report.get(row), commit)]


def _has_held(found: RowReport | None, commit: str | None) -> bool:
    return found is not None and found.held and commit in (None, found.commit)


def describe(report: Report) -> list[str]:
    """A line for each row that was run."""
    lines = []
    for row, found in report.items():
        failed = [str(column) for column, cell in found.cells.items() if cell.result is Result.FAILED]
        end = f"FAILED: {', '.join(failed)}" if failed else "held"
        lines.append(f"{row:<26} {found.seconds:>4} s  {end}")
    return lines
