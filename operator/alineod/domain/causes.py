"""Why a sandbox went: whose fault it was, in the cluster's own words. It must not know what follows from that."""

from dataclasses import dataclass
from enum import StrEnum


class EndKind(StrEnum):
    """Who or what ended a sandbox."""

    DISRUPTION = "Disruption"  # the infrastructure's doing: drained, preempted, evicted for its node's sake, killed
    OWN_FAULT = "OwnFault"  # the agent used more than it may, or what runs in its container ended by itself
    NODE_LOST = "NodeLost"  # nobody hears of its node
    REMOVED = "Removed"  # the object is gone without a last word


@dataclass(frozen=True)
class End:
    """How a sandbox ended. `reason` is the cluster's CamelCase word where there is one."""

    kind: EndKind
    reason: str
    message: str

    @property
    def own_fault(self) -> bool:
        """Whether it counts against the agent."""
        return self.kind is EndKind.OWN_FAULT


OUT_OF_MEMORY = "OOMKilled"
EVICTED = "Evicted"
HINTS = {
    OUT_OF_MEMORY: "raise sandbox.resources.limits.memory, or have the agent need less",
    EVICTED: "raise the sizeLimit of the volume under sandbox.storage, or have the agent keep less",
}
OVER_LIMIT = ("exceeds the limit", "exceeds the total limit", "exceeded its local ephemeral storage limit")
KILLED = (137, 143)  # exit codes of SIGKILL and SIGTERM: from outside, since nobody within can kill PID 1


def judge_pod(reason: str, message: str) -> End:
    """The end of a pod as a whole, by the reason in its status or of its condition DisruptionTarget."""
    if reason == EVICTED and any(words in message for words in OVER_LIMIT):
        return End(EndKind.OWN_FAULT, reason, _with_hint(reason, message))
    return End(EndKind.DISRUPTION, reason, message)


def judge_container(reason: str, exit_code: int | None, message: str) -> End:
    """The end of the agent's container."""
    words = f"the agent's container ended with exit code {exit_code}"
    if reason == OUT_OF_MEMORY:
        return End(EndKind.OWN_FAULT, reason, _with_hint(reason, f"{words}: it used more memory than it may"))
    if exit_code in KILLED:
        return End(EndKind.DISRUPTION, "ContainerKilled", f"{words}: it was killed from outside")
    if exit_code == 0:
        return End(EndKind.DISRUPTION, reason or "Completed", words)
    return End(EndKind.OWN_FAULT, reason or "ContainerEnded", f"{words} {message}".strip())  # its own last words


def judge_removed(pod: str) -> End:
    """A pod that is not there any more, and whose end nobody saw."""
    return End(EndKind.REMOVED, "PodGone", f"the pod {pod} is gone")


def judge_deleted(pod: str) -> End:
    """A pod that somebody deletes, and of which the cluster gives no reason."""
    return End(EndKind.REMOVED, "PodDeleted", f"the pod {pod} was deleted")


def judge_lost_node(pod: str, node: str) -> End:
    """A pod on a node that nobody hears of."""
    return End(EndKind.NODE_LOST, "NodeLost", f"the node {node} of the pod {pod} does not answer")


def _with_hint(reason: str, words: str) -> str:
    return f"{words}; {HINTS[reason]}"
