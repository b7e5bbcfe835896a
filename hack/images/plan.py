"""What is built from what: targets, their inputs, and the fingerprint that is their tag.

The fingerprint is computed from the contents of the files that go into an image, so that a changed image has a new
name and pods pick it up, and an unchanged one is never built again. Decides only; builds nothing.
"""

import hashlib
import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hack.images.dockerfile import find_inputs

REGISTRY = "localhost/alineod"
ALWAYS = ("Dockerfile", ".dockerignore")
TARGETS = ("operator", "sandbox", "agent-pi", "devtools")


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


def plan_images(root: Path, base: str) -> list[Image]:
    """The images of the checkout at `root` as its files are now, on top of `base`."""
    files, dockerfile = read_file_list(root), (root / "Dockerfile").read_text()
    inputs = {target: find_inputs(dockerfile, target) for target in TARGETS}
    return [Image(target, _fingerprint_of(root, files, inputs[target], base)) for target in TARGETS]


def read_file_list(root: Path) -> list[str]:
    """Files of the checkout, tracked and new, without ignored ones; every file where there is no git."""
    git = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(git, check=True, capture_output=True, text=True).stdout.split("\0")
    except (OSError, subprocess.CalledProcessError):
        found = (os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names)  # noqa: PTH118
        listed = [os.path.relpath(path, root) for path in found if "__pycache__" not in path]
    return sorted(name for name in set(listed) if name and (root / name).is_file())


def _fingerprint_of(root: Path, files: Iterable[str], inputs: Iterable[str], base: str) -> str:
    chosen = [name for name in files if _is_input(name, (*ALWAYS, *inputs))]
    return compute_fingerprint([("base", base.encode()), *((name, (root / name).read_bytes()) for name in chosen)])


def _is_input(name: str, inputs: Iterable[str]) -> bool:
    return any(name == path or name.startswith(f"{path}/") for path in inputs)
