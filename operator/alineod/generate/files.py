"""All generated files at once: built in memory, then written, or compared with what is there."""

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path

from alineod.generate.crds import build_crd_files
from alineod.generate.manifest import build_manifest_file
from alineod.generate.policies import build_policy_files
from alineod.generate.reference import build_reference_files
from alineod.generate.roles import build_role_files


def build_files(root: Path, helm: str) -> dict[str, str]:
    """Contents by path below `root`, the repository."""
    files = {**build_crd_files(), **build_role_files(), **build_policy_files()}
    return {**files, **build_reference_files(root), **build_manifest_file(root, files, helm)}


def write_files(root: Path, files: Mapping[str, str]) -> list[str]:
    """Write what differs; the paths that were written."""
    changed = [path for path, text in files.items() if _read(root / path) != text]
    for path in changed:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(files[path])
    return changed


def compare_files(root: Path, files: Mapping[str, str]) -> Iterator[str]:
    """Lines of a unified diff from what is there to what should be."""
    for path, text in files.items():
        old = _read(root / path)
        yield from difflib.unified_diff(old.splitlines(), text.splitlines(), path, f"{path} (generated)", lineterm="")


def _read(path: Path) -> str:
    return path.read_text() if path.is_file() else ""
