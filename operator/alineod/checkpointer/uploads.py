"""Brings every checkpoint in the store to the bucket and into the ledger, however long that takes.

A loop in a thread of its own, beside the turns. All it knows lies in the store, so a process that is killed at any
moment goes on where it was. What to do next for one checkpoint is decided by `decide_step` alone.
"""

import contextlib
import logging
import threading
from collections.abc import Callable
from enum import Enum, auto
from pathlib import Path
from typing import assert_never

import msgspec

from alineod.checkpointer.patience import compute_delay
from alineod.checkpointer.remote import Operator, put_file
from alineod.checkpoints.store import Progress, Store, Stored
from alineod.errors import AlineoError, Conflict, Unavailable
from alineod.wire.archives import GrantRequest
from alineod.wire.turns import Grant

_MARGIN = 60.0  # s a grant must still be good for
_HASTE = 1.0  # s between tries at the end: what is not recorded by then is lost with the pod
_log = logging.getLogger("alineod.checkpointer")

Put = Callable[[Grant, Path, int, str], None]
"""Uploads a file of so many bytes and this MD5 by a grant; see `remote.put_file`."""


class Step(Enum):
    """The next thing to do for a checkpoint."""

    RENEW = auto()
    UPLOAD = auto()
    REPORT = auto()
    NOTHING = auto()


def decide_step(stored: Stored, now: float) -> Step:
    """What comes next; `now` is Unix seconds."""
    match stored.progress:
        case Progress.RECORDED:
            return Step.NOTHING
        case Progress.UPLOADED:
            return Step.REPORT
        case Progress.CUT:
            good = stored.grant is not None and stored.grant.expires_at > now + _MARGIN
            return Step.UPLOAD if good else Step.RENEW
        case _:
            assert_never(stored.progress)


class Uploader:
    """The loop. `start` it once; `wake` it when there is something new; `drain` it at the end."""

    def __init__(self, store: Store, operator: Operator, now: Callable[[], float], put: Put = put_file) -> None:
        self._store = store
        self._put = put
        self._operator = operator
        self._now = now
        self._news = threading.Event()
        self._draining = threading.Event()
        self._idle = threading.Event()
        self._said: dict[str, str] = {}

    def start(self) -> None:
        threading.Thread(target=self._run, name="uploads", daemon=True).start()

    def wake(self) -> None:
        """There is a new checkpoint."""
        self._news.set()

    def drain(self, grace: float) -> None:
        """Let it finish what it can within `grace` seconds."""
        self._draining.set()
        self._news.set()
        self._idle.wait(grace)

    def _run(self) -> None:
        attempt = 0
        while True:
            attempt = 0 if self.pass_once() else attempt + 1
            if self._draining.is_set() and not attempt:
                self._idle.set()
                return
            if self._news.wait(self._compute_wait(attempt)):
                self._news.clear()
                attempt = 0

    def _compute_wait(self, attempt: int) -> float | None:
        delay = compute_delay(attempt) if attempt else None
        return min(delay, _HASTE) if delay is not None and self._draining.is_set() else delay

    def pass_once(self) -> bool:
        """Try once to bring each checkpoint on, the newest first; whether nothing is left to do."""
        try:
            outcomes = [self._advance(stored) for stored in self._store.read_all()]
        except Exception:
            # The disk, most likely; nothing is lost by trying again.
            _log.exception("the checkpoint volume cannot be read or written")
            return False
        return all(outcomes)

    def _advance(self, stored: Stored) -> bool:
        """Whether it needs nothing more."""
        while (step := decide_step(stored, self._now())) is not Step.NOTHING:
            try:
                stored = self._act(step, stored)
            except AlineoError as error:
                self._fail(step, stored, error)
                return False
            except FileNotFoundError:
                return True  # newer ones have pushed it out
            if not self._store.update(stored):
                return True
        return True

    def _act(self, step: Step, stored: Stored) -> Stored:
        report, grant = stored.report, stored.grant
        if step is Step.RENEW or grant is None:
            fresh = self._operator.grant(GrantRequest(turn=report.turn, incarnation=report.incarnation))
            return msgspec.structs.replace(stored, grant=fresh)
        if step is Step.UPLOAD:
            # A conflict: an earlier try got through and its answer did not. The operator looks whether it is the same.
            with contextlib.suppress(Conflict):
                self._put(grant, self._store.get_path(report.snapshot_ref), report.bytes, report.md5)
            return _with_report(stored, progress=Progress.UPLOADED, key=grant.key, upload_error="")
        recorded = self._operator.report(report)
        if not recorded.done:
            self._store.update(_with_report(stored, progress=Progress.CUT, key="", upload_error=recorded.message))
            raise Unavailable("NotRecorded", f"the operator does not record it: {recorded.message}")
        self._say(report.snapshot_ref, "")
        _log.info("%s is recorded", report.snapshot_ref)
        return msgspec.structs.replace(stored, progress=Progress.RECORDED)

    def _fail(self, step: Step, stored: Stored, error: AlineoError) -> None:
        self._say(stored.report.snapshot_ref, error.message)
        if step is Step.REPORT:
            return
        # A grant that was refused is not tried again; one that could not be tried may still be good.
        grant = stored.grant if error.retryable else None
        stored = _with_report(stored, progress=Progress.CUT, key="", upload_error=error.message, grant=grant)
        if not stored.told_failure:
            stored = self._tell_failure(stored)
        self._store.update(stored)

    def _tell_failure(self, stored: Stored) -> Stored:
        """Have it recorded as not uploaded, once; if the operator cannot be told now, the next failure tells it."""
        try:
            recorded = self._operator.report(stored.report)
        except AlineoError:
            return stored
        progress = Progress.RECORDED if recorded.done else stored.progress
        return msgspec.structs.replace(stored, told_failure=True, progress=progress)

    def _say(self, name: str, words: str) -> None:
        """Log a failure when it is news."""
        if words and self._said.get(name) != words:
            _log.warning("%s is not in the bucket and the ledger yet: %s", name, words)
        self._said[name] = words


def _with_report(stored: Stored, progress: Progress, key: str, upload_error: str, **more: object) -> Stored:
    report = msgspec.structs.replace(stored.report, key=key, upload_error=upload_error)
    return msgspec.structs.replace(stored, report=report, progress=progress, **more)
