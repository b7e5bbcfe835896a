"""A pod as the API server shows it, as facts. Reads what is there and never fails on what is not."""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from alineod.domain.causes import End, judge_container, judge_pod
from alineod.domain.facts import Crash, PodFacts, PodPhase, Trouble
from alineod.errors import Refused
from alineod.podspec import names
from alineod.podspec.context import Json
from alineod.wire.archives import RestoreReport
from alineod.wire.base import decode

QUIET_REASONS = frozenset(("", "PodInitializing", "ContainerCreating"))
AGENT, CRASHING = "agent", "CrashLoopBackOff"
STEADY_REASONS: Mapping[str, str] = {"ErrImagePull": "ImagePullBackOff"}
BACK_OFF = re.compile(r'^Back-off pulling image "[^"]*":? ?(ErrImagePull: )?')


def parse_pod(pod: Json) -> PodFacts:
    """The facts of one sandbox pod."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    agent = _find(status, "containerStatuses", AGENT)
    return PodFacts(
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        owner_uid=_parse_owner(metadata),
        incarnation=_parse_count(metadata.get("labels"), names.INCARNATION),
        phase=_parse_phase(status),
        created_at=parse_time(metadata.get("creationTimestamp")),
        node=(pod.get("spec") or {}).get("nodeName") or "",
        ip=status.get("podIP") or "",
        deleting=bool(metadata.get("deletionTimestamp")),
        agent_running="running" in (agent.get("state") or {}),
        bridge_ready=bool(agent.get("ready")),
        restarts=int(agent.get("restartCount") or 0),
        trouble=next(_find_troubles(status), None),
        crash=_parse_crash(status),
        end=_parse_end(status),
        container_end=_parse_container_end(agent),
        deletes_at=parse_time(metadata.get("deletionTimestamp")),
        grace=int(metadata.get("deletionGracePeriodSeconds") or 0),
        unready_since=_parse_unready(status),
        node_lost_since=_parse_node_lost(status),
        restore=_parse_restore(status),
        version=metadata.get("resourceVersion") or "",
        epoch=_parse_count(metadata.get("annotations"), names.EPOCH),
        made_of=(metadata.get("annotations") or {}).get(names.MADE_OF, ""),
    )


def parse_time(text: str | None) -> float:
    """Unix seconds of an API timestamp; 0 for none."""
    return datetime.fromisoformat(text).timestamp() if text else 0.0


def _parse_phase(status: Mapping[str, Any]) -> PodPhase:
    phase = status.get("phase") or PodPhase.PENDING
    return PodPhase(phase) if phase in list(PodPhase) else PodPhase.UNKNOWN


def _parse_owner(metadata: Mapping[str, Any]) -> str:
    owners = metadata.get("ownerReferences") or ()
    return next((owner["uid"] for owner in owners if owner.get("controller")), "")


def _parse_count(words: Mapping[str, str] | None, key: str) -> int:
    text = (words or {}).get(key, "")
    return int(text) if text.isascii() and text.isdigit() else 0


def _find(status: Mapping[str, Any], field: str, name: str) -> Mapping[str, Any]:
    return next((c for c in status.get(field) or () if c.get("name") == name), {})


def _find_troubles(status: Mapping[str, Any]) -> Iterator[Trouble]:
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            yield Trouble(condition.get("reason") or "Unschedulable", condition.get("message") or "")
    for field in ("initContainerStatuses", "containerStatuses"):
        for container in status.get(field) or ():
            yield from _find_container_trouble(container)


def _parse_crash(status: Mapping[str, Any]) -> Crash | None:
    for field in ("initContainerStatuses", "containerStatuses"):
        for container in status.get(field) or ():
            if ((container.get("state") or {}).get("waiting") or {}).get("reason") == CRASHING:
                trouble = next(_find_container_trouble(container))
                return Crash(container["name"] == AGENT, int(container.get("restartCount") or 0), trouble)
    return None


def _find_condition(status: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    return next((c for c in status.get("conditions") or () if c.get("type") == kind), {})


def _parse_unready(status: Mapping[str, Any]) -> float:
    ready = _find_condition(status, "Ready")
    return parse_time(ready.get("lastTransitionTime")) if ready.get("status") == "False" else 0.0


def _parse_node_lost(status: Mapping[str, Any]) -> float:
    """Since when the node does not report. Its controller then says of the pod alone that it is not ready.

    A kubelet says it of the containers too, always both at once and with a reason. So no right to read nodes is needed.
    """
    silent = not _find_condition(status, "Ready").get("reason")
    containers = _find_condition(status, "ContainersReady").get("status") == "True"
    return _parse_unready(status) if silent and containers else 0.0


def _find_container_trouble(container: Mapping[str, Any]) -> Iterator[Trouble]:
    """Why a container waits, in words that do not change while the kubelet tries again and again."""
    waiting = (container.get("state") or {}).get("waiting") or {}
    reason = STEADY_REASONS.get(waiting.get("reason") or "", waiting.get("reason") or "")
    if reason in QUIET_REASONS:
        return
    last = (container.get("lastState") or {}).get("terminated") or {}
    words = [] if reason == CRASHING else [BACK_OFF.sub("", waiting.get("message") or "")]
    if last:
        words.append(f"last end: {last.get('reason')}, exit code {last.get('exitCode')} {last.get('message') or ''}")
    yield Trouble(reason, f"container {container.get('name')}: {'; '.join(filter(None, words))}".strip())


def _parse_end(status: Mapping[str, Any]) -> End | None:
    if status.get("reason"):
        return judge_pod(status["reason"], status.get("message") or "")
    target = _find_condition(status, "DisruptionTarget")
    if target.get("status") != "True":
        return None
    return judge_pod(target.get("reason") or "Disrupted", target.get("message") or "")


def _parse_container_end(agent: Mapping[str, Any]) -> End | None:
    ended = (agent.get("state") or {}).get("terminated") or (agent.get("lastState") or {}).get("terminated") or {}
    if not ended:
        return None
    return judge_container(ended.get("reason") or "", ended.get("exitCode"), ended.get("message") or "")


def _parse_restore(status: Mapping[str, Any]) -> RestoreReport | None:
    ended = (_find(status, "initContainerStatuses", "restore").get("state") or {}).get("terminated") or {}
    if ended.get("exitCode") != 0 or not ended.get("message"):
        return None
    try:
        return decode(RestoreReport, ended["message"].encode())
    except Refused:
        return None
