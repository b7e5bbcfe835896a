"""The door of the ledger: what an entry must be to get in, and the bytes it is kept as.

Pure. Knows the limits and the encoding of a payload; must not know where it is stored.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from alineod.domain.events import AnyBody, Entry, event_name
from alineod.errors import Refused
from alineod.ledger.text import compute_clean_text, compute_clean_value

RECORD_LIMIT = 1 << 20
"""Bytes one payload may take."""
NAME_LIMIT = 1024
"""Bytes an id, a run or an agent may take."""
DEPTH_LIMIT = 100
"""Lists and objects within each other. A reader's stack decides how deep it can read; this much every reader can."""

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(AnyBody)
# How the characters that the rule replaces look in JSON. A false alarm only costs the slow path.
_NUL, _LINE, _PARAGRAPH = b"\\u0000", "\u2028".encode(), "\u2029".encode()


class Prepared(msgspec.Struct, frozen=True):
    """An entry that may be written. `payload` is JSON with the event's own name in it, `body` what that reads as."""

    id: str
    run: str
    agent: str | None
    event: str
    payload: str
    body: AnyBody


def prepare_entries(entries: Sequence[Entry]) -> list[Prepared]:
    """Clean, encode and check `entries`.

    Raises:
        Refused: `RecordTooLarge` or `InvalidRecord`, with the event, the field and the limit.
    """
    return [_prepare_entry(entry) for entry in entries]


def parse_payload(payload: str | bytes) -> AnyBody:
    """Read a stored payload.

    Raises:
        Refused: `UnknownEvent`; it is not an event this version knows.
    """
    try:
        return _DECODER.decode(payload)
    except (msgspec.DecodeError, RecursionError) as error:
        message = f"A payload is no event this version knows ({error}). Use the version that wrote it or a later one."
        raise Refused("UnknownEvent", message) from error


def _prepare_entry(entry: Entry) -> Prepared:
    event = compute_clean_text(event_name(entry.body))
    payload, body = _encode_body(entry.body, event)
    if len(payload) > RECORD_LIMIT:
        raise _refuse_size(entry.body, event, len(payload))
    return Prepared(
        id=_check_name("id", entry.id, event),
        run=_check_name("run", entry.run, event),
        agent=None if entry.agent is None else _check_name("agent", entry.agent, event),
        event=event,
        payload=payload.decode(),
        body=body,
    )


def _encode_body(body: AnyBody, event: str) -> tuple[bytes, AnyBody]:
    """The payload, and what it reads as: what is folded now must be what is read again later."""
    try:
        payload = _encode_clean(body)
        if payload.count(b"[") + payload.count(b"{") > DEPTH_LIMIT and _is_deep(msgspec.to_builtins(body)):
            raise ValueError(f"it nests deeper than {DEPTH_LIMIT} levels")
        return payload, _DECODER.decode(payload)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise Refused("InvalidRecord", f"{event} cannot be written as JSON: {error}.") from error


def _encode_clean(body: AnyBody) -> bytes:
    try:
        payload = _ENCODER.encode(body)
        if _NUL not in payload and _LINE not in payload and _PARAGRAPH not in payload:
            return payload
    except UnicodeEncodeError:
        pass  # a lone surrogate
    cleaned = compute_clean_value(msgspec.to_builtins(body))
    return _ENCODER.encode(msgspec.convert(cleaned, type(body)))


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(DEPTH_LIMIT):
        inner = [item.values() if isinstance(item, dict) else item for item in level if isinstance(item, dict | list)]
        level = [item for items in inner for item in items]
        if not level:
            return False
    return True


def _check_name(field: str, value: str, event: str) -> str:
    value = compute_clean_text(value)
    size = len(value.encode())
    if not value:
        raise Refused("InvalidRecord", f"{event}: {field} is empty.")
    if size > NAME_LIMIT:
        raise Refused("RecordTooLarge", f"{event}: {field} takes {size:,} bytes; it may take {NAME_LIMIT:,}.")
    return value


def _refuse_size(body: AnyBody, event: str, size: int) -> Refused:
    cleaned = compute_clean_value(msgspec.to_builtins(body))
    sizes = {field: len(_ENCODER.encode(value)) for field, value in cleaned.items()}
    largest = max(sizes, key=lambda field: sizes[field])
    return Refused(
        "RecordTooLarge",
        f"{event} takes {size:,} bytes, {sizes[largest]:,} of them in its field {largest}; a record may take"
        f" {RECORD_LIMIT:,}. Shorten the field, or store the content in a file and name the file.",
    )
