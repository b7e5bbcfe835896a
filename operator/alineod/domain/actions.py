"""What a decision may ask for. Each action is safe to run twice; how it is done is not known here."""

from dataclasses import dataclass

from alineod.domain.events import Entry


@dataclass(frozen=True)
class Append:
    """Put these into the ledger, in one transaction, before anything else happens."""

    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class CreatePod:
    """Make the pod of this incarnation. The name is derived, so a second try finds the first one's pod."""

    incarnation: int


@dataclass(frozen=True)
class DeletePod:
    """Delete this pod if it is still as it was seen, with `grace` seconds to end in."""

    name: str
    uid: str
    version: str
    grace: int


@dataclass(frozen=True)
class Probe:
    """Ask the bridge how it is."""


@dataclass(frozen=True)
class Drive:
    """See to it that the running turn was handed to the bridge and that its journal is followed."""

    turn: int


@dataclass(frozen=True)
class AbortTurn:
    """Have the sandbox end a turn that nobody waits for any more. What comes next waits for no more than one call."""

    turn_id: str
    reason: str


@dataclass(frozen=True)
class CreateAgent:
    """Make the Agent object of a swarm's entry."""

    alias: str


@dataclass(frozen=True)
class UpdateAgent:
    """Have the Agent object of a swarm's entry say what the entry says now, if it is still as it was seen.

    `control`: the swarm becomes its controller.
    """

    alias: str
    name: str
    uid: str
    version: str
    control: bool = True


@dataclass(frozen=True)
class AdoptAgent:
    """Own an Agent object that a former object of the same swarm made, if it is still as it was seen."""

    name: str
    uid: str
    version: str = ""


@dataclass(frozen=True)
class DeleteAgent:
    """Delete this Agent object if it is still as it was seen."""

    name: str
    uid: str
    version: str = ""


@dataclass(frozen=True)
class DeleteArchives:
    """Remove the bucket's objects of these agents, by the ledger's knowledge."""

    agents: tuple[str, ...]


Action = (
    Append | CreatePod | DeletePod | Probe | Drive | AbortTurn
    | CreateAgent | UpdateAgent | AdoptAgent | DeleteAgent | DeleteArchives
)  # fmt: skip


@dataclass(frozen=True)
class Standing:
    """Where an object stands, in the words of its conditions."""

    reason: str
    message: str
    ready: bool = False
    stalled: bool = False

    @property
    def reconciling(self) -> bool:
        return not self.ready and not self.stalled


@dataclass(frozen=True)
class Decision:
    """The answer of the first rule that had one; the rule's name is for logs.

    `again_after` in seconds: look again then, whatever happens. `back`: once the actions are done, the agent is back
    under this leader. `answers`: the ladder has said where the agent stands; not while Reattach is still tried.
    `queues`: it waits for others to be brought back.
    """

    rule: str
    standing: Standing | None
    actions: tuple[Action, ...] = ()
    again_after: float | None = None
    back: bool = False
    answers: bool = True
    queues: bool = False
