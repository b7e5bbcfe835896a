"""What is built from what: targets, their inputs, and the fingerprint that is their tag.

The fingerprint is computed from the contents of the files that go into an image, so that a changed image has a new
name and pods pick it up, and an unchanged one is never built again. Files are read once: an image is built from the
very bytes that its name was computed from, whoever edits meanwhile. Builds nothing itself.
"""

import hashlib
import os
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from hack.images.dockerfile import find_inputs

REGISTRY = "localhost/alineod"
DOCKERFILE = "Dockerfile"
TARGETS = ("operator", "sandbox", "agent-pi", "devtools")
AGE = 946684800  # of every file in an image: the first second of 2000
IGNORED = frozenset({"__pycache__", "node_modules", ".git", ".mypy_cache", ".ruff_cache"})


@dataclass(frozen=True)
class Image:
    """One image to have: `ref` is its full name with the fingerprint as tag."""

    target: str
    fingerprint: str

    @property
    def ref(self) -> str:
        return f"{REGISTRY}/{self.target}:{self.fingerprint}"

    @property
    def archive(self) -> str:
        """File name of its archive."""
        return f"{self.target}-{self.fingerprint}.tar"


def compute_fingerprint(parts: Iterable[tuple[str, bytes]]) -> str:
    """12 hex digits over names and contents."""
    digest = hashlib.sha256()
    for name, content in parts:
        digest.update(f"{len(name)} {len(content)} {name}".encode())
        digest.update(content)
    return digest.hexdigest()[:12]


def read_snapshot(root: Path) -> dict[str, bytes]:
    """The contents of every file that some image is made of, by path."""
    dockerfile = (root / DOCKERFILE).read_text()
    inputs = {path for target in TARGETS for path in find_inputs(dockerfile, target)}
    return {name: (root / name).read_bytes() for name in read_file_list(root) if _is_input(name, (DOCKERFILE, *inputs))}


def plan_images(snapshot: Mapping[str, bytes], base: str) -> list[Image]:
    """The images of a checkout on top of `base`."""
    dockerfile = snapshot[DOCKERFILE].decode()
    return [Image(target, _fingerprint_of(snapshot, find_inputs(dockerfile, target), base)) for target in TARGETS]


def write_context(snapshot: Mapping[str, bytes], folder: Path) -> None:
    """Lay the files out for a builder: all of the same age, so that layers are found again from another checkout."""
    for name, content in snapshot.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    for found in (*folder.rglob("*"), folder):
        found.chmod(0o755 if found.is_dir() else 0o644)
        os.utime(found, (AGE, AGE))


def read_file_list(root: Path) -> list[str]:
    """Files of the checkout, tracked and new, without ignored ones; every file where there is no git."""
    git = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(git, check=True, capture_output=True, text=True).stdout.split("\0")
    except (OSError, subprocess.CalledProcessError):
        found = (path.relative_to(root) for path in root.rglob("*"))
        listed = [str(path) for path in found if not IGNORED.intersection(path.parts)]
    return sorted(name for name in set(listed) if name and (root / name).is_file())


def _fingerprint_of(snapshot: Mapping[str, bytes], inputs: Iterable[str], base: str) -> str:
    chosen = ((name, content) for name, content in snapshot.items() if _is_input(name, (DOCKERFILE, *inputs)))
    return compute_fingerprint([("base", base.encode()), *chosen])


def _is_input(name: str, inputs: Iterable[str]) -> bool:
    return any(name == path or name.startswith(f"{path}/") for path in inputs)
