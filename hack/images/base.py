"""The base image for machines without a registry: a minimal Debian 12 by debootstrap, from the machine's own mirror."""

import shutil
import tempfile
from pathlib import Path

from hack.images.lent import SUITE, TARGETS_FORMAT
from hack.images.plan import REGISTRY, compute_fingerprint
from hack.images.run import read_output, run, step

# Left out of every package, now and when more are installed on top.
EXCLUDES = """path-exclude=/usr/share/doc/*
path-include=/usr/share/doc/*/copyright
path-exclude=/usr/share/man/*
path-exclude=/usr/share/info/*
path-exclude=/usr/share/locale/*
path-exclude=/usr/share/lintian/*
"""
NO_INDEX_LEFT = 'Acquire::Languages "none";\nAPT::Install-Recommends "false";\n'
PRUNED = ("usr/share/man", "usr/share/info", "usr/share/locale", "usr/share/lintian", "var/lib/apt/lists",
          "var/cache/apt", "var/cache/debconf", "var/cache/ldconfig", "var/log")  # fmt: skip
RECIPE = "1"  # raise it to have every machine build its base anew


def base_ref() -> str:
    recipe = "".join([RECIPE, SUITE, EXCLUDES, NO_INDEX_LEFT, *PRUNED])
    return f"{REGISTRY}/base:{compute_fingerprint([('recipe', recipe.encode())])}"


def build_rootfs(archive: Path, log: Path) -> None:
    """Write the root file system as a tar to `archive`. Needs root and debootstrap; takes half a minute or so."""
    root = Path(tempfile.mkdtemp(prefix="base-", dir=archive.parent))
    partial = archive.with_suffix(".partial")
    try:
        with step(f"a minimal Debian {SUITE} (debootstrap)"):
            run(["debootstrap", "--variant=minbase", SUITE, str(root / "fs"), *find_mirror()], log)
            prune(root / "fs")
            run(["tar", "-C", str(root / "fs"), "--numeric-owner", "--exclude=./dev/*", "-cf", str(partial), "."], log)
        partial.rename(archive)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def find_mirror() -> list[str]:
    """The Debian mirror this machine's apt uses; nothing where that is no Debian 12: debootstrap knows one."""
    for line in read_output(["apt-get", "indextargets", "--format", TARGETS_FORMAT]).splitlines():
        created_by, uri, release, component, origin = (line.split("|") + [""] * 5)[:5]
        if (created_by, release, component, origin) == ("Packages", SUITE, "main", "Debian"):
            return [uri]
    return []


def prune(root: Path) -> None:
    """Take out what no image needs: indexes, caches, logs, manuals, translations and the traces of this machine."""
    for folder in PRUNED:
        for entry in (root / folder).iterdir():
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
    for page in (root / "usr/share/doc").rglob("*"):
        if page.name != "copyright" and not page.is_dir():
            page.unlink()
    (root / "var/lib/apt/lists/partial").mkdir(parents=True, exist_ok=True)
    (root / "var/cache/apt/archives/partial").mkdir(parents=True, exist_ok=True)
    (root / "etc/dpkg/dpkg.cfg.d/slim").write_text(EXCLUDES)
    (root / "etc/apt/apt.conf.d/slim").write_text(NO_INDEX_LEFT)
    (root / "etc/apt/sources.list").write_text("")
    for name in ("etc/resolv.conf", "etc/hostname", "etc/machine-id"):
        (root / name).unlink(missing_ok=True)
    (root / "etc/machine-id").touch()
