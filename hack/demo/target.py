"""Which cluster is meant, and no other: every command to it names its kubeconfig and its context.

CLUSTER=dev      (default) the development cluster of this checkout
CLUSTER=kind     the kind cluster named by KIND_CLUSTER (default: kind)
CLUSTER=current  whatever context is current in the person's kubeconfig
"""

import json
import os
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from hack.demo.run import DemoError, Ran, run

ROOT = Path(__file__).resolve().parents[2]
FAILED, CANNOT_HOLD = 1, 3  # exit codes; the second, devcluster's too, on a machine that cannot hold a cluster
EXPORT = re.compile(r"^export (\w+)=(['\"]?)(.*)\2$", re.MULTILINE)


class Unable(DemoError):
    """This machine cannot hold the cluster; the message says what it lacks."""


def explain(error: DemoError, what: str) -> int:
    """Say on stderr why `what` goes no further; returns the exit code."""
    if isinstance(error, Unable):
        print(error, file=sys.stderr)
        return CANNOT_HOLD
    print(f"{what} stops here: {error}", file=sys.stderr)
    return FAILED


class Kind(StrEnum):
    DEV = "dev"
    KIND = "kind"
    CURRENT = "current"


@dataclass(frozen=True)
class Target:
    """One context of one kubeconfig. `audit_log` is where its API server notes every write, where we can read it."""

    kind: Kind
    kubeconfig: str
    context: str
    tools: Path
    audit_log: Path | None = None

    def kubectl(self, *words: str, stdin: str | None = None, check: bool = True, timeout: float = 600.0) -> Ran:
        return run([*self.build_kubectl(), *words], stdin=stdin, check=check, timeout=timeout)

    def helm(self, *words: str, check: bool = True) -> Ran:
        where = [f"--kubeconfig={self.kubeconfig}", f"--kube-context={self.context}"]
        return run([find_tool(self.tools, "helm"), *where, *words], check=check)

    def build_kubectl(self) -> list[str]:
        """The command up to its verb."""
        where = [f"--kubeconfig={self.kubeconfig}", f"--context={self.context}"]
        return [find_tool(self.tools, "kubectl"), *where]


def find_cache(env: Mapping[str, str]) -> Path:
    """Where what is slow to make is kept, outside the checkout."""
    default = Path(env.get("XDG_CACHE_HOME") or Path(env.get("HOME", "/root")) / ".cache") / "alineod"
    return Path(env.get("ALINEOD_CACHE") or default)


def find_tool(tools: Path, name: str) -> str:
    """The program of our toolchain, or the one on the path."""
    ours = tools / name
    found = str(ours) if ours.exists() else shutil.which(name)
    if found is None:
        raise DemoError(f"{name} is not there: `make bootstrap` builds it, `make doctor` says what is missing")
    return found


def parse_kind(env: Mapping[str, str]) -> Kind:
    try:
        return Kind(env.get("CLUSTER") or Kind.DEV)
    except ValueError:
        raise DemoError(f"CLUSTER={env['CLUSTER']} is not known: use {', '.join(Kind)}") from None


def find_target(env: Mapping[str, str] = os.environ) -> Target:
    """The cluster that the environment names. It is not started here."""
    kind, tools = parse_kind(env), find_cache(env) / "bin"
    match kind:
        case Kind.DEV:
            return _find_dev(env, tools)
        case Kind.KIND:
            name = f"kind-{env.get('KIND_CLUSTER') or 'kind'}"
            return Target(kind, _own_kubeconfig(env), name, tools)
        case Kind.CURRENT:
            kubectl = [find_tool(tools, "kubectl"), f"--kubeconfig={_own_kubeconfig(env)}"]
            return Target(kind, _own_kubeconfig(env), run([*kubectl, "config", "current-context"]).out.strip(), tools)


def have_cluster(env: Mapping[str, str] = os.environ, *, show: bool = False) -> Target:
    """The cluster that the environment names, started when it is our own and not up; `show` its progress on stdout.

    Raises:
        Unable: this machine cannot hold one.
    """
    if parse_kind(env) is Kind.DEV:
        ran = devcluster(find_cache(env) / "bin", "up", check=False, show=show)
        if ran.code == CANNOT_HOLD:
            raise Unable(ran.words)
        if ran.code:
            raise DemoError(f"the development cluster did not come up: {ran.words}")
    target = find_target(env)
    check_reachable(target)
    return target


def check_reachable(target: Target) -> None:
    """Raises:
    DemoError: the cluster does not answer.
    """
    ran = target.kubectl("get", "--raw", "/readyz", check=False, timeout=30)
    if ran.code:
        raise DemoError(f"the cluster of the context {target.context} does not answer: {ran.words}")


def _own_kubeconfig(env: Mapping[str, str]) -> str:
    return env.get("KUBECONFIG") or str(Path(env.get("HOME", "/root")) / ".kube" / "config")


def _find_dev(env: Mapping[str, str], tools: Path) -> Target:
    exports = read_exports(devcluster(tools, "env").out)
    kubeconfig = Path(exports.get("KUBECONFIG", ""))
    if not kubeconfig.is_file():
        raise DemoError("the development cluster is not there: `make cluster-up` starts it")
    config = json.loads(
        run([find_tool(tools, "kubectl"), f"--kubeconfig={kubeconfig}", "config", "view", "-o", "json"]).out
    )
    return Target(
        Kind.DEV, str(kubeconfig), config["current-context"], tools, kubeconfig.parent / "log" / "audit.jsonl"
    )


def devcluster(tools: Path, *words: str, check: bool = True, show: bool = False) -> Ran:
    """Run our own cluster's program for the cluster of this checkout, or for DEVCLUSTER where that is set."""
    verb, *rest = words
    name = [f"--name={os.environ['DEVCLUSTER']}"] if os.environ.get("DEVCLUSTER") else []
    return run([find_tool(tools, "devcluster"), verb, *name, *rest], cwd=ROOT, check=check, show=show)


def read_exports(text: str) -> dict[str, str]:
    """The variables that lines such as `export NAME=value` set."""
    return {name: value for name, _, value in EXPORT.findall(text)}
