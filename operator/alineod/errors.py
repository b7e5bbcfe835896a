"""The one tree of errors. Ours are raised, theirs are chained, and each says whether a retry can help.

    AlineoError
    ├── Refused          the caller must change something; a retry answers the same
    │   ├── Conflict     another body under a used key, another object under a taken name, not live
    │   ├── NotFound
    │   └── Denied       who asks may not
    ├── Unavailable      something outside does not answer; a retry can help
    │   └── Fenced       another process leads; this one must end, the retry is the other's to answer
    └── Damaged          stored bytes are not what was written; nothing of them is used

`reason` is a CamelCase word from a closed set and `message` a sentence with names, numbers and what to do:
the same pair goes to the condition, the Event, the log and the problem+json body.
"""

from typing import ClassVar


class AlineoError(Exception):
    """Base of every error this program raises on purpose."""

    retryable: ClassVar[bool] = False

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.message = message


class Refused(AlineoError):
    """The request cannot be done as it stands."""


class Conflict(Refused):
    """The request contradicts what is already there."""


class NotFound(Refused):
    """What the request names does not exist."""


class Denied(Refused):
    """Who asks may not do this."""


class Unavailable(AlineoError):
    """Something outside does not answer, or not yet; `retry_after` is its own wish in seconds, where it named one."""

    retryable: ClassVar[bool] = True

    def __init__(self, reason: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(reason, message)
        self.retry_after = retry_after


class Fenced(Unavailable):
    """Another process leads. Whoever gets this writes nothing more."""


class Damaged(AlineoError):
    """Stored bytes fail their digest or their structure."""
