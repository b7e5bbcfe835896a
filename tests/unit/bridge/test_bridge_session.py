"""Whether a file of Pi's holds a conversation, as far as it must."""

import json

import pytest

from alineod.bridge.pi_session import find_damage

HEAD = {"type": "session", "version": 3, "id": "alineo-1"}
ENTRIES = [
    {"type": "model_change", "id": "a", "parentId": None},
    {"type": "message", "id": "b", "parentId": "a", "message": {"role": "user"}},
    {"type": "message", "id": "aside", "parentId": "a"},
    {"type": "message", "id": "c", "parentId": "b"},
]


def render(*lines: object) -> bytes:
    return b"".join(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines)


@pytest.mark.parametrize("leaf", ["a", "b", "c", "aside"])
def test_a_whole_conversation_is_found(leaf: str) -> None:
    assert find_damage(render(HEAD, *ENTRIES), "alineo-1", leaf) == ""


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "its head, of alineo-1, is gone"),
        (render(b"garbage\n", *ENTRIES), "its head, of alineo-1, is gone"),
        (render(HEAD | {"id": "other"}, *ENTRIES), "its head, of alineo-1, is gone"),
        (render(HEAD, *ENTRIES[1:]), "the entry a is gone"),
        (render(HEAD, ENTRIES[0], b'{"type": "message", "id": "b", "par\n', ENTRIES[3]), "the entry b is gone"),
        (render(HEAD, *ENTRIES[:3]), "the entry c is gone"),
        (render(HEAD, ENTRIES[0] | {"parentId": "c"}, *ENTRIES[1:]), "the entry c is gone"),
        (render(HEAD, *ENTRIES[:3], ENTRIES[3] | {"parentId": 7}), "the entry c is gone"),
        (render(HEAD, *ENTRIES).replace(b'"id": "b"', b'"id": "\xff"'), "the entry b is gone"),
    ],
    ids=["empty", "overwritten", "another's", "cut at its head", "torn inside", "cut at its end", "a circle",
         "no name", "no text"],
)  # fmt: skip
def test_what_is_missing_is_said(data: bytes, why: str) -> None:
    assert find_damage(data, "alineo-1", "c") == why
