"""Events of every kind, made by hypothesis from the records themselves."""

import typing
from typing import Any

import msgspec
from hypothesis import strategies as st

from alineod.domain.events import AnyBody, Row

NAMES = ["default/a", "default/b", "other/a"]
TEXT = st.text(max_size=6)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
PLAIN = {str: TEXT, int: st.integers(-1, 4), float: st.floats(), bool: st.booleans(), type(None): st.none(), Any: JSON}


def build_strategy(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a field's type."""
    if hint in PLAIN:
        return PLAIN[hint]
    arguments = typing.get_args(hint)
    match typing.get_origin(hint):
        case None if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
            return build_struct(hint)
        case None:
            return st.sampled_from(list(hint))
        case origin if origin is list:
            return st.lists(build_strategy(arguments[0]), max_size=2)
        case origin if origin is dict:
            return st.dictionaries(build_strategy(arguments[0]), build_strategy(arguments[1]), max_size=2)
        case _:
            return st.one_of(*map(build_strategy, arguments))


def build_struct(kind: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    hints = {name: hint for name, hint in typing.get_type_hints(kind).items() if not name.startswith("__")}
    fields = {name: build_strategy(hint) for name, hint in hints.items() if name in kind.__struct_fields__}
    if "usd" in fields:
        fields["usd"] |= st.decimals(0, 100, places=2).map(str) | st.sampled_from(["-1", "NaN", "Infinity", "9E999999"])
    return st.builds(kind, **fields)


BODIES = st.one_of(*map(build_struct, typing.get_args(AnyBody)))


def number_rows(parts: list[tuple[Any, str, str | None]]) -> list[Row]:
    return [
        Row(seq=seq, time=float(seq), id=str(seq), run=run, agent=agent, body=body, prev="", hash="")
        for seq, (body, run, agent) in enumerate(parts, start=1)
    ]


ROWS = st.lists(
    st.tuples(BODIES, st.sampled_from(NAMES), st.none() | st.sampled_from(NAMES)), max_size=25
).map(number_rows)  # fmt: skip
