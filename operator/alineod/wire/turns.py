"""What the operator and the bridge say to each other about turns.

Bridge API, HTTP on port 8790 of the pod, `Authorization: Bearer <bridge token>` on all but the first two:

    GET  /livez                      200 at once for as long as the bridge lives
    GET  /healthz                    200 when turns are taken here (one may be running), else 503 and a sentence
    GET  /v1/state                   BridgeState
    POST /v1/turns                   TurnRequest -> TurnAccepted; the same turn and turnId again answers how it stands
                                     and starts nothing; a later turn under the same turnId is a further attempt.
                                     409 another turn runs or the number was used, a leader of a later epoch has
                                     spoken here (StaleEpoch), or it may have begun and its journal is gone
                                     (JournalReset): nothing is started, and `journal.lost` is journaled;
                                     423 its archive is being cut, 503 not ready or draining
    POST /v1/turns/{turnId}/abort    AbortRequest -> TurnAccepted
    GET  /v1/journal?after=N&follow= JournalRecord per line (NDJSON); follow=1 stays open, adds records without seq
                                     (text deltas), and sends an empty line every 10 s; 409 JournalReset when record
                                     N is not here any more
"""

from enum import StrEnum
from typing import Any

from alineod.wire.base import Message

BRIDGE_PORT = 8790


class JournalEvent(StrEnum):
    """What a record of the journal says, as far as anything follows from it; see `JournalRecord`."""

    TURN_STARTED = "turn.started"
    TURN_ENDED = "turn.ended"
    MESSAGE = "message"
    TOOL_STARTED = "tool.started"
    TOOL_ENDED = "tool.ended"
    RETRY = "retry"
    COMPACTION = "compaction"
    PERMISSION = "permission"
    ERROR = "error"
    SILENCE = "silence"
    CHECKPOINT_CUT = "checkpoint.cut"
    CHECKPOINT_FAILED = "checkpoint.failed"
    DAMAGED = "journal.damaged"
    LOST = "journal.lost"
    TEXT_DELTA = "text.delta"
    TEXT_RESET = "text.reset"


class BridgeReason(StrEnum):
    """Why a bridge refuses, or is not ready, as far as anything follows from it: `reason` of its problem or state."""

    JOURNAL_RESET = "JournalReset"  # the journal that was heard is gone
    OTHER_PROMPT = "OtherPrompt"  # the number was used for another prompt,
    OTHER_TURN = "OtherTurn"  # for a turn with another id,
    STALE_TURN = "StaleTurn"  # or is older than the newest here
    SETUP_FAILED = "SetupFailed"
    UNAUTHORIZED = "Unauthorized"  # it knows another token
    LOCKED = "TokenMissing"  # it has nothing to know anybody by


class TurnState(StrEnum):
    RUNNING = "running"
    CLEAN = "clean"
    FAILED = "failed"
    ABORTED = "aborted"
    INTERRUPTED = "interrupted"


class ErrorKind(StrEnum):
    PROVIDER = "provider"
    TRUNCATED = "truncated"
    TIMEOUT = "timeout"
    ABORTED = "aborted"
    HARNESS = "harness"
    SESSION = "session"
    SETUP = "setup"
    INTERRUPTED = "interrupted"  # its container ended, or is about to
    KILLED = "killed"  # somebody has ended the harness in a container that goes on


class TurnError(Message, frozen=True):
    kind: ErrorKind
    message: str


class Usage(Message, frozen=True):
    """Tokens and money. `usd` is a decimal string; None when the harness does not know the price."""

    input_tokens: int = 0
    output_tokens: int = 0
    usd: str | None = None


class Session(Message, frozen=True):
    """Where the harness's conversation stood after a clean turn: what a restore must come back to."""

    id: str
    leaf: str
    file: str = ""  # below the home directory
    bytes: int = 0


class TurnLimits(Message, frozen=True):
    """Seconds; `turn_max` counts unpaused time."""

    turn_max: float = 1800.0
    prompt_inactivity: float = 180.0


class Grant(Message, frozen=True):
    """One presigned request for one object. Whoever holds it needs no key."""

    method: str
    url: str
    headers: dict[str, str] = {}
    key: str = ""
    expires_at: float = 0.0  # Unix seconds


class TurnRequest(Message, frozen=True):
    """One prompt. `turn_id` is the same for every attempt at this turn and is ALINEO_TURN_ID in the sandbox.

    `epoch` is the term of the leader who asks, `heard` the newest record of this pod's journal that the ledger holds.
    `preface` is said before the prompt and is no part of it: whoever asks again may word it otherwise.
    """

    turn: int
    turn_id: str
    prompt: str
    preface: str = ""
    epoch: int = 0
    heard: int = 0
    limits: TurnLimits = TurnLimits()
    checkpoint: bool = False
    grant: Grant | None = None  # to upload this turn's checkpoint

    @property
    def text(self) -> str:
        """What the harness is given."""
        return f"{self.preface}\n\n{self.prompt}" if self.preface else self.prompt


class TurnAccepted(Message, frozen=True):
    turn: int
    turn_id: str
    state: TurnState


class AbortRequest(Message, frozen=True):
    reason: str
    epoch: int = 0


class TurnResult(Message, frozen=True):
    """How a turn ended. `text` is the last assistant text, or what survived of it."""

    turn: int
    turn_id: str
    state: TurnState
    text: str = ""
    error: TurnError | None = None
    usage: Usage = Usage()
    session: Session | None = None  # clean turns only
    tools: list[str] = []  # names of the tools that had started, for an interrupted turn


class JournalRecord(Message, frozen=True):
    """One event of a turn. `seq` counts from 1 over the life of the pod without gaps; None for a text delta.

    `event` is `turn.started` or `turn.ended` (data: TurnResult, whatever its state), or the harness's own:
    `message`, `tool.started`, `tool.ended`, `retry`, `compaction`, `permission`, `error`; or the bridge's: `silence`
    (nothing was heard for promptInactivity), after the end `checkpoint.cut` and `checkpoint.failed`, and of the
    journal itself `journal.damaged` (in the place of `missing` records `from` to `to`, under the last one's number) and
    `journal.lost` (what was read under the numbers `from` to `to` is not to be found here any more, nor is the end of
    the turn: it may have run, and does not run again). No seq have
    `text.delta` (data: {"text"}) and `text.reset` (the text so far of the running message was given up by a retry).
    """

    time: float  # Unix seconds
    turn: int
    turn_id: str
    event: str
    data: dict[str, Any] = {}
    seq: int | None = None


class BridgeState(Message, frozen=True):
    """`boot` changes whenever the bridge process is a new one. `turn` is the latest turn this pod knows."""

    agent: str
    incarnation: int
    boot: str
    ready: bool
    reason: str = ""  # CamelCase, when not ready
    message: str = ""
    turn: TurnAccepted | None = None
    journal_seq: int = 0
    gate_shut: bool = False
    draining: bool = False
    paused: bool = False
    restored_turn: int | None = None
    harness: str = ""
