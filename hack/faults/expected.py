"""What each fault may do to an agent: whether a turn that runs is cut, and by which rung the agent comes back. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from hack.faults.table import Row

INTERRUPTED = "Interrupted"  # how a turn that is cut ends by the ledger
REATTACH, RESUME, RESTORE = "Reattach", "Resume", "Restore"


class Cuts(StrEnum):
    """Whether the fault cuts a turn that is under way when it strikes."""

    NEVER = "never"
    MAY = "may"  # whether it had ended in the moment before
    MUST = "must"


@dataclass(frozen=True)
class Expected:
    """`rungs`: one of them brought everybody back who had a sandbox. `also`: what a change of leaders may add."""

    cuts: Cuts
    rungs: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    heard: bool = True  # an operator that had heard what the model said lives on


EXPECTED: Mapping[Row, Expected] = {
    Row.OPERATOR_KILLED: Expected(Cuts.NEVER, (REATTACH,)),
    Row.OPERATOR_AND_NODE_GONE: Expected(Cuts.MUST, (RESTORE,), (REATTACH,), heard=False),
    Row.HARNESS_KILLED: Expected(Cuts.MUST),  # its container lives, and says what became of it
    Row.BRIDGE_KILLED: Expected(Cuts.MUST, (RESUME,)),
    Row.BRIDGE_HUNG: Expected(Cuts.MUST, (RESUME,)),
    Row.AGENT_OOM: Expected(Cuts.MUST, (RESUME,)),
    Row.CONTAINER_KILLED: Expected(Cuts.MUST, (RESUME,)),
    Row.POD_DELETED: Expected(Cuts.NEVER, (RESTORE,)),
    Row.POD_FORCE_DELETED: Expected(Cuts.MAY, (RESTORE,)),
    Row.POD_EVICTED: Expected(Cuts.NEVER, (RESTORE,)),
    Row.EVICTED_FOR_STORAGE: Expected(Cuts.MUST, (RESTORE,)),
    Row.NODE_DRAINED: Expected(Cuts.NEVER, (RESTORE,), (REATTACH,)),
    Row.NODE_CUT_AND_BACK: Expected(Cuts.NEVER, (), (REATTACH,)),
    Row.NODE_CUT_FOR_GOOD: Expected(Cuts.MUST, (RESTORE,), (REATTACH,), heard=False),
    Row.NODE_REBOOTED: Expected(Cuts.MUST, (RESUME, RESTORE), (REATTACH,), heard=False),
    Row.CLUSTER_REBOOTED: Expected(Cuts.MUST, (RESUME, RESTORE), (REATTACH,), heard=False),
    Row.BUCKET_AWAY: Expected(Cuts.NEVER, (), (RESTORE,)),  # only those who rest are struck
    Row.BUCKET_SLOW: Expected(Cuts.NEVER),
    Row.NEWEST_DAMAGED: Expected(Cuts.MAY, (RESTORE,)),
    Row.ALL_DAMAGED: Expected(Cuts.MAY, (RESTORE,)),
    Row.API_SERVER_AWAY: Expected(Cuts.NEVER, (), (REATTACH,)),  # the leader may well keep its term
    Row.TWO_LEADERS: Expected(Cuts.NEVER, (REATTACH,)),
    Row.OPERATOR_UPGRADED: Expected(Cuts.NEVER, (REATTACH,)),
}
