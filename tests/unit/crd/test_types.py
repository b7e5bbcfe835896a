"""Durations and the other value types: what is read, what is refused, and in which words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from alineod.crd.sandbox import DrainGrace, HomePath
from alineod.crd.types import Duration, Money, Name, Quantity, format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30), ("30m", 1800), ("1h30m", 5400), ("1.5h", 5400), ("250ms", 0.25), ("0s", 0), ("90m", 5400),
        ("1h1m1s1ms", 3661.001),
    ],
)  # fmt: skip
def test_durations_are_read_as_go_writes_them(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("value", ["", "30", "soon", "-5m", "5 m", "m", "1h30", 30, True, None, "30d", "٣s", "30m\n"])
def test_what_is_no_duration_is_told_how_one_is_written(value: object) -> None:
    with pytest.raises(ValueError, match="write one with its unit, such as 30s, 30m or 1h30m"):
        parse_duration(value)


@given(st.integers(min_value=0, max_value=10**10))
def test_a_duration_survives_being_written(milliseconds: int) -> None:
    seconds = milliseconds / 1000
    assert parse_duration(format_duration(seconds)) == pytest.approx(seconds, abs=1e-6)


def test_seconds_of_our_own_code_pass() -> None:
    assert TypeAdapter(Duration).validate_python(90.0) == 90.0
    assert TypeAdapter(Duration).dump_python(5400.0) == "1h30m"


@pytest.mark.parametrize(("value", "text"), [("500m", "500m"), (2, "2"), (1.5, "1.5"), ("5Gi", "5Gi"), ("1e3", "1e3")])
def test_quantities_become_text(value: object, text: str) -> None:
    assert TypeAdapter(Quantity).validate_python(value) == text


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        (Quantity, "lots", "write one such as 500m, 2 or 512Mi"),
        (Quantity, True, "write one such as"),
        (Quantity, "5 Gi", "write one such as"),
        (Money, "$5", 'write one such as "25" or "0.50"'),
        (Money, "-1", "no amount of dollars"),
        (Name, "Lead", "use lower case letters"),
        (Name, "-lead", "with a letter or digit at both ends"),
        (Name, "__wait", "use lower case letters"),
        (Name, "lead\n", "use lower case letters"),
        (Name, "x" * 58, "at most 57 characters"),
        (DrainGrace, "24h1s", "24h at most"),
        (DrainGrace, "10", "write one with its unit"),
        (HomePath, "root", "write an absolute path"),
        (HomePath, "/", "write an absolute path"),
        (HomePath, "/home/agent/", "write an absolute path"),
        (HomePath, "/home/../etc", "without . and .."),
        (HomePath, "/workspace/home", "cannot be within /workspace"),
        (HomePath, "/inputs", "write another path"),
    ],
)
def test_refusals_say_what_to_write(kind: object, value: object, words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        TypeAdapter(kind).validate_python(value)


@pytest.mark.parametrize("home", ["/root", "/home/agent", "/home/.agent", "/inputs-of-mine", "/home/a..b"])
def test_homes_that_will_do(home: str) -> None:
    assert TypeAdapter(HomePath).validate_python(home) == home
