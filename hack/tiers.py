"""`make test`: every tier, fast ones first, end to end last; then one table with the time of each.

The tools that take long to build the first time are built beside the fast tiers, which need none of them. A machine
that cannot hold a cluster runs every other tier and says in its last line what it left out; with CI=true that fails.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLCHAIN = ("python3", "hack/toolchain/toolchain.py")
ALONE = ("lint", "types", "imports", "test-unit")  # need the development environment and nothing else
WITH_TOOLS = ("verify", "test-contract", "test-component")
CLUSTER = "test-e2e"
TOOLS = ("pi", "helm", "kube", "devcluster")
UNABLE = 3  # exit code of our tools on a machine that cannot do it, with the reason on stderr
PREFIX = re.compile(r"^\w+: (this machine cannot hold a cluster: )?")  # who says it, and what we say ourselves
PATIENCE = 30.0  # s between two lines that say what is waited for


@dataclass
class Run:
    """What happened so far: seconds by tier, and why the last tier was left out."""

    seconds: dict[str, float] = field(default_factory=dict)
    failed: str = ""
    left_out: str = ""

    def time(self, name: str, act: Callable[[], bool]) -> bool:
        """Note how long `act` took; False when it, or something before it, failed."""
        if self.failed:
            return False
        begun = time.monotonic()
        if not act():
            self.failed = name
        self.seconds[name] = time.monotonic() - begun
        return not self.failed


def main(env: Mapping[str, str]) -> int:
    log = find_log(env)
    run = Run()
    with log.open("wb") as out:
        tools = subprocess.Popen([*TOOLCHAIN, *TOOLS], cwd=ROOT, stdout=out, stderr=out)
        try:
            _run_tiers(run, tools, log, env)
        finally:
            tools.terminate()
            tools.wait()
    print("\n".join(describe(run, ci=env.get("CI") == "true")), flush=True)
    return decide_exit(run, ci=env.get("CI") == "true")


def find_log(env: Mapping[str, str]) -> Path:
    """Where the building of the tools is noted."""
    log = Path(env["ALINEOD_CACHE"]) / "logs" / "test-tools.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    return log


def _run_tiers(run: Run, tools: subprocess.Popen[bytes], log: Path, env: Mapping[str, str]) -> None:
    for tier in ALONE:
        run.time(tier, lambda tier=tier: make(tier))  # type: ignore[misc]
    run.time("tools", lambda: wait_for_tools(tools, log))
    for tier in WITH_TOOLS:
        run.time(tier, lambda tier=tier: make(tier))  # type: ignore[misc]
    if run.failed:
        return
    run.left_out = find_obstacle(env)
    if not run.left_out:
        run.time(CLUSTER, lambda: make(CLUSTER))


def make(target: str) -> bool:
    print(f"\n== make {target}", flush=True)
    return subprocess.run([os.environ.get("MAKE", "make"), target], cwd=ROOT, check=False).returncode == 0


def wait_for_tools(tools: subprocess.Popen[bytes], log: Path) -> bool:
    """Wait for the tools, saying so; the whole log when they could not be built."""
    while tools.poll() is None:
        print(f"waiting for the tools: {_last_line(log)}", flush=True)
        try:
            tools.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            continue
    if tools.returncode:
        print(log.read_text(errors="replace"), file=sys.stderr, flush=True)
    return tools.returncode == 0


def _last_line(log: Path) -> str:
    return (log.read_text(errors="replace").strip().splitlines() or ["starting"])[-1]


def find_obstacle(env: Mapping[str, str]) -> str:
    """Why this machine cannot hold the development cluster; empty when it can, or when another one is meant."""
    if env.get("CLUSTER", "dev") != "dev":
        return ""
    for command in ([*TOOLCHAIN, "packages"], [str(Path(env["ALINEOD_CACHE"]) / "bin" / "devcluster"), "doctor"]):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode == UNABLE:
            return PREFIX.sub("", " ".join((done.stderr.strip() or done.stdout.strip()).split()))
    return ""


def describe(run: Run, *, ci: bool) -> Sequence[str]:
    """The table, and what a person must know, last."""
    lines = ["", *(f"{name:<16}{seconds:8.1f} s" for name, seconds in run.seconds.items())]
    if run.failed:
        lines.append(f"FAILED: make {run.failed}")
    elif run.left_out:
        note = " With CI=true that is a failure." if ci else ""
        lines.append(f"LEFT OUT: the end-to-end tests, since this machine cannot hold a cluster: {run.left_out}{note}")
    return lines


def decide_exit(run: Run, *, ci: bool) -> int:
    return 1 if run.failed or (run.left_out and ci) else 0


if __name__ == "__main__":
    sys.exit(main(os.environ))
