"""Which paths stay behind: package caches by default, and what a release or a fork adds. Pure."""

import re
from collections.abc import Iterable, Mapping

from alineod.checkpoints.archive.format import HOME, ROOTS, WORKSPACE

# Relative ones lie below home. `**/` means at any depth; `*` stands within one component.
DEFAULT = (
    ".cache",
    ".npm",
    ".cargo/registry",
    "go/pkg",
    ".local/share/uv",
    ".pi/agent/*.lock",
    "**/node_modules/.cache",
    "/workspace/**/node_modules/.cache",
)
_WORKSPACE = "/workspace/"


class Excludes:
    """Answers for each path whether it stays behind, with everything below it."""

    def __init__(self, patterns: Mapping[bytes, re.Pattern[bytes]]) -> None:
        self._patterns = patterns

    def match(self, path: bytes) -> bool:
        """Whether a member's path (`home/...`, `workspace/...`) is excluded; the roots themselves never are."""
        root, _, below = path.partition(b"/")
        return bool(below) and self._patterns[root].fullmatch(below) is not None


def build_excludes(extra: Iterable[str] = ()) -> Excludes:
    """Excludes of the defaults and of `extra`: below home, or below `/workspace/` where they say so."""
    below: dict[bytes, list[str]] = {root: [] for root in ROOTS}
    for pattern in (*DEFAULT, *extra):
        root = WORKSPACE if pattern.startswith(_WORKSPACE) else HOME
        below[root].append(_translate(pattern.removeprefix(_WORKSPACE).strip("/")))
    return Excludes({root: re.compile(_encode("|".join(below[root])), re.DOTALL) for root in ROOTS})


def _encode(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


def _translate(pattern: str) -> str:
    """One pattern as a regular expression over a whole relative path."""
    below = pattern.removeprefix("**/")
    names = re.escape(below).replace(r"\*", "[^/]*").replace(r"\?", "[^/]")
    return names if below == pattern else "(?:.*/)?" + names
