"""What bridge, checkpointer, restore and operator say to each other about archives.

Checkpointer API, HTTP on port 8791 of the pod, `Authorization: Bearer <bridge token>` on all but /healthz:

    GET  /healthz                200
    POST /v1/cut                 CutRequest -> CutResult once the archive is on the local disk and was read back;
                                 the bridge keeps its turn gate shut while it waits; the upload goes on afterwards
    POST /v1/forks               ForkRequest -> ForkResult once the archive is cut (and uploaded, if there is a grant)
    GET  /v1/forks/{forkId}      the archive's bytes, for `Bearer <read token>` of that fork

Operator API for sandboxes, HTTP, `Authorization: Bearer <projected token, audience alineod>`; the token's pod UID
says who asks:

    POST /v1/sandbox/start         StartRequest -> StartOrder; 425 until the ledger holds this pod and it is its turn
    POST /v1/sandbox/grants        GrantRequest -> Grant
    POST /v1/sandbox/checkpoints   CheckpointReport -> Recorded
"""

from enum import StrEnum

from alineod.wire.base import Message
from alineod.wire.turns import Grant, Session

CHECKPOINTER_PORT = 8791
AUDIENCE = "alineod"
ADMISSION = "bridge-token"  # in the control volume: what bridge and checkpointer are asked with


class CutRequest(Message, frozen=True):
    """Asks for the checkpoint of a turn that ended cleanly."""

    turn: int
    turn_id: str
    session: Session | None = None
    grant: Grant | None = None


class CutResult(Message, frozen=True):
    turn: int
    sha256: str
    bytes: int


class CheckpointReport(Message, frozen=True):
    """The sidecar's word on one checkpoint; sent after the upload, or after it failed, until the operator took it."""

    turn: int
    turn_id: str
    incarnation: int
    snapshot_ref: str  # file name in the pod's checkpoint volume
    sha256: str  # hex, of the archive's bytes
    md5: str  # hex
    bytes: int
    key: str = ""  # the object it was uploaded to; empty when it was not
    upload_error: str = ""
    session: Session | None = None  # from the cut request


class Recorded(Message, frozen=True):
    """`done`: the report stands in the ledger; the sidecar may forget it."""

    done: bool
    message: str = ""


class GrantRequest(Message, frozen=True):
    turn: int
    incarnation: int


class SourceKind(StrEnum):
    CHECKPOINT = "checkpoint"
    FORK = "fork"


class Source(Message, frozen=True):
    """One archive a pod may start from. Tried in the order given; the digest decides whether it counts."""

    kind: SourceKind
    turn: int | None  # of the checkpoint; None for a fork
    sha256: str
    bytes: int
    get: Grant
    snapshot_ref: str = ""  # tried first, in the pod's own checkpoint volume
    session: Session | None = None


class InputFile(Message, frozen=True):
    """One file the operator writes for the agent. `path` is absolute: /inputs/<agent>.txt or /inputs.json."""

    path: str
    text: str


class StartRequest(Message, frozen=True):
    """`waiting_for` is a sentence when the last order could not be carried out yet, such as about the bucket.

    `resting`: that is only told, before a rest; an order is asked for afterwards.
    """

    incarnation: int
    waiting_for: str = ""
    resting: bool = False


class StartOrder(Message, frozen=True):
    """How a pod starts: from which archive, with which inputs, and the token its bridge is to ask for."""

    bridge_token: str
    sources: list[Source] = []
    inputs: list[InputFile] = []


class Tried(Message, frozen=True):
    """An archive that did not serve, and why."""

    turn: int | None  # None: a fork
    where: str  # local or remote
    error: str


class RestoreReport(Message, frozen=True):
    """What the restore container did; its termination message (at most 4096 bytes), read from the pod's status.

    `start` is `fresh`, `fork`, `checkpoint`, `blank` (checkpoints exist, every one was read and found bad) or `kept`
    (this pod had started before: nothing was unpacked).
    """

    start: str
    turn: int | None = None
    where: str = ""
    sha256: str = ""
    session: Session | None = None
    tried: list[Tried] = []


class ForkRequest(Message, frozen=True):
    """Asks for a copy of the files as they are now. `exclude` are paths below home that stay behind."""

    fork_id: str
    read_token: str
    exclude: list[str] = []
    grant: Grant | None = None


class ForkResult(Message, frozen=True):
    fork_id: str
    sha256: str
    bytes: int
    md5: str
    uploaded: bool
