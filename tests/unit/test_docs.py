"""The pages for people: what they point at is there, and what they show can be used."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from alineod.crd.parse import parse_swarm

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)")
YAML = re.compile(r"```yaml\n(.*?)```", re.DOTALL)
METRIC = re.compile(r"\balineod_[a-z_]+")
TARGET = re.compile(r"^([a-z0-9-]+):.*##", re.MULTILINE)


def _names(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=_names)
def test_links_lead_somewhere(page: Path) -> None:
    broken = [link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()]
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=_names)
def test_every_target_that_is_named_exists(page: Path) -> None:
    targets = set(TARGET.findall((ROOT / "Makefile").read_text()))
    code = re.findall(r"```sh\n(.*?)```|`([^`\n]+)`", page.read_text(), re.DOTALL)
    calls = re.findall(r"\bmake ((?:-s |[a-z0-9-]+ ?)+)", "\n".join("\n".join(pair) for pair in code))
    named = {word for call in calls for word in call.split()} - {"-s"}
    assert named <= targets, f"{page.name} names targets that the Makefile lacks"


@pytest.mark.parametrize("page", PAGES, ids=_names)
def test_every_metric_that_is_named_exists(page: Path) -> None:
    known = set(METRIC.findall((ROOT / "docs/reference/metrics.md").read_text()))
    named = {re.sub("_(bucket|count|sum)$", "", name) for name in METRIC.findall(page.read_text())}
    assert named <= known, f"{page.name} names metrics that the operator does not have"


def _swarms() -> Iterator[tuple[str, dict[str, object]]]:
    for page in PAGES:
        for block in YAML.findall(page.read_text()):
            for document in yaml.safe_load_all(block):
                if isinstance(document, dict) and document.get("kind") == "Swarm":
                    yield f"{_names(page)}:{document['metadata']['name']}", document


@pytest.mark.parametrize(("where", "swarm"), list(_swarms()), ids=lambda value: value if isinstance(value, str) else "")
def test_every_swarm_that_is_shown_can_be_read(where: str, swarm: dict[str, object]) -> None:
    assert parse_swarm(swarm).spec.agents


def test_the_help_lists_every_target_once() -> None:
    text = (ROOT / "Makefile").read_text()
    targets = TARGET.findall(text)
    assert len(targets) == len(set(targets))
    phony = set(" ".join(re.findall(r"^\.PHONY: (.*)$", text, re.MULTILINE)).split())
    assert set(targets) <= phony


def test_every_decision_is_in_the_index() -> None:
    index = (ROOT / "docs/index.md").read_text()
    assert [page.name for page in sorted((ROOT / "docs/decisions").glob("*.md")) if page.name not in index] == []
