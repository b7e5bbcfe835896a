"""Pi's file of a conversation: can it be read back? Pure.

A line each, JSON: a head with the conversation's id, then entries that each name the one before them. Pi takes what it
can read of a spoilt file for the whole, and goes on without a word.
"""

import contextlib

import msgspec


class _Line(msgspec.Struct):
    type: str = ""
    id: str = ""
    parent_id: str | None = msgspec.field(name="parentId", default=None)


def find_damage(data: bytes, session: str, leaf: str) -> str:
    """Why the conversation `session` that ends with the entry `leaf` is not in `data`; empty when it is."""
    lines = [_parse(line) for line in data.splitlines()]
    if not lines or lines[0].type != "session" or lines[0].id != session:
        return f"its head, of {session}, is gone"
    parents = {line.id: line.parent_id for line in lines[1:] if line.id}
    at: str | None = leaf
    while at is not None:
        if at not in parents:
            return f"the entry {at} is gone"
        at = parents.pop(at)  # each once: a circle has no beginning either
    return ""


def _parse(line: bytes) -> _Line:
    with contextlib.suppress(msgspec.DecodeError):
        return msgspec.json.decode(line, type=_Line)
    return _Line()
