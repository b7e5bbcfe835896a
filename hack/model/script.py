"""The conversation as the scripted model reads it, and the step of the script that is due. Knows no protocol."""

import json
import re
import threading
from dataclasses import dataclass, field
from typing import Any

SCRIPT = re.compile(r"<<(\[.*?\])>>", re.DOTALL)

Step = dict[str, Any]


@dataclass(frozen=True)
class Said:
    """One message of the conversation, whichever protocol it came by."""

    role: str
    text: str


@dataclass
class Memory:
    """What the server keeps: requests seen, how often counted steps were played, which gates are open."""

    log: list[dict[str, Any]] = field(default_factory=list)
    played: dict[str, int] = field(default_factory=dict)
    opened: set[str] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)


def text_of(content: Any) -> str:
    """The text of a message's content, a string or a list of blocks."""
    if isinstance(content, list):
        return "".join(block.get("text", "") for block in content if isinstance(block, dict))
    return content if isinstance(content, str) else ""


def user_texts(said: list[Said]) -> list[str]:
    """What the user said, without scripts."""
    return [SCRIPT.sub("", message.text).strip() for message in said if message.role == "user"]


def find_script(said: list[Said]) -> tuple[str, int]:
    """The script that runs, and how many assistant messages came since; an empty one when none runs.

    A message without a script that follows tool results is steering and leaves the script running.
    """
    for at in range(len(said) - 1, -1, -1):
        if said[at].role != "user":
            continue
        if found := SCRIPT.search(said[at].text):
            return found.group(1), sum(message.role == "assistant" for message in said[at:])
        if not (at and said[at - 1].role == "tool"):
            break
    return "", 0


def choose_step(said: list[Said], memory: Memory) -> Step:
    """The step to play; an empty one for the default answer."""
    script, position = find_script(said)
    if not script:
        return {}
    uncounted = 0
    steps: list[Step] = json.loads(script)
    for index, step in enumerate(steps):
        if "times" not in step:
            if uncounted == position:
                return step
            uncounted += 1
        elif uncounted == position and _take(memory, f"{index} {script}", step["times"]):
            return step
    return {}


def _take(memory: Memory, key: str, times: int) -> bool:
    with memory.lock:
        played = memory.played.get(key, 0)
        if played >= times:
            return False
        memory.played[key] = played + 1
        return True
