"""The rule for text the ledger cannot hold."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alineod.ledger.text import compute_clean_text, compute_clean_value

ANY_TEXT = st.text(st.characters(exclude_categories=()))
ANY_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | ANY_TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(ANY_TEXT, inner),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("given_text", "kept"),
    [
        ("", ""),
        ("plain", "plain"),
        ("zwölf 😀 שלום", "zwölf 😀 שלום"),
        ("a\x00b", "a\ufffdb"),
        ("a\u2028b\u2029c", "a\nb\nc"),
        ("lone \ud83d high", "lone \ufffd high"),
        ("lone \ude00 low", "lone \ufffd low"),
        ("\ud83d\ude00", "😀"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("tab\tcr\rlf\n\x1b[0m", "tab\tcr\rlf\n\x1b[0m"),
    ],
)
@pytest.mark.behaviour("11.4")
def test_rule(given_text: str, kept: str) -> None:
    assert compute_clean_text(given_text) == kept


@given(ANY_TEXT)
@pytest.mark.behaviour("11.4")
def test_clean_text_is_unicode_and_stays_as_it_is(text: str) -> None:
    clean = compute_clean_text(text)
    clean.encode()
    assert not set(clean) & {"\x00", "\u2028", "\u2029"}
    assert compute_clean_text(clean) == clean


@given(ANY_VALUE)
def test_clean_values_are_json_and_stay_as_they_are(value: object) -> None:
    clean = compute_clean_value(value)
    json.dumps(clean, ensure_ascii=False).encode()
    assert compute_clean_value(clean) == clean


def test_keys_are_cleaned_too() -> None:
    assert compute_clean_value({"a\x00": ["\u2028", {"\ud800": 1}]}) == {"a\ufffd": ["\n", {"\ufffd": 1}]}
