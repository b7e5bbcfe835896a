"""What may be written down: text by rule, records by size. Pure, and the same on replay: twice is the same as once."""

import re
from typing import Any

import msgspec

RECORD_LIMIT = 256 * 1024  # bytes of a record's data
_DEPTH_LIMIT = 64
_STRING_LIMITS = (65536, 16384, 4096, 1024, 256)
_UNSAFE = re.compile("[\0\x85\u2028\u2029\ud800-\udfff]")


def safe_text(text: str) -> str:
    """NUL and halves of surrogate pairs become U+FFFD; Unicode's extra line separators become line feeds."""
    return _UNSAFE.sub(lambda found: "\n" if found[0] in "\x85\u2028\u2029" else "\ufffd", text)


def safe_data(value: Any, depth: int = 0) -> Any:
    """`value` with every string in it made safe, and what lies too deep to be encoded replaced by a note."""
    match value:
        case str():
            return safe_text(value)
        case dict() | list() if depth >= _DEPTH_LIMIT:
            return f"[left out: nested deeper than {_DEPTH_LIMIT}]"
        case dict():
            return {safe_text(str(key)): safe_data(item, depth + 1) for key, item in value.items()}
        case list() | tuple():
            return [safe_data(item, depth + 1) for item in value]
        case _:
            return value


def fit_data(data: dict[str, Any], limit: int = RECORD_LIMIT) -> dict[str, Any]:
    """`data` cut until its JSON is at most `limit` bytes; every cut leaves a note of what is missing."""
    if _size(data) <= limit:
        return data
    for longest in _STRING_LIMITS:
        cut: dict[str, Any] = _cut_strings(data, longest)
        if _size(cut) <= limit:
            return cut
    small = {key: value for key, value in data.items() if isinstance(value, bool | int | float) or value is None}
    note = {"cut": f"{_size(data)} bytes of data left out: a record holds at most {limit}"}
    return note if _size(small) > limit // 2 else {**small, **note}


def _cut_strings(value: Any, longest: int) -> Any:
    match value:
        case str() if len(value) > longest:
            return f"{value[:longest]}\n[cut: {len(value) - longest} of {len(value)} characters left out]"
        case dict():
            return {key: _cut_strings(item, longest) for key, item in value.items()}
        case list():
            return [_cut_strings(item, longest) for item in value]
        case _:
            return value


def _size(data: Any) -> int:
    return len(msgspec.json.encode(data))
