"""When a wait is over, and what the waiting agent is given to read."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from alineod.crd.agent import OnDeadline, OnDepFailure, Wait, WaitMode
from alineod.domain.events import Outcome, WaitResolved
from alineod.domain.facts import Peer
from alineod.wire.archives import InputFile


@dataclass(frozen=True)
class Verdict:
    """`resolved` None: still waiting, for the reason in `message`; `again_at` is the deadline, in Unix seconds."""

    resolved: WaitResolved | None
    failed: bool = False
    message: str = ""
    missing: tuple[str, ...] = ()
    again_at: float | None = None


@dataclass(frozen=True)
class _Count:
    outcomes: Mapping[str, Outcome]
    pending: tuple[str, ...]
    turns: Mapping[str, int] = field(default_factory=dict)

    @property
    def good(self) -> int:
        return sum(outcome is Outcome.SUCCESS for outcome in self.outcomes.values())

    @property
    def bad(self) -> int:
        return len(self.outcomes) - self.good


def decide_wait(wait: Wait, peers: Mapping[str, Peer], since: float, now: float) -> Verdict:
    """Judge a wait by the handles of the agents it names; `since` is when it began (Unix seconds)."""
    missing = tuple(name for name in wait.agents if name not in peers)
    count = _count(wait, peers)
    deadline = None if wait.deadline is None else since + wait.deadline
    if _satisfied(wait, count):
        return Verdict(_resolve(wait, count, "satisfied"))
    if _impossible(wait, count):
        failed = _policy(wait) is OnDepFailure.FAIL
        if failed or not count.pending:
            return Verdict(_resolve(wait, count, "failed"), failed, _failure_message(wait, count))
    if deadline is not None and now >= deadline:
        failed = wait.on_deadline is OnDeadline.FAIL
        message = f"after {wait.deadline:g} s still pending: {', '.join(count.pending)}"
        return Verdict(_resolve(wait, count, "deadline"), failed, message)
    message = f"waits for {', '.join(count.pending)} ({wait.mode})"
    return Verdict(None, message=message, missing=missing, again_at=deadline)


def _count(wait: Wait, peers: Mapping[str, Peer]) -> _Count:
    outcomes, turns, pending = {}, {}, []
    for name in wait.agents:
        handle = peers[name].handle if name in peers else None
        if handle is None or handle.outcome is None or not handle.settled:
            pending.append(name)
            continue
        outcomes[name] = handle.outcome
        if handle.turn is not None:
            turns[name] = handle.turn
    return _Count(outcomes, tuple(pending), turns)


def _policy(wait: Wait) -> OnDepFailure:
    """What was written; else a wait for "settled" goes on with whatever came, and the others fail."""
    if "on_dep_failure" in wait.model_fields_set or wait.mode is not WaitMode.SETTLED:
        return wait.on_dep_failure
    return OnDepFailure.PROCEED


def _needed(wait: Wait) -> int:
    match wait.mode:
        case WaitMode.SETTLED | WaitMode.ALL:
            return len(wait.agents)
        case WaitMode.ANY:
            return 1
        case WaitMode.QUORUM:
            return wait.k or len(wait.agents)


def _satisfied(wait: Wait, count: _Count) -> bool:
    if wait.mode is WaitMode.SETTLED:
        return not count.pending and (count.bad == 0 or _policy(wait) is OnDepFailure.PROCEED)
    return count.good >= _needed(wait)


def _impossible(wait: Wait, count: _Count) -> bool:
    if wait.mode is WaitMode.SETTLED:
        return count.bad > 0
    return count.good + len(count.pending) < _needed(wait)


def _failure_message(wait: Wait, count: _Count) -> str:
    bad = sorted(f"{name} {outcome}" for name, outcome in count.outcomes.items() if outcome is not Outcome.SUCCESS)
    return f"the wait ({wait.mode}) can no longer be satisfied: {', '.join(bad)}"


def _resolve(wait: Wait, count: _Count, outcome: str) -> WaitResolved:
    return WaitResolved(
        mode=str(wait.mode),
        outcome=outcome,
        outcomes=dict(count.outcomes),
        pending=list(count.pending),
        turns=dict(count.turns),
        plain=wait.model_fields_set == {"agents"},
    )


def build_inputs(resolved: WaitResolved, results: Mapping[str, str]) -> list[InputFile]:
    """The files a waiting agent finds: one text per settled agent, and `/inputs.json` that lists them.

    `__wait` is left out for a plain list whose agents all succeeded.
    """
    files = [InputFile(path=f"/inputs/{name}.txt", text=results.get(name, "")) for name in resolved.outcomes]
    index: dict[str, object] = {
        name: {"path": f"/inputs/{name}.txt", "outcome": str(outcome)} for name, outcome in resolved.outcomes.items()
    }
    succeeded = not resolved.pending and all(o is Outcome.SUCCESS for o in resolved.outcomes.values())
    if not (resolved.plain and succeeded):
        index["__wait"] = {"mode": resolved.mode, "outcome": resolved.outcome, "pending": resolved.pending}
    return [*files, InputFile(path="/inputs.json", text=json.dumps(index, indent=2, sort_keys=True) + "\n")]
