"""Lines out of bytes."""

from hypothesis import given
from hypothesis import strategies as st

from alineod.bridge.pi_process import parse_record
from alineod.bridge.pipes import LineSplitter, Tail


@given(st.lists(st.binary(max_size=20).map(lambda data: data.replace(b"a", b"\n"))))
def test_lines_are_the_same_however_the_bytes_arrive(chunks: list[bytes]) -> None:
    splitter = LineSplitter()
    lines = [line for chunk in chunks for line in splitter.feed(chunk)]
    assert lines == b"".join(chunks).split(b"\n")[:-1]


def test_only_a_line_feed_ends_a_line() -> None:
    line = '{"text":"a\u2028b\u0085c\rd"}'.encode()
    assert list(LineSplitter().feed(line + b"\n")) == [line]


def test_a_tail_keeps_the_last_lines() -> None:
    tail = Tail(limit=20)
    tail.feed(b"0123456789" * 5)
    tail.feed(b"\none\n\ntwo\n")
    assert tail.lines(2) == ["one", "two"]


def test_records() -> None:
    assert parse_record(b'{"a":1}') == {"a": 1}
    assert parse_record(b'{"a":"\\ud800"}') == {"a": "\ud800"}
    assert parse_record(b'{"a":"\xff"}') == {"a": "\ufffd"}
    assert parse_record(b'{"messages":[1,2],"type":"agent_end"}') == {"type": "agent_end"}
    assert parse_record(b"[1]") is None
    assert parse_record(b"no json") is None
