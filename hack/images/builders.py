"""What builds: buildah, which needs no daemon and no registry, or docker and podman where a person has them.

Both turn a target of the Dockerfile into a named image, and that into an archive.
"""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hack.images.archive import write_archive
from hack.images.base import base_ref, build_rootfs
from hack.images.plan import Image, compute_fingerprint
from hack.images.run import read_output, run, step

PUBLIC_BASE = "docker.io/library/debian:bookworm-slim"
RECIPE = "hack/images/with-host.sh"  # mounted, not copied: a builder does not see by itself that it changed


class Builder(Protocol):
    """Builds in one place and keeps what it built, so that the next time is short."""

    @property
    def base(self) -> str:
        """The image that every target stands on."""

    def build(self, image: Image, context: Path, secrets: Mapping[str, Path]) -> None:
        """Have `image` built from `context`, a folder with the Dockerfile and what it copies."""

    def pack(self, image: Image, archive: Path) -> None:
        """Write `image` to an archive that a node can import."""


@dataclass(frozen=True)
class Engine:
    """docker or podman: they have their own store, and pull the public base."""

    tool: str
    log: Path
    base: str = PUBLIC_BASE

    def build(self, image: Image, context: Path, secrets: Mapping[str, Path]) -> None:
        run([self.tool, "build", *_build_flags(image, self.base, context, secrets), "."], self.log, cwd=context)

    def pack(self, image: Image, archive: Path) -> None:
        run([self.tool, "save", "--output", str(archive), image.ref], self.log)


@dataclass(frozen=True)
class Buildah:
    """Chroots instead of containers, a store below `home`, and a base of our own unless another is named."""

    home: Path
    log: Path
    base: str

    def build(self, image: Image, context: Path, secrets: Mapping[str, Path]) -> None:
        self._have_base()
        flags = ["--isolation", "chroot", "--network", "host", "--layers", "--identity-label=false"]
        command = [*self._buildah, "bud", *flags, *_build_flags(image, self.base, context, secrets), "."]
        run(command, self.log, cwd=context)

    def pack(self, image: Image, archive: Path) -> None:
        with tempfile.TemporaryDirectory(prefix="export-", dir=self.home) as folder:
            run([*self._buildah, "push", "--disable-compression", image.ref, f"dir:{folder}"], self.log)
            write_archive(image.ref, Path(folder), archive)

    @property
    def _buildah(self) -> list[str]:
        stores = ["--root", str(self.home / "storage"), "--runroot", str(self.home / "run")]
        return ["buildah", *stores, "--storage-driver", "overlay"]

    def _have_base(self) -> None:
        if self.base != base_ref() or read_output([*self._buildah, "images", "--quiet", self.base]):
            return
        rootfs = self.home / f"{self.base.replace('/', '_')}.tar"
        if not rootfs.exists():
            build_rootfs(rootfs, self.log)
        with step("the base image"):
            name = f"base-{self.base.rpartition(':')[2]}"
            read_output([*self._buildah, "rm", name])  # what a build that was killed left behind
            run([*self._buildah, "from", "--name", name, "scratch"], self.log)
            run([*self._buildah, "add", "--quiet", name, str(rootfs), "/"], self.log)
            run([*self._buildah, "config", "--cmd", "bash", name], self.log)
            run([*self._buildah, "commit", "--rm", "--quiet", name, self.base], self.log)


def _build_flags(image: Image, base: str, context: Path, secrets: Mapping[str, Path]) -> list[str]:
    recipe = compute_fingerprint([(RECIPE, (context / RECIPE).read_bytes())])
    lent = [word for name, path in secrets.items() for word in ("--secret", f"id={name},src={path}")]
    arguments = ["--build-arg", f"BASE={base}", "--build-arg", f"RECIPE={recipe}"]
    return ["--target", image.target, "--tag", image.ref, *arguments, *lent]
