"""What a step is, and how it is carried out: only when its inputs changed, and whole or not at all."""

import os
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from hack.toolchain.layout import Layout
from hack.toolchain.lock import hold
from hack.toolchain.progress import say, spell


@dataclass(frozen=True)
class Context:
    """What every step may use."""

    layout: Layout
    env: Mapping[str, str]
    python: str


@dataclass(frozen=True)
class Directory:
    """A step that installs a directory: build fills an empty one, which then gets its name and its link."""

    name: str
    needs: tuple[str, ...]
    expect: str
    fingerprint: Callable[[Context], str]
    build: Callable[[Context, Path], None]


@dataclass(frozen=True)
class Programs:
    """A step that builds programs: build writes them into a directory, from which they are moved to bin."""

    name: str
    needs: tuple[str, ...]
    expect: str
    programs: tuple[str, ...]
    fingerprint: Callable[[Context], str]
    build: Callable[[Context, Path], None]


@dataclass(frozen=True)
class Task:
    """A step whose outcome is not in the cache: it looks for itself whether anything is to be done."""

    name: str
    needs: tuple[str, ...]
    act: Callable[[Context], None]


Step = Directory | Programs | Task


def carry_out(step: Step, context: Context) -> None:
    """Bring a step's outcome about; safe to run twice and to kill at any moment."""
    with hold(step.name, context.layout.lock(step.name)):
        match step:
            case Directory():
                _install(step, context)
            case Programs():
                _build(step, context)
            case Task():
                step.act(context)


def _install(step: Directory, context: Context) -> None:
    target = context.layout.installed(step.name, step.fingerprint(context))
    if target.is_dir():
        say(step.name, "cached")
    else:
        _make(step, context, lambda made: made.rename(target))
    _point(context.layout.link(step.name), target)


def _build(step: Programs, context: Context) -> None:
    stamp, fingerprint = context.layout.stamp(step.name), step.fingerprint(context)
    present = all((context.layout.bin / program).exists() for program in step.programs)
    if present and stamp.exists() and stamp.read_text() == fingerprint:
        say(step.name, "cached")
        return

    def move(made: Path) -> None:
        context.layout.bin.mkdir(parents=True, exist_ok=True)
        stamp.unlink(missing_ok=True)  # programs of two builds are never taken for those of one
        for program in step.programs:
            (made / program).replace(context.layout.bin / program)
        _write(stamp, fingerprint)

    _make(step, context, move)


def _make(step: Directory | Programs, context: Context, keep: Callable[[Path], object]) -> None:
    work = context.layout.cache / f".{step.name}.new"
    shutil.rmtree(work, ignore_errors=True)  # what a killed run left; the lock says that nobody is in it
    work.mkdir(parents=True)
    context.layout.log(step.name).unlink(missing_ok=True)
    begin = time.monotonic()
    say(step.name, f"making it; {step.expect}")
    try:
        step.build(context, work)
        keep(work)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    say(step.name, f"done in {spell(time.monotonic() - begin)}")


def _point(link: Path, target: Path) -> None:
    """Make the stable name stand for the directory; what a person put there is kept beside it."""
    if link.is_dir() and not link.is_symlink():
        link.rename(link.with_name(f"{link.name}.by-hand-{time.time_ns()}"))
    temporary = link.with_name(f".{link.name}.link")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(target.name)
    os.replace(temporary, link)  # noqa: PTH105 - Path.replace follows nothing either; the name says what is meant


def _write(path: Path, text: str) -> None:
    temporary = path.with_name(f"{path.name}.new")
    temporary.write_text(text)
    temporary.replace(path)
