"""What was observed before a decision, time included: the only thing a rule may look at."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from alineod.crd.agent import AgentSpec
from alineod.crd.swarm import SupervisionSpec, SwarmSpec
from alineod.domain.causes import End
from alineod.domain.state import AgentState, Handle, RunState
from alineod.wire.archives import RestoreReport
from alineod.wire.heard import Heard
from alineod.wire.turns import BridgeState


class PodPhase(StrEnum):
    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


@dataclass(frozen=True)
class Trouble:
    """Something the cluster says about a pod: its own reason and words."""

    reason: str
    message: str


@dataclass(frozen=True)
class Crash:
    """A container that ends as soon as it has begun, again and again: the agent's, or one of ours beside it."""

    of_agent: bool
    restarts: int
    trouble: Trouble


@dataclass(frozen=True)
class PodFacts:
    """A sandbox pod as the cluster shows it."""

    name: str
    uid: str
    owner_uid: str
    incarnation: int
    phase: PodPhase
    created_at: float
    node: str = ""
    ip: str = ""
    deleting: bool = False
    agent_running: bool = False  # the agent container's process is there
    bridge_ready: bool = False
    restarts: int = 0  # of the agent container
    trouble: Trouble | None = None  # why it is not up yet
    crash: Crash | None = None  # of the container that ends again and again
    end: End | None = None  # how it ended, or why it is being ended
    container_end: End | None = None  # how the agent's container ended last
    deletes_at: float = 0.0  # when its grace is over, once it is being deleted; Unix seconds
    grace: int = 0  # s that it has to end in, once it is being deleted
    unready_since: float = 0.0  # the kubelet finds its bridge not ready since then; 0 while it does not
    node_lost_since: float = 0.0  # nobody has heard of its node since then; 0 while somebody does
    restore: RestoreReport | None = None
    version: str = ""  # the object's resource version
    epoch: int = 0  # of the leader that made it
    made_of: str = ""  # a digest of the spec that it was made of

    @property
    def over(self) -> bool:
        """It runs nothing and never will again."""
        return self.phase in (PodPhase.SUCCEEDED, PodPhase.FAILED)


@dataclass(frozen=True)
class AgentObject:
    """The Agent as a person wrote it, with the swarm's defaults merged in."""

    uid: str
    generation: int
    swarm: str
    alias: str
    spec: AgentSpec
    parent: str = ""  # short name
    adopt: bool = False
    deleting: bool = False


@dataclass(frozen=True)
class Peer:
    """Another agent of the same swarm, by its short name."""

    key: str
    handle: Handle
    closed: bool
    has_sandbox: bool  # its pod is up and can be forked from
    gone: bool  # it ended without a sandbox to fork


@dataclass(frozen=True)
class RunFacts:
    """The swarm an agent belongs to, as far as the cluster and the ledger know it."""

    exists: bool
    ours: bool
    state: RunState | None
    uid: str = ""  # of the Swarm object that is there
    here: bool = True  # the run is of this cluster; another one's objects are still to be brought
    kind_renewed: bool = False  # the Agent CRD is younger than this agent: its object went with the former CRD
    listed: bool = False  # the swarm's spec has an entry for this agent
    supervision: SupervisionSpec = field(default_factory=SupervisionSpec)


@dataclass(frozen=True)
class AgentFacts:
    """Everything a pass over one agent knows.

    `object` is None when no such object exists (confirmed by a read). `invalid` says why its spec cannot be used.
    `pod` is the ledger's pod; `next_pod` has the name of the incarnation after it.
    """

    now: float
    key: str
    epoch: int
    object: AgentObject | None
    invalid: Trouble | None
    run: RunFacts
    ledger: AgentState | None
    pod: PodFacts | None = None
    last_end: End | None = None  # why its pod went that is not there any more, as far as it was seen
    next_pod: PodFacts | None = None
    stale_pods: tuple[PodFacts, ...] = ()
    bridge: BridgeState | None = None
    bridge_error: Trouble | None = None  # why it did not answer, or refused, when last asked
    tries: int = 0  # questions in a row that the bridge did not answer
    asked_at: float = 0.0  # when the last of them was asked, Unix seconds
    retry_delay: float = 1.0  # s between the first two of them
    reattached: bool = True  # in this term of the leader
    outdated: bool = False  # the pod was made of another spec than the agent has now
    namespace_going: bool = False  # the pod is being deleted, and its namespace is too
    start_wait: Trouble | None = None  # what the pod's restore container waits for
    heard: Heard = field(default_factory=Heard)  # of the running turn
    peers: Mapping[str, Peer] = field(default_factory=dict)
    has_bucket: bool = True
    alias_holder: str = ""  # key of another agent of the run that has the short name
    restores_left: int = 1  # how many more agents may be brought back at the same time
    refusal: Trouble | None = None  # what the API server said to our last write for this agent


@dataclass(frozen=True)
class SwarmObject:
    uid: str
    generation: int
    spec: SwarmSpec
    instance: str  # status.instance
    adopt: bool = False
    deleting: bool = False


class Owner(StrEnum):
    """Whose an Agent object of a swarm is."""

    OURS = "ours"  # this Swarm object made it from an entry
    FORMER = "former"  # a Swarm of this name but another UID made it: it was brought over with its swarm
    NOBODY = "nobody"  # a person applied it by itself


@dataclass(frozen=True)
class MemberObject:
    """An Agent object that says it belongs to the swarm."""

    name: str
    uid: str
    alias: str
    owner: Owner
    deleting: bool = False
    version: str = ""  # the object's resource version
    outdated: bool = False  # its entry has been changed since
    fixed: tuple[str, ...] = ()  # fields of it that cannot change, and that its entry has changed all the same
    controlled: bool = False  # by somebody else than the swarm that is there


@dataclass(frozen=True)
class SwarmFacts:
    """Everything a pass over one swarm knows. `taken` are wanted Agent names that somebody else's object has."""

    now: float
    key: str
    cluster_uid: str
    instance: str
    object: SwarmObject | None
    invalid: Trouble | None
    ledger: RunState | None
    kind_renewed: bool = False  # the Swarm CRD is younger than this run: its object went with the former CRD
    members: tuple[MemberObject, ...] = ()
    taken: tuple[str, ...] = ()
    agents: Mapping[str, AgentState] = field(default_factory=dict)
    leaving: frozenset[str] = frozenset()  # short names whose object was deleted, and whose agent is about to end
    heard: Mapping[str, Heard] = field(default_factory=dict)  # of turns that run, where the run's object is gone
    stuck: tuple[str, ...] = ()  # short names of agents whose Stalled condition is true
    replicated: Trouble | None = None  # None: the ledger is in the bucket
    replicated_seq: int = 0  # the newest event of any run that is in the bucket
