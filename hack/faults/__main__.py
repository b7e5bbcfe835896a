"""`python3 -m hack.faults [--rows a,b] [--resume [--stale-ok]] [--name CLUSTER]`: what survives which fault?

Plays each row on the development cluster and writes docs/fault-matrix.json after each. What a cell means is in
docs/durability-contract.md, which follows from that file.

Exit codes: 0 every cell that was run held; 1 one failed; 3 this machine cannot hold the cluster.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from hack.demo.install import Images
from hack.demo.run import DemoError
from hack.demo.target import CANNOT_HOLD, FAILED, ROOT, Unable, find_cache
from hack.faults import report as reports
from hack.faults.mend import having_site, mend
from hack.faults.report import RowReport
from hack.faults.run import Site, run_row
from hack.faults.table import ROW_WORDS, Row, list_rows

REPORT = ROOT / "docs" / "fault-matrix.json"
PRODUCT = ("operator", "charts", "crds", "hack/images", "Dockerfile", "requirements")
"""What the release under test is made of."""


def main(arguments: Sequence[str]) -> int:
    options = build_parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(FAILED))  # what was struck is given back on the way out
    if options.name:
        os.environ["DEVCLUSTER"] = options.name
    commit, known = read_commit(), read_report(REPORT)
    wanted = [Row(name) for name in options.rows.split(",") if name]
    same = None if options.stale_ok else commit
    rows = reports.choose_rows(known, wanted, resume=options.resume, commit=same)
    print(f"{len(rows)} rows at {commit}: {', '.join(rows)}", flush=True)
    try:
        return play_rows(rows, commit)
    except Unable as error:
        print(error, file=sys.stderr)
        return CANNOT_HOLD


def play_rows(rows: Sequence[Row], commit: str) -> int:
    folder = find_cache(os.environ) / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    held = True
    with having_site(folder, say) as site:
        for number, row in enumerate(rows, 1):
            say(f"== {number} of {len(rows)}: {row}: {ROW_WORDS[row]}")
            found = play_row(site, row, commit)
            write_row(REPORT, row, found)
            held &= found.held
            for line in reports.describe({row: found}):
                say(line)
    return 0 if held else FAILED


def play_row(site: Site, row: Row, commit: str) -> RowReport:
    begun = time.monotonic()
    try:
        mend(site.world.target)
    except DemoError as error:
        say(f"   the cluster could not be mended: {error}")
    cells = run_row(site, row)
    for column, cell in cells.items():
        for words in cell.words:
            say(f"   {column}: {words[:600]}")
    seconds = round(time.monotonic() - begun)
    return RowReport(commit, parse_tags(site.images), datetime.now(UTC).strftime("%Y-%m-%d"), seconds, cells)


def parse_tags(images: Images) -> dict[str, str]:
    """The images by their tags alone, which are fingerprints."""
    return {name: ref.rpartition(":")[2] for name, ref in images.refs.items()}


def read_commit() -> str:
    """The last commit that changed the product, marked where the checkout differs from it."""
    newest = ["git", "log", "-1", "--format=%h", "--", *PRODUCT]
    commit = subprocess.run(newest, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    changed = subprocess.run(["git", "diff", "--quiet", "HEAD", "--", *PRODUCT], cwd=ROOT, check=False).returncode
    return f"{commit}-changed" if changed else commit


def read_report(path: Path) -> reports.Report:
    return reports.parse(path.read_text()) if path.is_file() else {}


def write_row(path: Path, row: Row, found: RowReport) -> None:
    """Put a row into the report, which another run may have changed meanwhile."""
    path.write_text(reports.render({**read_report(path), row: found}))


def say(line: str) -> None:
    print(f"{datetime.now(UTC):%H:%M:%S} {line}", flush=True)


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 -m hack.faults", description=__doc__)
    parser.add_argument("--rows", default="", help=f"only these, by commas: {', '.join(list_rows())}")
    parser.add_argument("--resume", action="store_true", help="skip rows that held at this commit")
    parser.add_argument("--stale-ok", action="store_true", help="with --resume: or at any other commit")
    parser.add_argument("--name", default="", help="the development cluster (default: that of this checkout)")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
