"""What is expected of an object, in a form that can say what it is. Pure: objects in, words and verdicts out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Expectation:
    """`words` complete the sentence "it should ..."; `holds` says whether the object does."""

    words: str
    holds: Callable[[Json], bool]

    def __and__(self, other: "Expectation") -> "Expectation":
        return Expectation(f"{self.words} and {other.words}", lambda o: self.holds(o) and other.holds(o))


def status_of(obj: Json) -> Json:
    return obj.get("status") or {}


def find_condition(obj: Json, kind: str) -> Json:
    """The condition of this type, empty where there is none."""
    return next((c for c in status_of(obj).get("conditions") or () if c["type"] == kind), {})


def in_phase(*phases: str) -> Expectation:
    return Expectation(f"be {' or '.join(phases)}", lambda o: status_of(o).get("phase") in phases)


def has_condition(kind: str, status: str = "True", reason: str = "", message: str = "") -> Expectation:
    """The condition has this status; its reason and a part of its message are these, where they are given."""
    words = " ".join(filter(None, [f"have {kind} {status}", reason, message and f"with {message!r}"]))

    def holds(obj: Json) -> bool:
        found = find_condition(obj, kind)
        return (
            found.get("status") == status
            and (not reason or found["reason"] == reason)
            and message in found.get("message", "")
        )

    return Expectation(words, holds)


def has_turn(number: int, state: str) -> Expectation:
    def holds(obj: Json) -> bool:
        turn = status_of(obj).get("turn") or {}
        return (turn.get("number"), turn.get("state")) == (number, state)

    return Expectation(f"have turn {number} {state}", holds)


def has_checkpoint(turn: int) -> Expectation:
    """The checkpoint of this turn is in the bucket."""

    def holds(obj: Json) -> bool:
        checkpoint = status_of(obj).get("checkpoint") or {}
        return checkpoint.get("turn") == turn and bool(checkpoint.get("remoteRef"))

    return Expectation(f"have the checkpoint of turn {turn} in the bucket", holds) & has_condition("Checkpointed")


def has_incarnation(number: int) -> Expectation:
    """Its sandbox is the one of this number."""

    def holds(obj: Json) -> bool:
        return (status_of(obj).get("sandbox") or {}).get("incarnation") == number

    return Expectation(f"be incarnation {number}", holds)


def has_come_back(rung: str, incarnation: int) -> Expectation:
    """It runs in this incarnation and came back by this rung."""
    back = Expectation(f"be back by {rung}", lambda o: (status_of(o).get("restore") or {}).get("rung") == rung)
    return back & has_incarnation(incarnation) & has_condition("Ready")


def compute_kstatus(obj: Json) -> str:
    """The verdict of kstatus by its published rules: Current, InProgress, Failed or Terminating."""
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    if status_of(obj).get("observedGeneration", obj["metadata"]["generation"]) != obj["metadata"]["generation"]:
        return "InProgress"
    if find_condition(obj, "Reconciling").get("status") == "True":
        return "InProgress"
    if find_condition(obj, "Stalled").get("status") == "True":
        return "Failed"
    ready = find_condition(obj, "Ready").get("status")
    return "InProgress" if ready in ("False", "Unknown") else "Current"


def is_current() -> Expectation:
    return Expectation("be Current by kstatus", lambda o: compute_kstatus(o) == "Current")


def is_stalled(reason: str, message: str = "") -> Expectation:
    return has_condition("Stalled", "True", reason, message)


def describe(obj: Json | None) -> str:
    """An object of ours as a person debugging wants it: a line for its state, a line for each condition."""
    if obj is None:
        return "  it is not there"
    status, metadata = status_of(obj), obj["metadata"]
    seen = f"generation {metadata.get('generation')}, observed {status.get('observedGeneration')}"
    parts = {name: value for name, value in status.items() if name not in ("conditions", "observedGeneration")}
    lines = [f"  {seen}", *(f"  {name}: {value}" for name, value in parts.items())]
    for c in status.get("conditions") or ():
        lines.append(f"  {c['type']} {c['status']} {c['reason']}: {c.get('message', '')}")
    return "\n".join(lines)


def find_troubled(pod: Json) -> list[str]:
    """The containers that are neither running nor well ended nor still to come."""
    status = pod.get("status") or {}
    containers = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    return [c["name"] for c in containers if _is_troubled(c)]


def _is_troubled(container: Json) -> bool:
    state = container.get("state") or {}
    waiting = (state.get("waiting") or {}).get("reason", "")
    failed = (state.get("terminated") or {}).get("exitCode", 0) != 0
    return failed or bool(container.get("restartCount")) or waiting.endswith("BackOff")


def describe_pod(pod: Json) -> str:
    """A pod in a line, and a line for each container that is not simply running."""
    status = pod.get("status") or {}
    where = (pod.get("spec") or {}).get("nodeName") or "no node"
    leaving = ", being deleted" if pod["metadata"].get("deletionTimestamp") else ""
    lines = [
        f"  {pod['metadata']['name']}: {status.get('phase')} on {where}{leaving} {status.get('message', '')}".rstrip()
    ]
    for container in [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]:
        state = container.get("state") or {}
        if "running" not in state or container.get("restartCount"):
            lines.append(f"    {container['name']}: {state}, restarts {container.get('restartCount')}")
    return "\n".join(lines)


def describe_event(event: Json) -> str:
    """An Event of the core or of the events API in a line."""
    about = event.get("regarding") or event.get("involvedObject") or {}
    note = event.get("note") or event.get("message") or ""
    when = event.get("eventTime") or event.get("lastTimestamp") or event.get("deprecatedLastTimestamp") or ""
    return f"  {when} {event.get('type')} {about.get('kind')}/{about.get('name')} {event.get('reason')}: {note}"
