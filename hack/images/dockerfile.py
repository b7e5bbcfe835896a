"""Reads from the Dockerfile which files of the checkout each target is made of. Pure: text in, paths out."""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

CONTINUED = re.compile(r"\\\n")
COMMENT = re.compile(r"^\s*#.*\n", re.MULTILINE)
MOUNTED = re.compile(r"--mount=type=bind,\S*source=(?P<path>[^,\s]+)")


@dataclass
class Stage:
    """`paths` come from the checkout, `stages` are the earlier ones it builds on or copies from."""

    paths: set[str] = field(default_factory=set)
    stages: set[str] = field(default_factory=set)


def find_inputs(dockerfile: str, target: str) -> set[str]:
    """Every path that `target` and the stages under it take from the checkout; a folder stands for all in it."""
    stages = parse_stages(dockerfile)
    found: set[str] = set()
    todo, seen = [target], set[str]()
    while todo:
        name = todo.pop()
        if name in seen or name not in stages:
            continue
        seen.add(name)
        found |= stages[name].paths
        todo += stages[name].stages
    return found


def parse_stages(dockerfile: str) -> Mapping[str, Stage]:
    """The stages by name."""
    stages: dict[str, Stage] = {}
    stage = Stage()
    for line in _instructions(dockerfile):
        words = line.split()
        match words[0].upper():
            case "FROM":
                stage = stages.setdefault(words[-1], Stage(stages={words[1]}))
            case "COPY":
                _read_copy(stage, shlex.split(line)[1:])
            case "RUN":
                stage.paths |= {found["path"] for found in MOUNTED.finditer(line)}
            case _:
                pass
    return stages


def _read_copy(stage: Stage, words: list[str]) -> None:
    flags = [word for word in words if word.startswith("--")]
    sources = [word for word in words if not word.startswith("--")][:-1]
    origin = next((flag.partition("=")[2] for flag in flags if flag.startswith("--from=")), None)
    if origin is None:
        stage.paths |= set(sources)
    else:
        stage.stages.add(origin)


def _instructions(dockerfile: str) -> Iterator[str]:
    joined = CONTINUED.sub(" ", COMMENT.sub("", dockerfile))
    yield from (line for line in joined.splitlines() if line.strip())
