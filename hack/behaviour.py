"""Checks docs/behaviour.md against the tests: which sentences are proven, which are owed, and that no mark is wrong.

Reads text only; it never imports a test. Run by `make verify`.
"""

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

STEPS = ("ledger", "recovery", "control", "backup")
SENTENCE = re.compile(r"^- \*\*(?P<id>\d+\.\d+)\*\* (?P<text>.+?)(?: `owed: (?P<step>[^`]*)`)?$")
SECTION = re.compile(r"^## (?P<number>\d+)\. ")


class PageError(ValueError):
    """docs/behaviour.md is not written as it says it is."""


@dataclass(frozen=True)
class Sentence:
    """One promise. `step` names who owes it, None when tests must prove it now."""

    id: str
    text: str
    step: str | None


@dataclass(frozen=True)
class Mark:
    """One id that a test names, and where (`path:line`)."""

    id: str
    where: str


@dataclass(frozen=True)
class Report:
    """`unknown` and `unproven` fail the check; `early` are owed sentences that tests prove already."""

    unknown: tuple[Mark, ...]
    unproven: tuple[Sentence, ...]
    early: tuple[Sentence, ...]
    owed: Mapping[str, tuple[Sentence, ...]]
    proven: int


def parse_page(page: str) -> list[Sentence]:
    """The sentences of the page in order.

    Raises:
        PageError: an id out of place, given twice, or a step that does not exist.
    """
    sentences: list[Sentence] = []
    section, number = "", 0
    for line in page.splitlines():
        if heading := SECTION.match(line):
            section, number = heading["number"], 0
        if not line.startswith("- "):
            continue
        found = SENTENCE.match(line)
        if found is None:
            raise PageError(f"not of the form '- **section.number** sentence': {line[:60]}")
        in_section, in_order = found["id"].split(".")
        if in_section != section or int(in_order) <= number:
            raise PageError(f"{found['id']} stands in section {section} after {number}: ids rise within a section")
        if found["step"] is not None and found["step"] not in STEPS:
            raise PageError(f"{found['id']} is owed by {found['step']!r}; the steps are {', '.join(STEPS)}")
        number = int(in_order)
        sentences.append(Sentence(found["id"], found["text"], found["step"]))
    return sentences


def parse_marks(source: str, path: str) -> Iterator[Mark]:
    """Every id in a `pytest.mark.behaviour(...)` of one test file, decorators and `pytestmark` alike."""
    for node in ast.walk(ast.parse(source, path)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("mark.behaviour"):
            for argument in node.args:
                value = argument.value if isinstance(argument, ast.Constant) else None
                yield Mark(value if isinstance(value, str) else ast.unparse(argument), f"{path}:{node.lineno}")


def compute_report(sentences: Iterable[Sentence], marks: Iterable[Mark]) -> Report:
    marks, sentences = list(marks), list(sentences)
    named, known = {mark.id for mark in marks}, {sentence.id for sentence in sentences}
    owed = {step: tuple(s for s in sentences if s.step == step and s.id not in named) for step in STEPS}
    return Report(
        unknown=tuple(mark for mark in marks if mark.id not in known),
        unproven=tuple(s for s in sentences if s.step is None and s.id not in named),
        early=tuple(s for s in sentences if s.step is not None and s.id in named),
        owed=owed,
        proven=sum(s.id in named for s in sentences),
    )


def describe(report: Report, total: int) -> Iterator[str]:
    """What a person reads, errors last."""
    yield f"behaviour: tests prove {report.proven} of {total} sentences"
    for step, sentences in report.owed.items():
        yield f"  owed by {step} ({len(sentences)}): {' '.join(s.id for s in sentences) or 'nothing'}"
    if report.early:
        yield f"  owed, and named by tests already: {' '.join(s.id for s in report.early)}"
    for mark in report.unknown:
        yield f"ERROR {mark.where}: docs/behaviour.md has no sentence {mark.id}"
    for sentence in report.unproven:
        yield f"ERROR no test names {sentence.id}: {sentence.text}"


def read_marks(root: Path) -> list[Mark]:
    files = sorted((root / "tests").rglob("*.py"))
    return [mark for file in files for mark in parse_marks(file.read_text(), str(file.relative_to(root)))]


def main() -> int:
    root = Path(__file__).resolve().parent.parent
    try:
        sentences = parse_page((root / "docs" / "behaviour.md").read_text())
    except PageError as error:
        print(f"ERROR docs/behaviour.md: {error}")
        return 1
    report = compute_report(sentences, read_marks(root))
    print("\n".join(describe(report, len(sentences))))
    return 1 if report.unknown or report.unproven else 0


if __name__ == "__main__":
    sys.exit(main())
