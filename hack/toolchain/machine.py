"""What the machine itself must bring, and what of it is missing. Judging is pure; reading and installing are not."""

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hack.toolchain.errors import UnableError
from hack.toolchain.layout import Layout
from hack.toolchain.progress import run, say
from hack.toolchain.step import Context, Task

GIB = 1 << 30
# The caches of Go and of the environments, the images and the room to make them in.
DISK_COLD, DISK_WARM = 14 * GIB, 3 * GIB

# Debian packages by a program or file of theirs. What is there is not asked for again: on a machine with another
# container engine the package of the same program would replace that engine's.
PACKAGES: Mapping[str, str] = {
    "containerd": "containerd",
    "runc": "runc",
    "/usr/lib/cni/ptp": "containernetworking-plugins",
    "ip": "iproute2",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "buildah": "buildah",
    "debootstrap": "debootstrap",
    "git": "git",
}
SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Facts:
    """What was seen of the machine; disk in bytes."""

    system: str
    python: str
    root: bool
    pip: bool
    uv: bool
    apt: bool
    missing_packages: tuple[str, ...]
    free_disk: int
    built: bool


def judge(facts: Facts, cache: Path) -> list[str]:
    """A sentence for each thing that is missing, with what to do about it; none means ready."""
    sentences = []
    if facts.system != "Linux x86_64":
        sentences.append(f"This machine is {facts.system}: the tools are made for Linux x86_64. Use such a machine.")
    if not facts.pip and not facts.uv:
        sentences.append(f"{facts.python} has no pip. Run `apt-get install --no-install-recommends python3-pip`.")
    sentences += _judge_packages(facts)
    needed = DISK_WARM if facts.built else DISK_COLD
    if facts.free_disk < needed:
        free, wanted = facts.free_disk / GIB, needed / GIB
        sentences.append(
            f"Only {free:.1f} GiB are free in {cache}, {wanted:.0f} GiB are needed. "
            "Free some, or set ALINEOD_CACHE to a directory on a larger disk."
        )
    return sentences


def _judge_packages(facts: Facts) -> list[str]:
    if not facts.missing_packages:
        return []
    names = " ".join(facts.missing_packages)
    if not facts.apt:
        return [
            f"Missing: {names}, by the names of Debian's packages; this machine has no apt-get. Install them its way."
        ]
    command = f"apt-get install --no-install-recommends {names}"
    if not facts.root:
        return [f"Debian packages are missing and this user is not root. Run `{command}` as root."]
    return [f"Debian packages are missing: {names}. `toolchain.py packages` installs them."]


def read_facts(layout: Layout) -> Facts:
    """Look at the machine; nothing is changed but that the cache's directory is made."""
    layout.cache.mkdir(parents=True, exist_ok=True)
    return Facts(
        system=f"{platform.system()} {platform.machine()}",
        python=sys.executable,
        root=os.geteuid() == 0,
        pip=importlib.util.find_spec("pip") is not None,
        uv=layout.link("uv").exists(),
        apt=shutil.which("apt-get", path=SEARCH_PATH) is not None,
        missing_packages=tuple(package for probe, package in PACKAGES.items() if not _present(probe)),
        free_disk=shutil.disk_usage(layout.cache).free,
        built=(layout.bin / "kube").exists(),
    )


def _present(probe: str) -> bool:
    return Path(probe).exists() if probe.startswith("/") else shutil.which(probe, path=SEARCH_PATH) is not None


def _install_packages(context: Context) -> None:
    facts = read_facts(context.layout)
    if not facts.missing_packages:
        say("packages", "installed")
        return
    if not facts.root or not facts.apt:
        raise UnableError(_judge_packages(facts)[0])
    say("packages", f"installing {' '.join(facts.missing_packages)}; less than a minute")
    log, env = context.layout.log("packages"), {**context.env, "DEBIAN_FRONTEND": "noninteractive"}
    log.unlink(missing_ok=True)
    apt = ["apt-get", "-o", "DPkg::Lock::Timeout=300", "-y"]
    run("packages", [*apt, "update"], log=log, env=env)
    run("packages", [*apt, "install", "--no-install-recommends", *facts.missing_packages], log=log, env=env)
    say("packages", "done")


def _examine(context: Context) -> None:
    sentences = judge(read_facts(context.layout), context.layout.cache)
    cluster = context.layout.bin / "devcluster"
    if not sentences and cluster.exists():
        answer = subprocess.run(
            [cluster, "doctor"],
            cwd=context.layout.checkout,
            env=context.env,
            capture_output=True,
            text=True,
            check=False,
        )
        if answer.returncode != 0:
            raise UnableError(answer.stderr.strip())
        say("doctor", answer.stdout.strip())
    elif not sentences:
        say("doctor", "what a cluster needs of the kernel is examined once `toolchain.py devcluster` is built")
    if sentences:
        raise UnableError("this machine is not ready:\n  " + "\n  ".join(sentences))
    say("doctor", "nothing is missing")


STEPS = (Task("packages", (), _install_packages), Task("doctor", (), _examine))
