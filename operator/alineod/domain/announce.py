"""Which events of the ledger a person is told with `kubectl describe`, and in what words."""

from dataclasses import dataclass

from alineod.domain import events as ev
from alineod.domain.events import Row


@dataclass(frozen=True)
class Announcement:
    """`action` says what was done, `warning` that somebody may have to look."""

    reason: str
    action: str
    note: str
    warning: bool = False


def compute_announcement(row: Row) -> Announcement | None:
    """What to say about this event on its agent's object; None for what nobody would ask about."""
    match row.body:
        case ev.AgentProvisioned() as body:
            return Announcement("Provisioned", "CreatePod", f"the pod {body.pod} was made")
        case ev.AgentTurnStarted() as body:
            return Announcement("TurnStarted", "StartTurn", f"turn {body.turn} started, attempt {body.attempt}")
        case ev.AgentTurnEnded() as body:
            return Announcement("TurnEnded", "RecordTurn", f"turn {body.turn} ended cleanly")
        case ev.AgentTurnFailed() as body:
            note = f"turn {body.turn} failed: {body.error.message}"
            return Announcement("TurnFailed", "RecordTurn", note, warning=True)
        case ev.AgentTurnInterrupted() as body:
            note = f"turn {body.turn} was cut off ({body.reason}): {body.message}"
            return Announcement("TurnInterrupted", "RecordTurn", note, warning=True)
        case ev.AgentRestored() as body:
            return Announcement("Restored", str(body.rung), _describe_restore(body), warning=bool(body.tried))
        case ev.AgentCheckpointed(upload_error=str() as error) as body if error:
            return Announcement(
                "UploadFailed", "Checkpoint", f"the checkpoint of turn {body.turn}: {error}", warning=True
            )
        case ev.AgentEnded() as body:
            return Announcement(body.reason, "EndAgent", body.message or str(body.outcome))
        case ev.AgentSupervisionNeeded() as body:
            return Announcement(body.reason, "Ask", body.message, warning=True)
        case _:
            return None


def _describe_restore(body: ev.AgentRestored) -> str:
    if body.rung is not ev.Rung.RESTORE:
        return f"it came back by {body.rung}: {body.reason}"
    came = "blank" if body.checkpoint_turn is None else f"with its conversation up to turn {body.checkpoint_turn}"
    tried = "".join(f"; the checkpoint of turn {t.turn} could not be used: {t.error}" for t in body.tried)
    return f"it came back by Restore, {came}{tried}"
