"""The tools that are built from Go modules: the Kubernetes processes, the cluster program, Helm."""

import re
from collections.abc import Callable
from pathlib import Path

from hack.toolchain.errors import ToolchainError
from hack.toolchain.fingerprint import compute_fingerprint, go_sources
from hack.toolchain.progress import Word, run, say
from hack.toolchain.step import Context, Programs, Step, Task
from hack.toolchain.wheels import go_program

# No C compiler, no other Go, no trace of the directory or the commit: the same sources give the same program.
FLAGS = ("-trimpath", "-buildvcs=false", "-v")
VERSION_PACKAGE = "k8s.io/component-base/version"


def parse_version(go_mod: str, module: str) -> str:
    """The version of a module that a go.mod requires, "v1.35.4"."""
    found = re.search(rf"^\s*{re.escape(module)} (v\d+\.\d+\.\d+)(?: //.*)?$", go_mod, re.MULTILINE)
    if found is None:
        raise ToolchainError(f"go.mod requires no release of {module}")
    return found.group(1)


def build_kube_flags(version: str) -> str:
    """Linker flags that tell the components their version; without the minor one the API server panics."""
    major, minor = version.removeprefix("v").split(".")[:2]
    facts = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    return " ".join(["-s -w", *(f"-X {VERSION_PACKAGE}.{name}={value}" for name, value in facts.items())])


def describe_build(packages: int) -> Callable[[str], str]:
    """A word on how far a `go build -v` is, which prints each package that it compiles."""

    def describe(written: str) -> str:
        lines = written.splitlines()
        loading = sum(line.startswith("go: downloading ") for line in lines)
        compiled = len(lines) - loading
        if compiled == 0:
            return f"{loading} modules downloaded" if loading else ""
        return f"{compiled} of about {packages} packages compiled"

    return describe


def _go_env(context: Context) -> dict[str, str]:
    own = {"GOROOT", "GOBIN", "GOFLAGS", "GOWORK", "GOOS", "GOARCH"}
    env = {name: value for name, value in context.env.items() if name not in own}
    cache = context.layout.cache
    paths = {"GOPATH": f"{cache}/go", "GOCACHE": f"{cache}/go-build"}
    return {**env, **paths, "GOTOOLCHAIN": "local", "CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": "-mod=readonly"}


def _go_build(context: Context, step: str, module: Path, packages: dict[str, str], flags: str, total: int) -> None:
    """Build packages of a module; `packages` maps a program's path to its import path."""
    for output, package in packages.items():
        argv: list[Word] = [go_program(context), "build", *FLAGS, "-ldflags", flags, "-o", output, package]
        log, env = context.layout.log(step), _go_env(context)
        run(step, argv, log=log, env=env, cwd=module, describe=describe_build(total))


def _module(context: Context, name: str) -> Path:
    return context.layout.checkout / "hack" / name


def _inputs(context: Context, module: str, sources: list[Path]) -> str:
    root = _module(context, module)
    files = [root / "go.mod", root / "go.sum", *sources, context.layout.requirements("go")]
    return compute_fingerprint(FLAGS, files, context.layout.checkout)


def _kube_fingerprint(context: Context) -> str:
    return _inputs(context, "devcluster", go_sources(_module(context, "devcluster") / "cmd" / "kube"))


def _build_kube(context: Context, made: Path) -> None:
    module = _module(context, "devcluster")
    flags = build_kube_flags(parse_version((module / "go.mod").read_text(), "k8s.io/kubernetes"))
    _go_build(context, "kube", module, {f"{made}/kube": "./cmd/kube"}, flags, 1950)
    (made / "kubectl").symlink_to("kube")  # it answers to the name it is called by


def _cluster_sources(context: Context) -> list[Path]:
    root = _module(context, "devcluster")
    return go_sources(root / "cmd" / "devcluster", root / "cmd" / "pause", root / "internal")


def _cluster_fingerprint(context: Context) -> str:
    # Standard library only: what the Kubernetes processes require does not touch these programs.
    files = [*_cluster_sources(context), context.layout.requirements("go")]
    return compute_fingerprint(FLAGS, files, context.layout.checkout)


def _build_cluster(context: Context, made: Path) -> None:
    packages = {f"{made}/{name}": f"./cmd/{name}" for name in ("devcluster", "pause")}
    _go_build(context, "devcluster", _module(context, "devcluster"), packages, "-s -w", 250)


def _helm_fingerprint(context: Context) -> str:
    return _inputs(context, "helm", [])


def _build_helm(context: Context, made: Path) -> None:
    module = _module(context, "helm")
    version = parse_version((module / "go.mod").read_text(), "helm.sh/helm/v4")
    flags = f"-s -w -X helm.sh/helm/v4/internal/version.version={version}"
    _go_build(context, "helm", module, {f"{made}/helm": "helm.sh/helm/v4/cmd/helm"}, flags, 1200)


def _check_go(context: Context) -> None:
    """Format, vet and test the Go sources; the packages named here need no module but their own."""
    module, log, env = _module(context, "devcluster"), context.layout.log("gocheck"), _go_env(context)
    log.unlink(missing_ok=True)
    packages: list[Word] = ["./cmd/devcluster", "./cmd/pause", "./internal/...", "./proof/..."]
    gofmt: list[Word] = [go_program(context).with_name("gofmt"), "-l", "cmd", "internal", "proof"]
    # gofmt lists what it would change and is content.
    run(
        "gocheck",
        ["sh", "-c", 'listed=$("$@"); echo "$listed"; test -z "$listed"', "sh", *gofmt],
        log=log,
        env=env,
        cwd=module,
    )
    run("gocheck", [go_program(context), "vet", "-tags", "proof", *packages], log=log, env=env, cwd=module)
    run("gocheck", [go_program(context), "test", "./internal/..."], log=log, env=env, cwd=module)
    say("gocheck", "gofmt, go vet and go test are content")


STEPS: tuple[Step, ...] = (
    Programs(
        "devcluster", ("gotool",), "about a minute", ("devcluster", "pause"), _cluster_fingerprint, _build_cluster
    ),
    Programs("kube", ("gotool",), "about 10 minutes on 2 cores", ("kube", "kubectl"), _kube_fingerprint, _build_kube),
    Programs("helm", ("gotool",), "about 4 minutes on 2 cores", ("helm",), _helm_fingerprint, _build_helm),
    Task("gocheck", ("gotool",), _check_go),
)
