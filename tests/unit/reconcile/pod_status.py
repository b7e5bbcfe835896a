"""What the API server shows of sandbox pods. Pure."""

from alineod.domain.facts import PodFacts
from alineod.kube.objects import Json

CRASHES = 5  # restarts of a container that never comes up


def build_ready(since: str, *, ready: bool, containers: bool) -> list[Json]:
    """The two conditions; a kubelet gives its reason, the controller of nodes has none."""
    reason = {} if containers else {"reason": "ContainersNotReady"}
    return [
        {"type": kind, "status": str(status), "lastTransitionTime": since, **reason}
        for kind, status in (("Ready", ready), ("ContainersReady", containers))
    ]


def build_running(pod: PodFacts, restored: str, since: str = "2026-01-01T00:00:00Z") -> Json:
    """The status of a pod whose containers run."""
    return {
        "phase": "Running",
        "podIP": "10.0.0.1",
        "conditions": build_ready(since, ready=True, containers=True),
        "initContainerStatuses": [
            {"name": "restore", "state": {"terminated": {"exitCode": 0, "message": restored}}},
        ],
        "containerStatuses": [
            {"name": "agent", "ready": True, "restartCount": 0, "state": {"running": {}}},
        ],
    }


def build_crashing(status: Json) -> Json:
    """The status of a pod whose agent container ends as soon as it begins."""
    agent = {
        "name": "agent", "ready": False, "restartCount": CRASHES, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}},
    }  # fmt: skip
    return {**status, "containerStatuses": [agent]}


def build_evicted(status: Json, message: str) -> Json:
    """The status of a pod that its kubelet ended."""
    ended = {"terminated": {"exitCode": 137, "reason": "Error"}}
    containers = [{**c, "ready": False, "state": ended} for c in status.get("containerStatuses", ())]
    conditions = [*status.get("conditions", ()), build_disruption("TerminationByKubelet", message)]
    failed = {"phase": "Failed", "reason": "Evicted", "message": message, "conditions": conditions}
    return {**status, **failed, "containerStatuses": containers}


def build_disruption(reason: str, message: str = "") -> Json:
    """The condition of a pod that is ended for the cluster's sake."""
    return {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message}
