"""Text by rule, records by size."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alineod.bridge.safe import fit_data, safe_data, safe_text

ANY_TEXT = st.text(st.characters(codec=None) | st.sampled_from("\0\x85\u2028\u2029\ud800\udfff\n"))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=12,
)
FEW = settings(max_examples=40)


@pytest.mark.parametrize(
    ("given_text", "expected"),
    [
        ("plain", "plain"),
        ("a\0b", "a\ufffdb"),
        ("one\u2028two\u2029three\x85four", "one\ntwo\nthree\nfour"),
        ("\ud83d and \ude00", "\ufffd and \ufffd"),
        ("😀 é\r\n\t", "😀 é\r\n\t"),
    ],
)
def test_the_rule(given_text: str, expected: str) -> None:
    assert safe_text(given_text) == expected


@given(ANY_TEXT)
def test_safe_text_encodes_stays_on_one_line_and_is_the_same_on_replay(text: str) -> None:
    safe = safe_text(text)
    assert len(safe) == len(text)
    assert safe.encode().decode() == safe
    assert "\0" not in safe
    assert len(json.dumps(safe, ensure_ascii=False).splitlines()) == 1
    assert safe_text(safe) == safe


@FEW
@given(st.dictionaries(ANY_TEXT, JSON, max_size=4))
def test_safe_data_always_encodes(data: dict[str, Any]) -> None:
    safe = safe_data(data)
    assert msgspec.json.decode(msgspec.json.encode(safe)) == safe
    assert safe_data(safe) == safe


def test_what_is_nested_too_deep_is_replaced_by_a_note() -> None:
    deep: Any = "bottom"
    for _ in range(5000):
        deep = [deep]
    assert "nested deeper" in msgspec.json.encode(safe_data({"x": deep})).decode()


@given(
    st.dictionaries(st.text(max_size=5), JSON | st.text(min_size=300).map(lambda text: text * 50)),
    st.integers(200, 5000),
)
def test_a_record_fits_whatever_it_holds(data: dict[str, Any], limit: int) -> None:
    safe = safe_data(data)
    fitted = fit_data(safe, limit)
    assert len(msgspec.json.encode(fitted)) <= limit
    if len(msgspec.json.encode(safe)) <= limit:
        assert fitted == safe


def test_a_cut_says_what_is_missing_and_leaves_the_rest() -> None:
    fitted = fit_data({"id": "t1", "text": "x" * 300_000, "isError": False})
    assert fitted["id"] == "t1"
    assert fitted["text"].endswith("[cut: 234464 of 300000 characters left out]")
    many = fit_data({"n": 1, "list": ["y"] * 100_000})
    assert many["n"] == 1
    assert "left out" in many["cut"]
