"""Everything a pass may touch, wired once by the composition root, and what one term of a leader remembers."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto

from alineod.bucket.port import Bucket
from alineod.clock import Clock
from alineod.domain.causes import End
from alineod.domain.facts import Trouble
from alineod.errors import Unavailable
from alineod.kube.gateway import Gateway
from alineod.kube.objects import Ref
from alineod.kube.store import Store
from alineod.ledger.port import Ledger
from alineod.podspec.context import PodContext
from alineod.reconcile.bridges import Bridges, build_bridge_token
from alineod.reconcile.parsed import Parsed
from alineod.reconcile.reconnect import Reconnection
from alineod.wire.heard import Heard as TurnHeard
from alineod.wire.turns import BridgeState


@dataclass(frozen=True)
class Heard:
    """What a bridge last said, by which process and when (Unix seconds)."""

    state: BridgeState
    restarts: int
    at: float


@dataclass(frozen=True)
class Silence:
    """A bridge left this many questions in a row without an answer, the last of them at `asked_at` (Unix seconds)."""

    tries: int = 0
    asked_at: float = 0.0


class Stage(Enum):
    """How far the pod is for which a place is held."""

    MAKING = auto()  # the API server is asked for it
    MADE = auto()  # it is there and has not asked yet how to start
    TOLD = auto()  # it unpacks, or may


@dataclass(frozen=True)
class Place:
    """Held by an agent that is brought back as this incarnation; `since` on the monotonic clock, for this stage."""

    incarnation: int
    stage: Stage
    since: float


@dataclass
class Term:
    """Memory of this term only. Losing it loses nothing: all of it is heard or asked again."""

    heard: dict[str, Heard] = field(default_factory=dict)  # by pod UID
    errors: dict[str, Trouble] = field(default_factory=dict)  # why a bridge did not answer, by pod UID
    silences: dict[str, Silence] = field(default_factory=dict)  # of bridges that did not answer last, by pod UID
    ends: dict[str, tuple[str, End]] = field(default_factory=dict)  # of which pod, and why it goes, by agent key
    reattached: set[str] = field(default_factory=set)  # agent keys
    reconnection: Reconnection = field(default_factory=Reconnection)
    started: set[str] = field(default_factory=set)  # UIDs of pods made, or found made, in this term
    refusals: dict[str, Trouble] = field(default_factory=dict)  # by agent key
    left_alone: set[str] = field(default_factory=set)  # UIDs of swarms of other releases, once that was said
    turns: dict[str, tuple[int, TurnHeard]] = field(default_factory=dict)  # running ones by agent key
    start_waits: dict[str, Trouble] = field(default_factory=dict)  # what a restore container waits for, by pod UID
    places: dict[str, Place] = field(default_factory=dict)  # of agents that are brought back, by key
    waiting: dict[str, None] = field(default_factory=dict)  # for a place, by key; longest first
    gone: dict[str, str] = field(default_factory=dict)  # UID of a pod that the API server has not, by agent key
    said: dict[str, str] = field(default_factory=dict)  # the last decision in words, by key
    counted: dict[str, float] = field(default_factory=dict)  # when a swarm's status was written, monotonic, by key
    ledger_trouble: Trouble | None = None  # why the ledger acknowledges nothing, as people are told

    def forget(self, pod_uid: str) -> None:
        """Nobody asks for this pod any more: it is not there."""
        for known in (self.heard, self.errors, self.silences, self.start_waits):
            known.pop(pod_uid, None)
        self.started.discard(pod_uid)


@dataclass(frozen=True)
class Release:
    """Which release this is, where it runs, and under which epoch it leads."""

    instance: str
    cluster_uid: str
    epoch: int
    base: str = ""  # what every key in the bucket begins with


@dataclass(frozen=True)
class World:
    """The ports and the term's memory.

    `wake` looks at an object's key soon; `drive` follows an agent's running turn; `remote_min_age` in seconds.
    `remaining`: the seconds for which this process may still act.
    """

    gateway: Gateway
    store: Store
    ledger: Ledger
    bucket: Bucket | None
    bridges: Bridges
    clock: Clock
    pods: PodContext
    release: Release
    wake: Callable[[Ref], None]
    drive: Callable[[str, int], None]
    parsed: Parsed = field(default_factory=Parsed)
    remote_min_age: float = 600.0
    restores_at_once: int = 8
    retry_delay: float = 1.0  # s between the first two questions to a bridge that does not answer
    remaining: Callable[[], float] = lambda: float("inf")
    term: Term = field(default_factory=Term)

    def now(self) -> float:
        """Unix seconds."""
        return self.clock.now().timestamp()

    def check_term(self) -> None:
        """See to it that this process still leads.

        Raises:
            Unavailable: reason `LeaseLost`.
        """
        if self.remaining() <= 0:
            raise Unavailable("LeaseLost", "this process leads no more: ask again, another one does or soon will")

    def bridge_token(self, pod_uid: str) -> str:
        """The token of the bridge in that pod."""
        return build_bridge_token(self.ledger.secret, pod_uid)
