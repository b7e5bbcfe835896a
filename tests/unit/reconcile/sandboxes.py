"""Sandboxes in memory: bridges that answer as the real one does, their journals, and the model's own log.

What happens to a sandbox from outside is `kubelets`'; what a bridge is asked for is the operator's.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from typing import Any

from alineod.bridge.memory import (
    Answer,
    KnownTurn,
    Memory,
    Situation,
    build_end,
    build_start,
    decide_answer,
    remember,
)
from alineod.domain.facts import PodFacts
from alineod.errors import Conflict, NotFound, Unavailable
from alineod.wire.archives import CheckpointReport, ForkRequest, ForkResult
from alineod.wire.turns import (
    AbortRequest,
    BridgeState,
    ErrorKind,
    Grant,
    JournalEvent,
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
    """What lives in one pod: its journal, and what its bridge makes of that by the real one's rules."""

    records: list[JournalRecord] = field(default_factory=list)
    memory: Memory = field(default_factory=Memory)
    gone: bool = False  # its processes have ended for good
    cut_off: bool = False  # they live, and nobody reaches them
    hung_since: float | None = None  # the bridge does not answer; on the clock of the simulation
    crashed_at: float | None = None  # the container ended as soon as it began
    draining: bool = False
    ready: bool = True  # as its kubelet finds it
    boot: int = 1
    epoch: int = 0  # of the latest leader that spoke here
    grant: Grant | None = None  # of the latest turn
    uploads: list[Upload] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def answers(self) -> bool:
        return not (self.gone or self.cut_off or self.hung_since is not None or self.crashed_at is not None)

    @property
    def seq(self) -> int:
        return self.records[-1].seq or 0 if self.records else 0

    @property
    def running(self) -> KnownTurn | None:
        latest = self.memory.latest
        return latest if latest is not None and latest.state is TurnState.RUNNING else None

    def copy(self) -> "Sandbox":
        """The same sandbox for another life."""
        uploads = [Upload(u.body, u.grant, u.report, u.said) for u in self.uploads]
        return replace(self, records=list(self.records), uploads=uploads, changed=asyncio.Event())

    def touch(self) -> None:
        """Whoever follows the journal looks again."""
        self.changed.set()

    def forget(self) -> None:
        """The journal is gone, and whoever speaks to this bridge next is told so."""
        self.records, self.memory = [], Memory()
        self.touch()

    def lose(self, request: TurnRequest) -> None:
        """Take note that what the request speaks of is gone."""
        data = {"from": self.seq + 1, "to": request.heard, "session": None, "halfway": False}
        self.write(request.turn, request.turn_id, JournalEvent.LOST, data, max(self.seq, request.heard) + 1)

    def write(self, turn: int, turn_id: str, event: str, data: dict[str, Any], seq: int | None = None) -> None:
        """Add a record to the journal."""
        record = JournalRecord(time=0.0, turn=turn, turn_id=turn_id, event=event, data=data, seq=seq or self.seq + 1)
        self.records.append(record)
        self.memory = remember(self.memory, record)
        self.touch()

    def end(self, turn: KnownTurn, state: TurnState, text: str = "", error: TurnError | None = None) -> None:
        """The turn's end, with what it used."""
        tools = [str(r.data["name"]) for r in self.records if r.turn == turn.turn and r.event == "tool.started"]
        result = TurnResult(
            turn=turn.turn, turn_id=turn.turn_id, state=state, text=text, error=error, usage=USED,
            tools=[] if state is TurnState.CLEAN else tools,
        )  # fmt: skip
        self.write(turn.turn, turn.turn_id, "turn.ended", build_end(result, settled=True))

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
        latest = sandbox.memory.latest
        return BridgeState(
            agent=pod.name, incarnation=pod.incarnation, boot=str(sandbox.boot), ready=True,
            turn=latest.accepted if latest else None, journal_seq=sandbox.seq, draining=sandbox.draining,
        )  # fmt: skip

    async def start_turn(self, pod: PodFacts, token: str, request: TurnRequest) -> TurnAccepted:
        self.hook("before start turn")
        sandbox = self._find(pod)
        if request.epoch < sandbox.epoch:
            raise Conflict("StaleEpoch", "a leader of a later epoch has spoken here")
        sandbox.epoch = request.epoch
        situation = Situation(sandbox.draining, running=sandbox.running is not None, journal_seq=sandbox.seq)
        match decide_answer(sandbox.memory, request, situation):
            case Answer.KNOWN:
                pass
            case Answer.START:
                self._begin(pod, sandbox, request)
            case Answer.JOURNAL_RESET:
                sandbox.lose(request)
                raise Conflict("JournalReset", "the journal of the turn is gone")
            case Answer.DRAINING:
                raise Unavailable("BridgeBusy", "the sandbox is shutting down")
            case answer:
                raise Conflict(answer, f"turn {request.turn} is not begun here")
        self.hook("after start turn")
        return sandbox.memory.turns[request.turn].accepted

    def _begin(self, pod: PodFacts, sandbox: Sandbox, request: TurnRequest) -> None:
        self.asked.append((request.turn_id, request.text))
        self.starts.append((request.turn_id, request.turn))
        sandbox.grant = request.grant
        started = {**build_start(request), "pod": pod.uid}
        sandbox.write(request.turn, request.turn_id, "turn.started", started)
        if "HANG" in request.text:
            sandbox.write(request.turn, request.turn_id, "tool.started", {"name": "bash", "pod": pod.uid})
        elif "FAIL" in request.text and sandbox.running:
            error = TurnError(kind=ErrorKind.PROVIDER, message="the model refused")
            sandbox.end(sandbox.running, TurnState.FAILED, "", error)
        else:
            self.finish(pod, f"did: {request.text}")

    def finish(self, pod: PodFacts, text: str) -> None:
        """The turn that runs there ends well, whoever listens; its archive is cut if it was asked for."""
        sandbox = self.pods[pod.uid]
        turn = sandbox.running
        if turn is None or sandbox.gone or sandbox.hung_since is not None:
            return
        said = {"role": "assistant", "text": text, "pod": pod.uid}
        sandbox.write(turn.turn, turn.turn_id, "message", said)
        sandbox.end(turn, TurnState.CLEAN, text)
        if turn.checkpoint:
            sandbox.uploads.append(_cut(pod, turn, sandbox.grant))

    async def follow(self, pod: PodFacts, token: str, after: int) -> AsyncIterator[JournalRecord]:
        self.hook("follow")
        boot = self._find(pod).boot
        while True:
            sandbox = self._find(pod)
            if sandbox.boot != boot:
                raise Unavailable("BridgeNotAnswering", f"the journal of {pod.name} broke off")
            sandbox.changed.clear()
            for record in list(sandbox.records):
                if (record.seq or 0) > after:
                    after = record.seq or 0
                    yield record
            await sandbox.changed.wait()

    async def abort_turn(self, pod: PodFacts, token: str, turn_id: str, request: AbortRequest) -> TurnAccepted:
        self.hook("before abort turn")
        sandbox = self._find(pod)
        if request.epoch < sandbox.epoch:
            raise Conflict("StaleEpoch", "a leader of a later epoch has spoken here")
        if (known := sandbox.memory.find(turn_id)) is None:
            raise NotFound("TurnNotFound", f"this pod knows no turn with the id {turn_id}")
        if sandbox.running is not None and sandbox.running.turn == known.turn:
            sandbox.end(known, TurnState.ABORTED, error=TurnError(kind=ErrorKind.ABORTED, message=request.reason))
        self.hook("after abort turn")
        return sandbox.memory.turns[known.turn].accepted

    async def cut_fork(self, pod: PodFacts, token: str, request: ForkRequest) -> ForkResult:
        self.hook("before cut fork")
        self._find(pod)
        self.hook("after cut fork")
        return ForkResult(fork_id=request.fork_id, sha256="f", bytes=1, md5="f", uploaded=False)


def _cut(pod: PodFacts, turn: KnownTurn, grant: Grant | None) -> Upload:
    body = f"{pod.name} after turn {turn.turn}".encode()
    report = CheckpointReport(
        turn=turn.turn, turn_id=turn.turn_id, incarnation=pod.incarnation, snapshot_ref=f"{turn.turn}",
        sha256=hashlib.sha256(body).hexdigest(), md5=hashlib.md5(body, usedforsecurity=False).hexdigest(),
        bytes=len(body),
    )  # fmt: skip
    return Upload(body, grant, report)
