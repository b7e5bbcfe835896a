"""The reference page of the events."""

import typing

from alineod.domain.events import AnyBody
from alineod.ledger.reference import build_events_reference


def test_every_event_and_field_has_its_line() -> None:
    page = build_events_reference()
    sections = {section.split("`", 1)[0]: section for section in page.split("\n## `")[1:]}
    assert len(sections) == len(typing.get_args(AnyBody))
    for kind in typing.get_args(AnyBody):
        name = "harness.<type>" if kind.__name__ == "HarnessEvent" else kind.__struct_config__.tag
        for field in kind.__struct_encode_fields__:
            assert f"| `{field}` | " in sections[name]


def test_a_section() -> None:
    assert """
## `agent.provisioned`

A pod was made for the agent; nothing builds on a pod before this stands in the ledger.

`cause` says why the one before it went, `own_fault` whether that counts against the agent.

| field | type | default |
|---|---|---|
| `pod` | text |  |
| `uid` | text |  |
| `incarnation` | integer |  |
| `rung` | one of `Reattach`, `Resume`, `Restore` or null | `null` |
| `cause` | text | `""` |
| `ownFault` | true or false | `false` |
""" in build_events_reference()
