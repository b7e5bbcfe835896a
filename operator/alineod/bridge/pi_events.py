"""What Pi says in a turn, folded: its records in, our events and the outcome out. Pure; knows no process and no pipe.

A turn has settled at `agent_settled` after an `agent_start` and an `agent_end`; `agent_end` alone also comes before
every automatic retry. What the last assistant message says decides how the turn ended.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from alineod.bridge.harness import Outcome
from alineod.wire.turns import ErrorKind, JournalEvent, TurnError, TurnState, Usage
from alineod.wire.usage import add_usage

Record = dict[str, Any]

DIALOGS = frozenset({"select", "confirm", "input", "editor"})


@dataclass(frozen=True)
class Event:
    """An event for the journal."""

    name: str
    data: dict[str, Any]


@dataclass(frozen=True)
class Delta:
    """More text of the running message."""

    text: str


@dataclass(frozen=True)
class Reset:
    """The running message's text so far is void."""


Said = Event | Delta | Reset


@dataclass(frozen=True)
class PiTurn:
    """A turn as far as Pi has told it. `priced`: the model has a price, so that a cost of zero is a known cost."""

    priced: bool = False
    begun: bool = False
    ended: bool = False
    settled: bool = False
    aborted: bool = False
    draft: str = ""  # of the message that is being written
    text: str = ""  # of the last assistant message that was written whole
    survived: str = ""  # the last text that was not empty, of a message that no retry gave up
    failed: str = ""  # of a message that ended in an error; a retry gives it up
    stop: str = ""
    error: str = ""
    retrying: bool = False
    usage: Usage = Usage()  # noqa: RUF009  a frozen record
    tools: tuple[str, ...] = ()

    @property
    def stuck(self) -> bool:
        """Its last message ended in an error; next it settles, or tries again, or it never says anything more."""
        return self.stop == "error" and not self.retrying and not self.settled


def observe(turn: PiTurn, record: Record) -> tuple[PiTurn, tuple[Said, ...]]:
    """Take in one record; unknown ones change nothing."""
    rule = _RULES.get(record.get("type", ""))
    return rule(turn, record) if rule else (turn, ())


def compute_outcome(turn: PiTurn) -> Outcome:
    """How a settled turn ended."""
    usage = turn.usage
    if turn.aborted or turn.stop == "aborted":
        error = TurnError(kind=ErrorKind.ABORTED, message="the harness aborted the turn")
        return Outcome(TurnState.ABORTED, surviving_text(turn), error, usage, tools=turn.tools)
    match turn.stop:
        case "stop":
            return Outcome(TurnState.CLEAN, turn.text, None, usage, tools=turn.tools)
        case "length":
            error = TurnError(kind=ErrorKind.TRUNCATED, message="the answer was cut off at the model's token limit")
            return Outcome(TurnState.FAILED, turn.text, error, usage, tools=turn.tools)
        case "error":
            error = TurnError(kind=ErrorKind.PROVIDER, message=turn.error or "the provider gave no reason")
        case "":
            error = TurnError(kind=ErrorKind.HARNESS, message="Pi settled without an answer")
        case other:
            error = TurnError(kind=ErrorKind.HARNESS, message=f"Pi settled with stop reason {other!r}")
    return Outcome(TurnState.FAILED, surviving_text(turn), error, usage, tools=turn.tools)


def surviving_text(turn: PiTurn) -> str:
    """What there is of an answer when the turn did not end well."""
    return turn.draft or turn.failed or turn.survived


def parse_usage(raw: Any, priced: bool) -> Usage:
    """Pi's usage of one message; what was read from a cache or written to it was input too."""
    if not isinstance(raw, dict):
        return Usage()
    tokens = [raw.get(name) or 0 for name in ("input", "cacheRead", "cacheWrite")]
    cost = (raw.get("cost") or {}).get("total")
    usd = str(Decimal(str(cost))) if priced and cost is not None else None
    return Usage(input_tokens=int(sum(tokens)), output_tokens=int(raw.get("output") or 0), usd=usd)


def build_usage(usage: Usage) -> dict[str, Any]:
    """Usage as a record of the journal has it."""
    return {"inputTokens": usage.input_tokens, "outputTokens": usage.output_tokens, "usd": usage.usd}


def text_of(content: Any) -> str:
    """The text blocks of a message's content, joined."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "".join(block.get("text", "") for block in blocks if block.get("type") == "text")


def _agent_start(turn: PiTurn, _: Record) -> tuple[PiTurn, tuple[Said, ...]]:
    return replace(turn, begun=True, ended=False), ()


def _agent_end(turn: PiTurn, _: Record) -> tuple[PiTurn, tuple[Said, ...]]:
    return replace(turn, ended=turn.begun), ()


def _agent_settled(turn: PiTurn, record: Record) -> tuple[PiTurn, tuple[Said, ...]]:
    return replace(turn, settled=turn.ended, aborted=bool(record.get("aborted"))), ()


def _message_start(turn: PiTurn, record: Record) -> tuple[PiTurn, tuple[Said, ...]]:
    if record["message"].get("role") != "assistant":
        return turn, ()
    return replace(turn, draft=""), (Reset(),) if turn.draft else ()


def _message_update(turn: PiTurn, record: Record) -> tuple[PiTurn, tuple[Said, ...]]:
    update = record.get("assistantMessageEvent") or {}
    if update.get("type") != "text_delta" or not (delta := update.get("delta")):
        return turn, ()
    return replace(turn, draft=turn.draft + delta), (Delta(delta),)


def _message_end(turn: PiTurn, record: Record) -> tuple[PiTurn, tuple[Said, ...]]:
    message = record["message"]
    if message.get("role") != "assistant":
        return turn, ()
    stop, error = message.get("stopReason") or "", message.get("errorMessage") or ""
    text, usage = text_of(message.get("content")), parse_usage(message.get("usage"), turn.priced)
    failed = stop == "error"
    after = replace(
        turn,
        draft="",
        text=text,
        survived=turn.survived if failed else text or turn.survived,
        failed=text if failed else "",
        stop=stop,
        error=error,
        retrying=False,
        usage=add_usage(turn.usage, usage),
    )
    data = {"role": "assistant", "text": text, "stop": stop, "usage": build_usage(usage), "model": message.get("model")}
    if thinking := _thinking(message.get("content")):
        data["thinking"] = thinking
    return after, (Event(JournalEvent.MESSAGE, {**data, "error": error} if error else data),)


def _thinking(content: Any) -> str:
    blocks = content if isinstance(content, list) else []
    return "".join(block.get("thinking") or "" for block in blocks if block.get("type") == "thinking")


def _tool_start(turn: PiTurn, record: Record) -> tuple[PiTurn, tuple[Said, ...]]:
    name = str(record.get("toolName"))
    data = {"id": record.get("toolCallId"), "name": name, "args": record.get("args")}
    return replace(turn, tools=(*turn.tools, name)), (Event(JournalEvent.TOOL_STARTED, data),)


def _tool_end(turn: PiTurn, record: Record) -> tuple[PiTurn, tuple[Said, ...]]:
    text = text_of((record.get("result") or {}).get("content"))
    data = {"id": record.get("toolCallId"), "name": record.get("toolName"), "text": text}
    data |= {"isError": bool(record.get("isError")), "durationMs": record.get("durationMs")}
    return turn, (Event(JournalEvent.TOOL_ENDED, data),)


def _retry_start(turn: PiTurn, record: Record) -> tuple[PiTurn, tuple[Said, ...]]:
    void = bool(turn.failed or turn.draft)
    return replace(turn, failed="", draft="", retrying=True), ((Reset(),) if void else ()) + _renamed(
        JournalEvent.RETRY, "started", record
    )


def _passed_on(name: str, phase: str) -> Callable[[PiTurn, Record], tuple[PiTurn, tuple[Said, ...]]]:
    return lambda turn, record: (turn, _renamed(name, phase, record))


def _compaction_end(turn: PiTurn, record: Record) -> tuple[PiTurn, tuple[Said, ...]]:
    result = record.get("result") or {}
    data = {**record, "result": {key: result[key] for key in ("tokensBefore", "estimatedTokensAfter") if key in result}}
    usage = parse_usage(result.get("usage"), turn.priced)
    return replace(turn, usage=add_usage(turn.usage, usage)), _renamed(
        JournalEvent.COMPACTION, "ended", {**data, "usage": build_usage(usage)}
    )


def _permission(turn: PiTurn, record: Record) -> tuple[PiTurn, tuple[Said, ...]]:
    if record.get("method") not in DIALOGS:
        return turn, ()
    return turn, _renamed(JournalEvent.PERMISSION, "refused", record)


def _renamed(name: str, phase: str, record: Record) -> tuple[Said, ...]:
    return (Event(name, {"phase": phase, **{key: value for key, value in record.items() if key != "type"}}),)


_RULES: dict[str, Callable[[PiTurn, Record], tuple[PiTurn, tuple[Said, ...]]]] = {
    "agent_start": _agent_start,
    "agent_end": _agent_end,
    "agent_settled": _agent_settled,
    "message_start": _message_start,
    "message_update": _message_update,
    "message_end": _message_end,
    "tool_execution_start": _tool_start,
    "tool_execution_end": _tool_end,
    "auto_retry_start": _retry_start,
    "auto_retry_end": _passed_on(JournalEvent.RETRY, "ended"),
    "summarization_retry_scheduled": _passed_on(JournalEvent.RETRY, "summary"),
    "compaction_start": _passed_on(JournalEvent.COMPACTION, "started"),
    "compaction_end": _compaction_end,
    "extension_ui_request": _permission,
    "extension_error": _passed_on(JournalEvent.ERROR, "extension"),
}
