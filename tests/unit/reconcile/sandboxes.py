"""Sandboxes in memory: bridges that answer as the real one does, their journals, and the model's own log.

What happens to a sandbox from outside is `kubelets`'; what a bridge is asked for is the operator's.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from alineod.domain.facts import PodFacts
from alineod.errors import Conflict, Unavailable
from alineod.wire.archives import CheckpointReport, ForkRequest, ForkResult
from alineod.wire.turns import (
    BridgeState,
    ErrorKind,
    Grant,
    JournalRecord,
    TurnAccepted,
    TurnError,
    TurnRequest,
    TurnResult,
    TurnState,
    Usage,
)

USED = Usage(input_tokens=10, output_tokens=1)


@dataclass
class Upload:
    """An archive that was cut and is not yet taken note of: its body, where it may go, and what is said of it."""

    body: bytes
    grant: Grant | None
    report: CheckpointReport
    said: str = "nothing"  # the upload error that was reported last


@dataclass
class Sandbox:
    """What lives in one pod: the turns it was given, by number, and its journal."""

    records: list[JournalRecord] = field(default_factory=list)
    turns: dict[int, TurnAccepted] = field(default_factory=dict)
    gone: bool = False  # its processes have ended for good
    cut_off: bool = False  # they live, and nobody reaches them
    hung_since: float | None = None  # the bridge does not answer; on the clock of the simulation
    draining: bool = False
    boot: int = 1
    epoch: int = 0  # of the latest leader that spoke here
    request: TurnRequest | None = None  # of the latest turn
    uploads: list[Upload] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def answers(self) -> bool:
        return not (self.gone or self.cut_off or self.hung_since is not None)

    @property
    def running(self) -> TurnAccepted | None:
        return next((turn for turn in self.turns.values() if turn.state is TurnState.RUNNING), None)

    def copy(self) -> "Sandbox":
        """The same sandbox for another life."""
        uploads = [Upload(u.body, u.grant, u.report, u.said) for u in self.uploads]
        return Sandbox(
            list(self.records), dict(self.turns), self.gone, self.cut_off, self.hung_since, self.draining, self.boot,
            self.epoch, self.request, uploads,
        )  # fmt: skip

    def touch(self) -> None:
        """Whoever follows the journal looks again."""
        self.changed.set()

    def write(self, turn: TurnAccepted, event: str, data: dict[str, Any]) -> None:
        """Add a record to the journal."""
        seq = len(self.records) + 1
        self.records.append(
            JournalRecord(time=0.0, turn=turn.turn, turn_id=turn.turn_id, event=event, data=data, seq=seq)
        )
        self.touch()

    def end(self, turn: TurnAccepted, state: TurnState, text: str = "", error: TurnError | None = None) -> None:
        """The turn's end, with what it used."""
        tools = [str(r.data["name"]) for r in self.records if r.turn == turn.turn and r.event == "tool.started"]
        result = TurnResult(
            turn=turn.turn, turn_id=turn.turn_id, state=state, text=text, error=error, usage=USED,
            tools=[] if state is TurnState.CLEAN else tools,
        )  # fmt: skip
        self.turns[turn.turn] = TurnAccepted(turn=turn.turn, turn_id=turn.turn_id, state=state)
        self.write(turn, "turn.ended", msgspec.to_builtins(result))

    def interrupt(self, why: str) -> None:
        """The turn that runs is cut off, and the bridge writes that down."""
        if (turn := self.running) is not None:
            error = TurnError(kind=ErrorKind.INTERRUPTED, message=why)
            self.end(turn, TurnState.INTERRUPTED, "half", error)


@dataclass
class Sandboxes:
    """`Bridges` in memory, by pod UID. `asked` is the model's own log: every prompt that reached it, by turn id.

    `starts` has the turn's id and number of each of those.
    """

    hook: Callable[[str], None]
    pods: dict[str, Sandbox] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    starts: list[tuple[str, int]] = field(default_factory=list)

    def _find(self, pod: PodFacts) -> Sandbox:
        sandbox = self.pods.get(pod.uid)
        if sandbox is None or not sandbox.answers:
            raise Unavailable("BridgeNotAnswering", f"{pod.name} does not answer")
        return sandbox

    async def read_state(self, pod: PodFacts, token: str) -> BridgeState:
        self.hook("read state")
        sandbox = self._find(pod)
        latest = sandbox.turns[max(sandbox.turns)] if sandbox.turns else None
        return BridgeState(
            agent=pod.name, incarnation=pod.incarnation, boot=str(sandbox.boot), ready=True, turn=latest,
            journal_seq=len(sandbox.records), draining=sandbox.draining,
        )  # fmt: skip

    async def start_turn(self, pod: PodFacts, token: str, request: TurnRequest) -> TurnAccepted:
        self.hook("before start turn")
        sandbox = self._find(pod)
        _check(sandbox, request)
        sandbox.epoch = request.epoch
        if request.turn not in sandbox.turns:
            self._begin(pod, sandbox, request)
        self.hook("after start turn")
        return sandbox.turns[request.turn]

    def _begin(self, pod: PodFacts, sandbox: Sandbox, request: TurnRequest) -> None:
        self.asked.append((request.turn_id, request.text))
        self.starts.append((request.turn_id, request.turn))
        turn = TurnAccepted(turn=request.turn, turn_id=request.turn_id, state=TurnState.RUNNING)
        sandbox.turns[turn.turn], sandbox.request = turn, request
        sandbox.write(turn, "turn.started", {"pod": pod.uid, "checkpoint": request.checkpoint})
        if "HANG" in request.text:
            sandbox.write(turn, "tool.started", {"name": "bash", "pod": pod.uid})
        elif "FAIL" in request.text:
            sandbox.end(turn, TurnState.FAILED, "", TurnError(kind=ErrorKind.PROVIDER, message="the model refused"))
        else:
            self.finish(pod, f"did: {request.text}")

    def finish(self, pod: PodFacts, text: str) -> None:
        """The turn that runs there ends well, whoever listens; its archive is cut if it was asked for."""
        sandbox = self.pods[pod.uid]
        turn, request = sandbox.running, sandbox.request
        if turn is None or request is None or sandbox.gone:
            return
        sandbox.write(turn, "message", {"role": "assistant", "text": text, "pod": pod.uid})
        sandbox.end(turn, TurnState.CLEAN, text)
        if request.checkpoint:
            sandbox.uploads.append(_cut(pod, turn, request.grant))

    async def follow(self, pod: PodFacts, token: str, after: int) -> AsyncIterator[JournalRecord]:
        self.hook("follow")
        while True:
            sandbox = self._find(pod)
            sandbox.changed.clear()
            for record in sandbox.records[after:]:
                after += 1
                yield record
            await sandbox.changed.wait()

    async def cut_fork(self, pod: PodFacts, token: str, request: ForkRequest) -> ForkResult:
        self.hook("before cut fork")
        self._find(pod)
        self.hook("after cut fork")
        return ForkResult(fork_id=request.fork_id, sha256="f", bytes=1, md5="f", uploaded=False)


def _check(sandbox: Sandbox, request: TurnRequest) -> None:
    """Refuse what a bridge refuses. A turn that is known is answered whatever else is so."""
    if request.epoch < sandbox.epoch:
        raise Conflict("StaleEpoch", "a leader of a later epoch has spoken here")
    known = sandbox.turns.get(request.turn)
    if known is not None:
        if known.turn_id != request.turn_id:
            raise Conflict("OtherTurn", f"number {request.turn} belongs to a turn with another id")
        return
    if sandbox.turns and request.turn < max(sandbox.turns):
        raise Conflict("StaleTurn", f"turn {request.turn} is older than the newest here")
    if sandbox.draining:
        raise Unavailable("BridgeBusy", "the sandbox is shutting down")
    if sandbox.running is not None:
        raise Conflict("TurnRunning", "another turn runs")


def _cut(pod: PodFacts, turn: TurnAccepted, grant: Grant | None) -> Upload:
    body = f"{pod.name} after turn {turn.turn}".encode()
    report = CheckpointReport(
        turn=turn.turn, turn_id=turn.turn_id, incarnation=pod.incarnation, snapshot_ref=f"{turn.turn}",
        sha256=hashlib.sha256(body).hexdigest(), md5=hashlib.md5(body, usedforsecurity=False).hexdigest(),
        bytes=len(body),
    )  # fmt: skip
    return Upload(body, grant, report)
