"""`python3 -m hack.images build|refs [TARGET...]`: have the images of this checkout, and say what they are called.

Prints one line of JSON on stdout: `{"images": {target: ref}, "archives": [path, ...]}`; the rest goes to stderr.
"""

import argparse
import fcntl
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from hack.images.base import base_ref
from hack.images.builders import PUBLIC_BASE, Buildah, Builder, Engine
from hack.images.lent import write_secrets
from hack.images.plan import TARGETS, Image, plan_images, read_snapshot, write_context
from hack.images.run import BuildError, say, step

ROOT = Path(__file__).resolve().parents[2]
KEPT_ARCHIVES = 4  # of each target
LEFTOVERS = ("build-*/", "export-*", "base-*", "*.partial")


def find_cache(env: Mapping[str, str]) -> Path:
    """Where images live: outside the checkout, shared by all checkouts."""
    default = Path(env.get("XDG_CACHE_HOME") or Path(env.get("HOME", "/root")) / ".cache") / "alineod"
    return Path(env.get("ALINEOD_CACHE") or default) / "images"


def choose_builder(home: Path, env: Mapping[str, str]) -> Builder:
    tool, log = env.get("CONTAINER_TOOL") or "buildah", home / "build.log"
    if tool in {"docker", "podman"}:
        return Engine(tool, log, env.get("BASE") or PUBLIC_BASE)
    if tool == "buildah":
        return Buildah(home, log, env.get("BASE") or base_ref())
    raise BuildError(f"CONTAINER_TOOL={tool} is not known: leave it out for buildah, or say docker or podman")


def build(builder: Builder, image: Image, context: Path, archive: Path, secrets: Mapping[str, Path]) -> None:
    """Have `image` in `archive`. One that is there already is what we want: its name says so."""
    if archive.exists():
        say(f"images: {image.ref} is up to date")
        os.utime(archive)
        return
    with step(f"building {image.ref}"):
        builder.build(image, context, secrets)
    partial = archive.with_suffix(".partial")
    with step(f"packing {image.ref}"):
        builder.pack(image, partial)
        partial.rename(archive)
    say(f"images: {archive} has {archive.stat().st_size / 1e6:.0f} MB")
    prune(archive.parent, image.target)


def prune(folder: Path, target: str) -> None:
    """Keep the target's archives that were used last."""
    archives = sorted(folder.glob(f"{target}-*.tar"), key=lambda path: path.stat().st_mtime)
    for old in archives[:-KEPT_ARCHIVES]:
        old.unlink()


@contextmanager
def lock(home: Path) -> Iterator[None]:
    """One build at a time in one cache; whoever has the lock sweeps up after a build that was killed."""
    with (home / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("images: another build is at work, waiting for it ...")
            fcntl.flock(file, fcntl.LOCK_EX)
        for left in (found for pattern in LEFTOVERS for found in home.glob(pattern)):
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        yield


def main(arguments: Sequence[str], env: Mapping[str, str]) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m hack.images", description=__doc__)
    parser.add_argument("command", choices=["build", "refs"], help="build them, or only say what they would be called")
    parser.add_argument("targets", nargs="*", default=list(TARGETS), help=f"default: {' '.join(TARGETS)}")
    options = parser.parse_args(arguments)
    home = find_cache(env)
    home.mkdir(parents=True, exist_ok=True)
    try:
        builder, snapshot = choose_builder(home, env), read_snapshot(ROOT)
        images = [image for image in plan_images(snapshot, builder.base) if image.target in options.targets]
        archives = {image: home / image.archive for image in images}
        if options.command == "build":
            with lock(home), tempfile.TemporaryDirectory(prefix="build-", dir=home) as folder:
                context, secrets = Path(folder) / "context", write_secrets(Path(folder) / "lent", env)
                write_context(snapshot, context)
                for image, archive in archives.items():
                    build(builder, image, context, archive, secrets)
    except BuildError as error:
        say(f"images: {error}")
        return 1
    refs = {image.target: image.ref for image in images}
    print(json.dumps({"images": refs, "archives": [str(path) for path in archives.values()]}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
