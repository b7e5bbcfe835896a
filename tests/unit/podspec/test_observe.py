"""Pods as the API server shows them → facts."""

from typing import Any

import pytest

from alineod.domain.causes import End, EndKind
from alineod.domain.facts import Crash, PodFacts, PodPhase, Trouble
from alineod.podspec.observe import parse_pod, parse_time

METADATA = {
    "name": "survey-lead-2",
    "uid": "u",
    "creationTimestamp": "2026-01-01T00:00:10Z",
    "labels": {"alineo.dev/incarnation": "2"},
    "ownerReferences": [{"uid": "uid-a", "controller": True}],
}


def _parse(**status: Any) -> PodFacts:
    return parse_pod({"metadata": METADATA, "spec": {"nodeName": "n1"}, "status": status})


def _waiting(reason: str, message: str = "", **more: Any) -> dict[str, Any]:
    return {"name": "agent", "state": {"waiting": {"reason": reason, "message": message}}, **more}


def test_a_pod_that_nobody_has_looked_at() -> None:
    pod = parse_pod({"metadata": METADATA})
    assert (pod.phase, pod.incarnation, pod.owner_uid, pod.trouble) == (PodPhase.PENDING, 2, "uid-a", None)
    assert pod.created_at == 1767225610.0


def test_a_pod_that_runs() -> None:
    agent = {"name": "agent", "ready": True, "restartCount": 1, "state": {"running": {}}}
    pod = _parse(phase="Running", podIP="10.0.0.1", containerStatuses=[agent])
    assert (pod.agent_running, pod.bridge_ready, pod.restarts, pod.ip, pod.node) == (True, True, 1, "10.0.0.1", "n1")


@pytest.mark.parametrize(
    ("status", "trouble"),
    [
        (
            {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2"}]},
            Trouble("Unschedulable", "0/2"),
        ),
        ({"containerStatuses": [_waiting("ContainerCreating")]}, None),
        (
            {"containerStatuses": [_waiting("ErrImagePull", "no such image")]},
            Trouble("ImagePullBackOff", "container agent: no such image"),
        ),
        (
            {
                "containerStatuses": [
                    _waiting("ImagePullBackOff", 'Back-off pulling image "x": ErrImagePull: no such image')
                ]
            },
            Trouble("ImagePullBackOff", "container agent: no such image"),
        ),
        (
            {"containerStatuses": [_waiting("CreateContainerConfigError", 'secret "model" not found')]},
            Trouble("CreateContainerConfigError", 'container agent: secret "model" not found'),
        ),
        (
            {
                "containerStatuses": [
                    _waiting(
                        "CrashLoopBackOff",
                        "back-off 40s",
                        lastState={"terminated": {"reason": "Error", "exitCode": 1, "message": "boom"}},
                    )
                ]
            },
            Trouble("CrashLoopBackOff", "container agent: last end: Error, exit code 1 boom"),
        ),
    ],
)
def test_why_it_is_not_up(status: dict[str, Any], trouble: Trouble | None) -> None:
    assert _parse(**status).trouble == trouble


@pytest.mark.parametrize(
    ("status", "end"),
    [
        ({"phase": "Failed", "reason": "Evicted", "message": "low"}, End(EndKind.DISRUPTION, "Evicted", "low")),
        (
            {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}]},
            End(EndKind.DISRUPTION, "EvictionByEvictionAPI", ""),
        ),
        ({"conditions": [{"type": "DisruptionTarget", "status": "False", "reason": "Old"}]}, None),
        ({"containerStatuses": [{"name": "agent", "state": {"terminated": {"reason": "Error", "exitCode": 1}}}]}, None),
        ({"phase": "Running"}, None),
    ],
)
def test_why_a_pod_went(status: dict[str, Any], end: End | None) -> None:
    assert _parse(**status).end == end


@pytest.mark.parametrize("field", ["state", "lastState"])
def test_how_the_agents_container_ended(field: str) -> None:
    ended = {"terminated": {"reason": "OOMKilled", "exitCode": 137}}
    end = _parse(containerStatuses=[{"name": "agent", field: ended}]).container_end
    assert end is not None
    assert (end.reason, end.own_fault) == ("OOMKilled", True)
    assert _parse(containerStatuses=[{"name": "checkpointer", field: ended}]).container_end is None


AT = "2026-01-01T00:00:00Z"


def _conditions(ready: dict[str, str], containers: str) -> list[dict[str, str]]:
    return [
        {"type": "Ready", "lastTransitionTime": AT, **ready},
        {"type": "ContainersReady", "status": containers, "lastTransitionTime": AT},
    ]


@pytest.mark.parametrize(
    ("ready", "containers", "unready", "lost"),
    [
        ({"status": "True"}, "True", False, False),
        ({"status": "False"}, "True", True, True),
        ({"status": "False", "reason": "ContainersNotReady"}, "False", True, False),
        ({"status": "False", "reason": "ReadinessGatesNotReady"}, "True", True, False),
    ],
    ids=["ready", "its node is silent", "its containers are not ready", "its gates are shut"],
)
def test_a_node_that_is_silent_is_told_from_a_bridge_that_is_not_ready(
    ready: dict[str, str], containers: str, unready: bool, lost: bool
) -> None:
    pod, at = _parse(conditions=_conditions(ready, containers)), parse_time(AT)
    assert pod.unready_since == (at if unready else 0.0)
    assert pod.node_lost_since == (at if lost else 0.0)


def test_restarts_of_a_container_that_ends_again_and_again_are_counted() -> None:
    crashing = {"waiting": {"reason": "CrashLoopBackOff"}}
    restore = {"name": "restore", "state": crashing, "restartCount": 4}
    agent = {"name": "agent", "state": crashing, "restartCount": 5}
    trouble = Trouble("CrashLoopBackOff", "container restore:")
    assert _parse(initContainerStatuses=[restore]).crash == Crash(False, 4, trouble)
    assert _parse(containerStatuses=[agent]).crash == Crash(True, 5, Trouble("CrashLoopBackOff", "container agent:"))
    assert _parse(containerStatuses=[{**agent, "state": {"running": {}}}]).crash is None


def test_what_the_restore_container_said() -> None:
    ended = {"exitCode": 0, "message": '{"start":"checkpoint","turn":4,"where":"remote"}'}
    restore = {"name": "restore", "state": {"terminated": ended}}
    report = _parse(initContainerStatuses=[restore]).restore
    assert report is not None
    assert (report.start, report.turn, report.where) == ("checkpoint", 4, "remote")
    for broken in ({"exitCode": 1, "message": ended["message"]}, {"exitCode": 0, "message": "not json"}):
        assert _parse(initContainerStatuses=[{"name": "restore", "state": {"terminated": broken}}]).restore is None


@pytest.mark.behaviour("11.17")
def test_what_others_add_to_a_pod_changes_nothing_that_is_decided_by() -> None:
    """Admission, a LimitRange, a mesh: labels, annotations, resources, containers of their own."""
    agent = {"name": "agent", "ready": True, "restartCount": 0, "state": {"running": {}}}
    status = {"phase": "Running", "podIP": "10.0.0.1", "containerStatuses": [agent]}
    pod = {"metadata": METADATA, "spec": {"nodeName": "n1", "containers": [{"name": "agent"}]}, "status": status}
    proxy = {"name": "istio-proxy", "ready": False, "restartCount": 7, "state": {"running": {}}}
    labels = {**METADATA["labels"], "mesh.example/injected": "true"}  # type: ignore[dict-item]
    changed = {
        "metadata": {**METADATA, "labels": labels, "annotations": {"mesh.example/status": "injected"}},
        "spec": {
            **pod["spec"],  # type: ignore[dict-item]
            "containers": [{"name": "agent", "resources": {"limits": {"memory": "1Gi"}}}, {"name": "istio-proxy"}],
            "tolerations": [{"operator": "Exists"}],
            "priority": 7,
        },
        "status": {**status, "containerStatuses": [proxy, agent]},
    }
    assert parse_pod(changed) == parse_pod(pod)
