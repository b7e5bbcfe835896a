"""What a sandbox may say in its journal, and what is left out."""

import json
from typing import Any

import pytest

from alineod.reconcile.records import LONGEST, parse_record

GOOD: dict[str, Any] = {"time": 1.0, "turn": 1, "turnId": "id", "event": "message", "seq": 3}


def deep(levels: int) -> Any:
    value: Any = "x"
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


@pytest.mark.parametrize(
    "change",
    [
        {}, {"seq": None}, {"turn": 0}, {"data": {"text": "x" * 300_000}}, {"data": {"a": deep(60)}}, {"new": "field"},
        {"data": {"code": "{[" * 500}},
    ],
)  # fmt: skip
def test_what_an_honest_bridge_writes_is_heard(change: dict[str, Any]) -> None:
    assert parse_record(json.dumps(GOOD | change).encode()) is not None


@pytest.mark.parametrize(
    "change",
    [
        {"seq": "3"}, {"seq": -1}, {"seq": 0}, {"seq": 10**13}, {"seq": 10**40}, {"turn": -1}, {"turn": 10**40},
        {"event": 7}, {"event": "x" * 200}, {"data": "x"}, {"data": {"a": deep(70)}}, {"data": {"text": "x" * LONGEST}},
    ],
)  # fmt: skip
def test_what_none_would_write_is_left_out(change: dict[str, Any]) -> None:
    assert parse_record(json.dumps(GOOD | change).encode()) is None


@pytest.mark.parametrize("line", [b"", b"\n", b"no json", b"[]", b"{}", b"\xff", b"[" * 100_000, b'{"seq":1'])
def test_what_is_no_record_is_left_out(line: bytes) -> None:
    assert parse_record(line) is None
