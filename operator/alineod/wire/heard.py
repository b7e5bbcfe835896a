"""What is known of a turn before its end was heard: a fold of its journal. Pure.

The bridge says it of a turn that the bridge before it left without an end, the operator of one whose sandbox is gone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from alineod.wire.turns import JournalEvent, JournalRecord, Usage
from alineod.wire.usage import NO_USAGE, add_usage, parse_usage

MAX_LIVE = 1 << 20  # characters of a running message that are kept in case it is cut off
MOST_TOOLS = 256  # of a turn, newest last
LONGEST_NAME = 128  # characters of a tool's name


@dataclass(frozen=True)
class Remains:
    """What survived of a turn that was cut off: its text, the tools that had started, what it had used."""

    text: str = ""
    tools: tuple[str, ...] = ()
    usage: Usage = NO_USAGE


NOTHING = Remains()


@dataclass(frozen=True)
class Heard:
    """What was heard of the running turn, should it be cut off: its text, which tools began, what it used.

    `text` is that of the message being written, or else of the last one; `whole` that of the last one which a retry
    does not give up. `seq` is the newest journal number in it, so that a record which comes again counts once. `begun`:
    it was heard from its beginning. `silence` says for how long nothing was heard, while that lasts.
    """

    text: str = ""
    tools: tuple[str, ...] = ()
    usage: Usage = NO_USAGE
    seq: int = 0
    whole: str = ""
    writing: bool = False
    begun: bool = False
    silence: str = ""

    @property
    def remains(self) -> Remains:
        """What the record of a cut turn holds of it."""
        return Remains(self.text, self.tools, self.usage)


def hear(heard: Heard, record: JournalRecord) -> Heard:
    """What is known of the turn with one more record of it."""
    if record.seq is None:
        return _hear_live(heard, record)
    if record.seq <= heard.seq:
        return heard
    heard, data = replace(heard, seq=record.seq, silence=""), record.data
    match record.event:
        case JournalEvent.TURN_STARTED:
            return replace(heard, begun=True)
        case JournalEvent.MESSAGE if data.get("role") == "assistant":
            text = _text(data)[-MAX_LIVE:] or heard.whole
            whole = heard.whole if data.get("error") else text
            usage = add_usage(heard.usage, parse_usage(data))
            return replace(heard, text=text, usage=usage, whole=whole, writing=False)
        case JournalEvent.RETRY if data.get("phase") == "started":
            return _take_back(heard)
        case JournalEvent.SILENCE:
            return replace(heard, silence=f"nothing was heard for {data.get('seconds')} s, since {data.get('since')}")
        case JournalEvent.COMPACTION:
            return replace(heard, usage=add_usage(heard.usage, parse_usage(data)))
        case JournalEvent.TOOL_STARTED:
            name = str(data.get("name"))[:LONGEST_NAME]
            return replace(heard, tools=(*heard.tools, name)[-MOST_TOOLS:])
        case _:
            return heard


def _hear_live(heard: Heard, record: JournalRecord) -> Heard:
    match record.event:
        case JournalEvent.TEXT_DELTA:
            text = (heard.text if heard.writing else "") + _text(record.data)
            return replace(heard, text=text[-MAX_LIVE:], writing=True, silence="")
        case JournalEvent.TEXT_RESET:
            return _take_back(heard)
        case _:
            return heard


def _take_back(heard: Heard) -> Heard:
    """Without the message that a retry gives up."""
    return replace(heard, text=heard.whole, writing=False)


def _text(data: Mapping[str, Any]) -> str:
    text = data.get("text")
    return text if isinstance(text, str) else ""
