"""Which events of the ledger a person is told with `kubectl describe`, and in what words."""

from dataclasses import dataclass

from alineod.domain import events as ev
from alineod.domain.events import Outcome, Row

GOOD_ENDS = (Outcome.SUCCESS, Outcome.ABORTED)


@dataclass(frozen=True)
class Announcement:
    """`action` says what was done, `warning` that somebody may have to look."""

    reason: str
    action: str
    note: str
    warning: bool = False


def compute_announcement(row: Row) -> Announcement | None:
    """What to say about this event on its agent's object; None for what nobody would ask about."""
    return _tell_turn(row.body) or _tell_sandbox(row.body) or _tell_end(row.body)


def _tell_turn(body: ev.AnyBody) -> Announcement | None:
    match body:
        case ev.AgentTurnStarted():
            return Announcement("TurnStarted", "StartTurn", f"turn {body.turn} started, attempt {body.attempt}")
        case ev.AgentTurnEnded():
            return Announcement("TurnEnded", "RecordTurn", f"turn {body.turn} ended cleanly")
        case ev.AgentTurnFailed():
            note = f"turn {body.turn} failed: {body.error.message}"
            return Announcement("TurnFailed", "RecordTurn", note, warning=True)
        case ev.AgentTurnInterrupted():
            note = f"turn {body.turn} was cut off ({body.reason}): {body.message}"
            return Announcement("TurnInterrupted", "RecordTurn", note, warning=True)
        case ev.AgentSupervisionNeeded():
            return Announcement(body.reason, "Ask", body.message, warning=True)
        case _:
            return None


def _tell_sandbox(body: ev.AnyBody) -> Announcement | None:
    match body:
        case ev.AgentProvisioned():
            return Announcement("Provisioned", "CreatePod", f"the pod {body.pod} was made")
        case ev.AgentRestored():
            return Announcement("Restored", str(body.rung), _describe_restore(body), warning=bool(body.tried))
        case ev.AgentCheckpointed(upload_error=str() as error) if error:
            note = f"the checkpoint of turn {body.turn}: {error}"
            return Announcement("UploadFailed", "Checkpoint", note, warning=True)
        case _:
            return None


def _tell_end(body: ev.AnyBody) -> Announcement | None:
    match body:
        case ev.AgentEnded():
            note = body.message or str(body.outcome)
            return Announcement(body.reason, "EndAgent", note, warning=body.outcome not in GOOD_ENDS)
        case ev.AgentReleased():
            note = f"it keeps its outcome and is not brought back: {body.message}"
            return Announcement(body.reason, "Release", note, warning=True)
        case ev.AgentStateChanged(reason="TriedAgain"):
            return Announcement(body.reason, "TryAgain", body.message)
        case _:
            return None


def _describe_restore(body: ev.AgentRestored) -> str:
    if body.rung is not ev.Rung.RESTORE:
        return f"it came back by {body.rung}: {body.reason}"
    came = "blank" if body.checkpoint_turn is None else f"with its conversation up to turn {body.checkpoint_turn}"
    tried = "".join(f"; the checkpoint of turn {t.turn} could not be used: {t.error}" for t in body.tried)
    return f"it came back by Restore, {came}{tried}"
