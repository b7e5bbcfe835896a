"""The command line: which steps, in which order, side by side where they can be."""

import os
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from hack.toolchain import machine, programs, wheels
from hack.toolchain.errors import ToolchainError
from hack.toolchain.layout import Layout, find_cache
from hack.toolchain.progress import say, spell
from hack.toolchain.step import Context, Step, carry_out

STEPS: Mapping[str, Step] = {step.name: step for step in (*wheels.STEPS, *programs.STEPS, *machine.STEPS)}
CHECKS = frozenset({"doctor", "gocheck"})  # make nothing, so they are no part of "all"
ALIASES: Mapping[str, str] = {"go": "gotool"}  # the directory `go` in the cache is Go's own

USAGE = """usage: python3 hack/toolchain/toolchain.py TARGET...

  doctor       what this machine lacks, and what to do about it (exit code 3)
  packages     the Debian packages that the cluster and the images need
  uv           uv, by pip
  venv         the development environment, from requirements/dev.txt
  go           Go, from requirements/go.txt
  node         Node, from requirements/node.txt
  pi           Pi, from hack/pi/package-lock.json
  devcluster   the program that runs the development cluster
  kube         etcd, Kubernetes, CoreDNS and kubectl in one program (about 10 minutes the first time)
  helm         Helm (about 4 minutes the first time)
  all          everything above but doctor
  gocheck      format, vet and test the Go sources

What is there and unchanged is not made again. All lies in $ALINEOD_CACHE (default: alineod in your cache directory).
"""


def order(targets: Sequence[str], steps: Mapping[str, Step]) -> list[Step]:
    """The steps to carry out, each once, after those that it needs."""
    ordered: dict[str, Step] = {}

    def visit(name: str) -> None:
        for need in steps[name].needs:
            visit(need)
        ordered.setdefault(name, steps[name])

    for target in targets:
        visit(target)
    return list(ordered.values())


def parse_targets(words: Sequence[str]) -> list[str]:
    """Step names of the words of a command line; raises ToolchainError for one that is none."""
    names: list[str] = []
    for word in words:
        name = ALIASES.get(word, word)
        if name == "all":
            names += [step for step in STEPS if step not in CHECKS]
        elif name in STEPS:
            names.append(name)
        else:
            raise ToolchainError(f"no target {word!r}: there are {', '.join([*STEPS, 'all'])}")
    return names


def carry_out_all(steps: Sequence[Step], context: Context) -> None:
    """Carry out steps, each as soon as those that it needs are done; raise the first failure when all have ended."""
    running: dict[str, Future[None]] = {}
    with ThreadPoolExecutor(max_workers=len(steps)) as pool:
        for step in steps:
            needs = [running[name] for name in step.needs]
            running[step.name] = pool.submit(_after, needs, step, context)
    for future in running.values():
        future.result()


def _after(needs: Sequence[Future[None]], step: Step, context: Context) -> None:
    for need in needs:
        need.result()
    try:
        carry_out(step, context)
    except ToolchainError:
        say(step.name, "failed; the reason follows when the other steps have ended")
        raise


def main(words: Sequence[str], checkout: Path) -> int:
    """Run the program; the return value is its exit code."""
    if not words or set(words) & {"help", "-h", "--help"}:
        print(USAGE, end="")
        return 0
    begin = time.monotonic()
    try:
        steps = order(parse_targets(words), STEPS)
        context = Context(Layout(checkout, find_cache(os.environ)), dict(os.environ), sys.executable)
        carry_out_all(steps, context)
    except ToolchainError as error:
        print(f"toolchain: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("toolchain: interrupted; the next run goes on from what is done", file=sys.stderr)
        return 130
    if len(steps) > 1:
        say("toolchain", f"all done in {spell(time.monotonic() - begin)}")
    return 0
