"""What a tool is made from, as a short word: the same inputs give the same word on every machine."""

import hashlib
from collections.abc import Iterable
from pathlib import Path


def compute_fingerprint(facts: Iterable[str], files: Iterable[Path], root: Path) -> str:
    """Hash words and the contents of files; a file counts under its path from root."""
    digest = hashlib.sha256()
    for fact in facts:
        digest.update(f"fact {fact}\n".encode())
    for path in sorted(files):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"file {path.relative_to(root)} {content}\n".encode())
    return digest.hexdigest()[:12]


def go_sources(*directories: Path) -> list[Path]:
    """The Go files that end up in a program: tests do not."""
    found = [path for directory in directories for path in directory.rglob("*.go")]
    return [path for path in found if not path.name.endswith("_test.go")]
