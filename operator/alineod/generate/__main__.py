"""`python -m alineod.generate [--check]`, at the root of the repository or below it."""

import argparse
import os
import subprocess
import sys
from pathlib import Path

from alineod.errors import AlineoError
from alineod.generate.files import build_files, compare_files, write_files
from alineod.generate.manifest import find_helm

ROOT = Path(__file__).resolve().parents[3]


def main() -> int:
    """0: all is as it should be, now. 1: `--check` found a difference, or something is missing."""
    parser = argparse.ArgumentParser(prog="python -m alineod.generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; show what differs and exit 1")
    arguments = parser.parse_args()
    try:
        files = build_files(ROOT, find_helm(os.environ))
    except AlineoError as error:
        return _fail(error.message)
    except subprocess.CalledProcessError as error:
        return _fail(f"helm could not render the chart: {error.stderr.strip()}")
    if arguments.check:
        return _check(files)
    for path in write_files(ROOT, files):
        sys.stdout.write(f"wrote {path}\n")
    return 0


def _check(files: dict[str, str]) -> int:
    lines = list(compare_files(ROOT, files))
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return _fail("generated files differ from their sources: run `make generate`") if lines else 0


def _fail(sentence: str) -> int:
    sys.stderr.write(f"{sentence}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
