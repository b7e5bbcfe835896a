"""The reference page of the ledger's events, from the records themselves. Pure."""

import inspect
import typing
from typing import Any

import msgspec

from alineod.domain.events import AnyBody, HarnessEvent
from alineod.ledger.records import DEPTH_LIMIT, NAME_LIMIT, RECORD_LIMIT

_HEAD = f"""\
# Events of the ledger

One row for each event, never changed and never deleted. A row holds:

| column | type | meaning |
|---|---|---|
| `seq` | integer | position, from 1, without a gap |
| `time` | integer | microseconds since 1970 (`dump` shows seconds) |
| `id` | text | identity of the event; an append under an id that stands is not written again |
| `run` | text | `namespace/swarm` |
| `agent` | text or null | `namespace/agent` |
| `event` | text | the event's name, as below; `harness.<type>` for events of a harness |
| `payload` | text | JSON, with the fields below |
| `prev` | 32 bytes | `hash` of the row before; zeros for the first |
| `hash` | 32 bytes | SHA-256 over `prev` (hex), `seq`, `time`, `id`, `run`, `agent`, `event`, `payload` |

Each of the hashed fields is written as its length in bytes in decimal, a colon, and its UTF-8 text; a missing agent is
empty. A payload takes at most {RECORD_LIMIT:,} bytes and nests at most {DEPTH_LIMIT} levels; id, run and agent take at
most {NAME_LIMIT:,} bytes each. Before anything is written a lone surrogate and a NUL become U+FFFD, and U+2028 and
U+2029 become a line feed.

A field with a default is left out of the payload while it has that value.
"""

_WORDS = {str: "text", int: "integer", float: "number", bool: "true or false", type(None): "null", Any: "any JSON"}


def build_events_reference() -> str:
    """The page as Markdown, events in the order they are declared."""
    return "\n".join([_HEAD, *(_build_section(kind) for kind in typing.get_args(AnyBody))])


def _build_section(kind: type[Any]) -> str:
    name = "harness.<type>" if kind is HarnessEvent else str(msgspec.inspect.type_info(kind).tag)  # type: ignore[attr-defined]
    text = "" if kind.__doc__ is None else inspect.cleandoc(kind.__doc__) + "\n\n"
    return f"## `{name}`\n\n{text}{_build_fields(kind)}"


def _build_fields(kind: type[Any]) -> str:
    hints = typing.get_type_hints(kind)
    fields = msgspec.structs.fields(kind)
    if not fields:
        return "No fields.\n"
    rows = [f"| `{f.encode_name}` | {_describe(hints[f.name])} | {_describe_default(f)} |" for f in fields]
    return "\n".join(["| field | type | default |", "|---|---|---|", *rows, ""])


def _describe(hint: Any) -> str:
    arguments = typing.get_args(hint)
    match typing.get_origin(hint):
        case None:
            return _WORDS.get(hint) or _describe_named(hint)
        case origin if origin is list:
            return f"list of {_describe(arguments[0])}"
        case origin if origin is dict:
            return "object" if arguments[1] is Any else f"object of {_describe(arguments[1])}"
        case _:
            return " or ".join(map(_describe, arguments))


def _describe_named(kind: Any) -> str:
    if hasattr(kind, "__members__"):
        return "one of " + ", ".join(f"`{member.value}`" for member in kind)
    return "{" + ", ".join(f"`{f.encode_name}`" for f in msgspec.structs.fields(kind)) + "}"


def _describe_default(field: msgspec.structs.FieldInfo) -> str:
    if field.default_factory is not msgspec.NODEFAULT:
        return f"`{msgspec.json.encode(field.default_factory()).decode()}`"
    if field.default is not msgspec.NODEFAULT:
        return f"`{msgspec.json.encode(field.default).decode()}`"
    return ""
