"""The check of docs/behaviour.md: what it reads from the page and the tests, and what it refuses."""

from pathlib import Path

import pytest

from hack.behaviour import Mark, PageError, Sentence, compute_report, describe, parse_marks, parse_page

PAGE = """## 1. Words
Prose.
- **1.1** A first sentence.
- **1.3** A later one. `owed: control`
## 2. More
- **2.1** Its own count.
"""


def test_reads_ids_text_and_step() -> None:
    assert parse_page(PAGE) == [
        Sentence("1.1", "A first sentence.", None),
        Sentence("1.3", "A later one.", "control"),
        Sentence("2.1", "Its own count.", None),
    ]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("- **1.3** Twice.", "1.3 stands in section 1 after 3"),
        ("- **2.4** Elsewhere.", "2.4 stands in section 1"),
        ("- **1.4** Owed by nobody we know. `owed: someday`", "'someday'; the steps are ledger, recovery"),
        ("- no id", "not of the form"),
    ],
)
def test_refuses_a_page_in_words(line: str, sentence: str) -> None:
    with pytest.raises(PageError, match=sentence):
        parse_page(PAGE.replace("## 2. More\n", f"{line}\n## 2. More\n"))


def test_finds_marks_wherever_they_stand() -> None:
    source = """
import pytest
pytestmark = pytest.mark.behaviour("1.1")
@pytest.mark.behaviour("1.3", "2.1")
async def test_it(): ...
@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.behaviour("9.9"))])
def test_that(x): ...
"""
    marks = set(parse_marks(source, "tests/a.py"))
    assert marks == {Mark("1.1", "tests/a.py:3"), Mark("1.3", "tests/a.py:4"), Mark("2.1", "tests/a.py:4"),
                     Mark("9.9", "tests/a.py:6")}  # fmt: skip


def test_tells_wrong_unproven_owed_and_early_apart() -> None:
    report = compute_report(parse_page(PAGE), [Mark("2.1", "t:1"), Mark("1.3", "t:2"), Mark("7.7", "t:3")])
    lines = list(describe(report, 3))
    assert lines[0] == "behaviour: tests prove 2 of 3 sentences"
    assert any(line.endswith("named by tests already: 1.3") for line in lines)
    assert "ERROR t:3: docs/behaviour.md has no sentence 7.7" in lines
    assert "ERROR no test names 1.1: A first sentence." in lines
    assert report.owed["control"] == ()


def test_the_page_of_this_checkout_reads() -> None:
    page = (Path(__file__).parents[3] / "docs" / "behaviour.md").read_text()
    assert len(parse_page(page)) > 150
