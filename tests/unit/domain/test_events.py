"""The events: their names, and that every one of them survives being written and read."""

import typing

import msgspec
import pytest
from hypothesis import given

from alineod.domain import events as ev
from alineod.domain.events import AnyBody, Entry, event_name
from alineod.ledger.records import parse_payload, prepare_entries
from tests.unit.domain.rows import BODIES

# The contract's own list. A name here is never taken away.
NAMES = """
    run.started run.deleted run.quiescent agent.spawned agent.provisioned agent.state_changed agent.turn_started
    agent.turn_ended agent.turn_failed agent.turn_interrupted agent.checkpointed agent.checkpoint_uploaded
    agent.restored agent.steered agent.supervision_needed agent.ended agent.released handle.settled budget.denied
    wait.resolved wait.blocked notify.registered inbox.queued inbox.delivered inbox.dropped
"""

# Payloads as earlier versions wrote them. They are read for ever: add a line, never change one.
WRITTEN = [
    ('{"event":"run.started","uid":"u","clusterUid":"c","instance":"default"}',
     ev.RunStarted(uid="u", cluster_uid="c", instance="default")),
    ('{"event":"agent.turn_ended","turn":1,"turnId":"t","text":"yes"}',
     ev.AgentTurnEnded(turn=1, turn_id="t", text="yes")),
    ('{"event":"agent.state_changed","state":"blocked","reason":"Asked"}',
     ev.AgentStateChanged(state=ev.LedgerState.BLOCKED, reason="Asked")),
    ('{"event":"harness.event","type":"tool.started","turn":1,"incarnation":1,"seq":4,"data":{"name":"bash"}}',
     ev.HarnessEvent(type="tool.started", turn=1, incarnation=1, seq=4, data={"name": "bash"})),
]  # fmt: skip


@pytest.mark.behaviour("8.1")
def test_every_event_of_the_contract_has_its_record() -> None:
    kinds = [kind for kind in typing.get_args(AnyBody) if kind is not ev.HarnessEvent]
    assert sorted(str(kind.__struct_config__.tag) for kind in kinds) == sorted(NAMES.split())


def test_events_of_a_harness_have_its_names() -> None:
    assert event_name(ev.HarnessEvent(type="tool.started", turn=1, incarnation=1, seq=1)) == "harness.tool.started"
    assert event_name(ev.RunQuiescent()) == "run.quiescent"


@pytest.mark.parametrize(("payload", "body"), WRITTEN, ids=lambda value: getattr(value, "text", None) or "row")
def test_what_was_written_once_is_read_for_ever(payload: str, body: AnyBody) -> None:
    assert parse_payload(payload) == body


@given(BODIES)
def test_every_event_survives_the_ledger(body: AnyBody) -> None:
    [prepared] = prepare_entries([Entry(id="x", run="n/s", agent=None, body=body)])
    assert prepared.event == event_name(prepared.body)
    assert parse_payload(prepared.payload) == prepared.body
    assert msgspec.json.decode(prepared.payload)["event"] == type(body).__struct_config__.tag
