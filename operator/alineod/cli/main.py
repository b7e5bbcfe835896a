"""`alineod SUBCOMMAND`: one program, one subcommand per process.

Imports the one module that is needed and nothing else: a bridge must not pay for the operator's libraries, and its
image does not even have them.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module

from alineod.errors import AlineoError

FAILED, USAGE = 1, 2


@dataclass(frozen=True)
class Command:
    """A subcommand: the module whose `main(env)` runs it, or `main(arguments, env)` if it takes arguments."""

    module: str
    summary: str
    takes_arguments: bool = False


COMMANDS: Mapping[str, Command] = {
    "operator": Command("alineod.app.process", "the control plane; settings come from the environment"),
    "bridge": Command("alineod.bridge.main", "PID 1 of an agent's container: drives its harness and serves turns"),
    "checkpointer": Command("alineod.checkpointer.main", "sidecar of a sandbox: packs the agent's files, uploads them"),
    "restore-sandbox": Command("alineod.checkpointer.restore", "init container of a sandbox: unpacks its files"),
    "litestream": Command("alineod.ledger.sidecar", "sidecar of the operator: replicates the ledger to the bucket"),
    "ledger": Command("alineod.ledger.cli", "looks into a ledger", takes_arguments=True),
}


def build_usage() -> str:
    lines = (f"  {name:<16} {command.summary}" for name, command in COMMANDS.items())
    return "\n".join(["usage: alineod SUBCOMMAND", "", *lines])


def main(arguments: Sequence[str] | None = None, env: Mapping[str, str] = os.environ) -> int:
    """Run one subcommand. The exit code is its own; 1 after a failure told in a sentence, 2 after a wrong call."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words and words[0] in {"-h", "--help", "help"}:
        print(build_usage())
        return 0
    command = COMMANDS.get(words[0]) if words else None
    if command is None:
        said = f"there is no subcommand {words[0]!r}" if words else "a subcommand is missing"
        return _complain(f"{said}: use one of {', '.join(COMMANDS)}", USAGE)
    if len(words) > 1 and not command.takes_arguments:
        return _complain(f"{words[0]} takes no arguments but got {words[1]!r}: it is set by the environment", USAGE)
    return _run(words, command, env)


def _run(words: list[str], command: Command, env: Mapping[str, str]) -> int:
    try:
        process = import_module(command.module)
    except ModuleNotFoundError as error:
        return _complain(f"{words[0]} cannot run here, {error.name} is not installed: use its own image", FAILED)
    try:
        code: int = process.main(words[1:], env) if command.takes_arguments else process.main(env)
    except AlineoError as error:
        return _complain(f"{words[0]}: {error.message} ({error.reason})", FAILED)
    return code


def _complain(sentence: str, code: int) -> int:
    print(f"alineod: {sentence}", file=sys.stderr)
    return code
