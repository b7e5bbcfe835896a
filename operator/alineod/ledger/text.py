"""The rule for text that a ledger cannot hold: replaced before it is written, so that a replay gives the same.

- a surrogate without its other half becomes U+FFFD; two halves become the character they mean;
- NUL becomes U+FFFD;
- the separators U+2028 and U+2029, at which some readers end a line, become a line feed.
"""

from typing import Any

_REPLACED = str.maketrans({"\x00": "\ufffd", "\u2028": "\n", "\u2029": "\n"})


def compute_clean_text(text: str) -> str:
    """`text` by the rule of this module; valid text without separators is returned as it is."""
    if text.isascii():
        return text.replace("\x00", "\ufffd")
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").translate(_REPLACED)


def compute_clean_value(value: Any) -> Any:
    """A JSON value with the rule applied to every string in it, keys of objects too."""
    match value:
        case str():
            return compute_clean_text(value)
        case dict():
            return {compute_clean_value(key): compute_clean_value(item) for key, item in value.items()}
        case list() | tuple():
            return [compute_clean_value(item) for item in value]
        case _:
            return value
