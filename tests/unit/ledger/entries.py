"""Entries to append, made short."""

from typing import Any

from alineod.domain import events as ev
from alineod.domain.events import Entry

RUN = "default/survey"
AGENT = "default/survey-lead"


def build_entry(number: int, run: str = RUN, agent: str | None = AGENT, **data: Any) -> Entry:
    """A forwarded harness event; `number` is its journal number and part of its id."""
    body = ev.HarnessEvent(type="message", turn=1, incarnation=1, seq=number, data=data)
    return Entry(id=f"{agent or run}/1/{number}", run=run, agent=agent, body=body)


def build_text(text: str, id: str = "text", agent: str = AGENT) -> Entry:  # noqa: A002
    return Entry(id=id, run=RUN, agent=agent, body=ev.AgentSteered(turn=1, text=text))
