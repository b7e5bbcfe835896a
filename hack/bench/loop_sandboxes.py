"""1,000 sandboxes that report: each by a clock of its own, whatever the operator's loop does meanwhile.

They run on that loop, in the place of the sockets that a real journal is read from. What they have said is kept as
bytes, which no collection of garbage looks at.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator

import msgspec

from alineod.domain.facts import PodFacts
from alineod.kube.objects import Json
from alineod.wire.base import decode, encode
from alineod.wire.turns import JournalRecord, TurnAccepted, TurnRequest, TurnResult, TurnState
from tests.unit.reconcile.simulation import Sandbox, Sandboxes

DELTAS = 4
"""Text deltas of each agent a second; one event of the journal comes with them."""
OUTPUT = "x" * 200


class Journal:
    """One turn that goes on until it is ended. `begun` is on the monotonic clock."""

    def __init__(self, sandbox: Sandbox, begun: float) -> None:
        self._first, self.begun, self.ended = sandbox.records[0], begun, False
        self.lines = [encode(record) for record in sandbox.records]
        self._delta = encode(self._build("text.delta", {"text": "word "}, None))

    def write(self, now: float) -> None:
        """Everything that has happened by now: an event a second."""
        while not self.ended and len(self.lines) < now - self.begun:
            self._add("tool.ended", {"name": "bash", "text": OUTPUT})

    def end(self) -> None:
        """The turn ends well."""
        result = TurnResult(turn=self._first.turn, turn_id=self._first.turn_id, state=TurnState.CLEAN, text="done")
        self._add("turn.ended", msgspec.to_builtins(result))
        self.ended = True

    def read(self, after: int) -> Iterator[bytes]:
        """The lines after that number, and a delta when there are none."""
        yield from self.lines[after:]
        if len(self.lines) == after:
            yield self._delta

    def _add(self, event: str, data: Json) -> None:
        self.lines.append(encode(self._build(event, data, len(self.lines) + 1)))

    def _build(self, event: str, data: Json, seq: int | None) -> JournalRecord:
        first = self._first
        return JournalRecord(time=time.time(), turn=first.turn, turn_id=first.turn_id, event=event, data=data, seq=seq)


class Reporting(Sandboxes):
    """Sandboxes whose turns go on telling; `followers` counts who listens."""

    def __init__(self) -> None:
        super().__init__(lambda what: None)
        self._journals: dict[str, Journal] = {}
        self.followers = 0

    def end(self, pod_uid: str) -> None:
        """End the turn that runs there."""
        self._journals[pod_uid].end()

    async def start_turn(self, pod: PodFacts, token: str, request: TurnRequest) -> TurnAccepted:
        """A later leader asks for the turn that runs, and says how far it has read: that was in the journal."""
        if (journal := self._journals.get(pod.uid)) is not None:
            self._find(pod).records[1:] = [decode(JournalRecord, line) for line in journal.lines[1:][-1:]]
        return await super().start_turn(pod, token, request)

    async def follow(self, pod: PodFacts, token: str, after: int) -> AsyncIterator[JournalRecord]:
        if pod.uid not in self._journals:
            self._journals[pod.uid] = Journal(self._find(pod), time.monotonic())
        journal = self._journals[pod.uid]
        self.followers += 1
        try:
            while True:
                journal.write(time.monotonic())
                for line in journal.read(after):
                    record = decode(JournalRecord, line)
                    after = record.seq or after
                    yield record
                await asyncio.sleep(_compute_pause(journal, time.monotonic()))
        finally:
            self.followers -= 1


def _compute_pause(journal: Journal, now: float) -> float:
    """Until the sandbox has something to say again: five times a second, at moments of its own."""
    period = 1 / (DELTAS + 1)
    return period - (now - journal.begun) % period
