"""What the cluster says of an end → whose doing it was."""

import pytest

from alineod.domain.causes import EndKind, judge_container, judge_lost_node, judge_pod, judge_removed

PODS = [
    ("EvictionByEvictionAPI", "Eviction API: evicting", EndKind.DISRUPTION),
    ("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint", EndKind.DISRUPTION),
    ("PreemptionByScheduler", "default-scheduler: preempting to accommodate a higher priority pod", EndKind.DISRUPTION),
    ("TerminationByKubelet", "The node was low on resource: memory.", EndKind.DISRUPTION),
    ("DeletionByPodGC", "PodGC: node no longer exists", EndKind.DISRUPTION),
    ("Evicted", "The node was low on resource: ephemeral-storage.", EndKind.DISRUPTION),
    ("Evicted", 'Usage of EmptyDir volume "home" exceeds the limit "5Mi". ', EndKind.OWN_FAULT),
    ("Evicted", "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. ", EndKind.OWN_FAULT),
    ("Evicted", 'Container agent exceeded its local ephemeral storage limit "1Gi". ', EndKind.OWN_FAULT),
]


@pytest.mark.parametrize(("reason", "message", "kind"), PODS)
def test_pods(reason: str, message: str, kind: EndKind) -> None:
    end = judge_pod(reason, message)
    assert (end.kind, end.reason) == (kind, reason)
    assert end.message.startswith(message)
    assert ("sizeLimit" in end.message) == end.own_fault


@pytest.mark.parametrize(
    ("reason", "code", "kind", "shown"),
    [
        ("OOMKilled", 137, EndKind.OWN_FAULT, "OOMKilled"),
        ("Error", 137, EndKind.DISRUPTION, "ContainerKilled"),
        ("Error", 143, EndKind.DISRUPTION, "ContainerKilled"),
        ("Completed", 0, EndKind.DISRUPTION, "Completed"),
        ("Error", 1, EndKind.OWN_FAULT, "Error"),
        ("StartError", 128, EndKind.OWN_FAULT, "StartError"),
    ],
)
def test_containers(reason: str, code: int, kind: EndKind, shown: str) -> None:
    end = judge_container(reason, code, "last words")
    assert (end.kind, end.reason) == (kind, shown)
    assert ("last words" in end.message) == (shown in ("Error", "StartError"))  # else they say nothing of the cause
    assert ("limits.memory" in end.message) == (reason == "OOMKilled")


def test_what_went_without_a_word_is_nobodys_fault() -> None:
    assert not judge_removed("survey-lead-1").own_fault
    assert not judge_lost_node("survey-lead-1", "n2").own_fault
