"""A clock that stands until it is moved."""

from datetime import UTC, datetime, timedelta


class ManualClock:
    """Wall and monotonic time that go together."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._start, self._seconds = start, 0.0

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._seconds)

    def monotonic(self) -> float:
        return self._seconds

    def advance(self, seconds: float) -> None:
        self._seconds += seconds
