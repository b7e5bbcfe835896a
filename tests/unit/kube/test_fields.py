"""Server-side apply on mappings: owners, lists that merge, and what giving up a field does."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from alineod.kube.fields import Applied, compute_applied, find_leaves

EMPTY = Applied({}, {})


def apply(before: Applied, intent: dict[str, Any], manager: str = "us") -> Applied:
    return compute_applied(before.obj, before.owners, intent, manager)


def test_a_field_is_removed_by_who_alone_owned_it() -> None:
    first = apply(EMPTY, {"spec": {"a": 1, "b": {"c": 2}}})
    assert apply(first, {"spec": {"a": 1}}).obj == {"spec": {"a": 1}}


def test_a_field_of_two_owners_stays_until_both_give_it_up() -> None:
    shared = apply(apply(EMPTY, {"a": 1}), {"a": 1}, "them")
    one = apply(shared, {})
    assert one.obj == {"a": 1}
    assert apply(one, {}, "them").obj == {}


def test_setting_another_value_disputes_and_takes_over() -> None:
    taken = apply(apply(EMPTY, {"a": 1}, "them"), {"a": 2})
    assert (taken.obj, taken.disputed) == ({"a": 2}, (("a",),))
    assert apply(taken, {}, "them").obj == {"a": 2}


def test_plain_lists_are_one_value() -> None:
    first = apply(EMPTY, {"list": [1, 2]})
    assert apply(first, {"list": [3]}).obj == {"list": [3]}
    assert apply(first, {"list": []}).obj == {"list": []}


def test_conditions_merge_by_type() -> None:
    theirs = apply(EMPTY, {"conditions": [{"type": "A", "status": "True"}]}, "them")
    both = apply(theirs, {"conditions": [{"type": "B", "status": "True"}]})
    changed = apply(both, {"conditions": [{"type": "B", "status": "False"}]})
    assert changed.obj == {"conditions": [{"type": "A", "status": "True"}, {"type": "B", "status": "False"}]}
    assert apply(changed, {"conditions": []}).obj == theirs.obj


values = st.recursive(
    st.integers() | st.text(max_size=3) | st.booleans() | st.none(),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3) | st.lists(inner, max_size=2),
    max_leaves=8,
)
intents = st.dictionaries(st.sampled_from("abc"), values, max_size=3)


def read_filled(obj: dict[str, Any]) -> dict[Any, Any]:
    """What an object says, whether or not it writes down empty mappings."""
    return {path: value for path, value in find_leaves(obj) if value != {}}


@given(intents, intents)
def test_an_intent_stands_whole_and_a_second_time_changes_nothing(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    result = apply(apply(EMPTY, first), second)
    assert read_filled(result.obj) == read_filled(second)
    assert apply(result, second).obj == result.obj


@given(intents)
def test_leaves_say_everything(obj: dict[str, Any]) -> None:
    assert apply(EMPTY, obj).obj == obj
