"""Holds the Lease, or waits for it, in a thread of its own, and ends the process when the Lease is lost.

A busy event loop must not cost the lease, and a hung request must not outlive it: one thread talks to the API
server, a second one only watches the time. What to do is decided in `kube.lease`.
"""

import logging
import random
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Protocol, assert_never

from alineod.errors import AlineoError, Unavailable
from alineod.kube.lease import (
    Acquire,
    Held,
    LeaseRecord,
    LeaseTiming,
    Lost,
    Observed,
    Renew,
    Wait,
    compute_observed,
    decide_lease,
)

# No single request may use up the time in which a second try could still save the lease.
LONGEST_CALL = 5.0
# How many pauses a watch may be silent before the Lease is read all the same: a leader renews once in each.
SILENT_PAUSES = 2.5


class LeasePort(Protocol):
    """The Lease, as `kube.lease_client` reaches it."""

    def read(self, seconds: float) -> LeaseRecord | None: ...

    def write(self, record: LeaseRecord, acquired: datetime, seconds: float) -> LeaseRecord: ...


class WatchPort(Protocol):
    """Whoever tells of changes of the Lease, as `kube.lease_watch` does. `stop` may be called from another thread."""

    def wait(self, known: LeaseRecord, seconds: float) -> None: ...

    def close(self) -> None: ...

    def stop(self) -> None: ...


def read_uptime() -> float:
    """Seconds on a clock that goes on while the machine is suspended, so that a leader who overslept knows it."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Elector:
    """One contender for the Lease.

    Args:
        port: the Lease.
        watch: what a standby waits at; where it fails, the Lease is read once in a while.
        me: a name that no other process has, as `build_identity` makes it.
        die: ends the process, told why; called from the elector's threads when the lease is lost. It does not return.
        on_acquired: told the epoch, once, from the elector's thread.
        timing: the figures that every contender shares.
        monotonic: the clock for every deadline.
        chance: spreads the pauses, in [0, 1).
        observe: told how long each successful renewal took (s).
    """

    def __init__(
        self,
        port: LeasePort,
        watch: WatchPort,
        me: str,
        *,
        die: Callable[[str], object],
        on_acquired: Callable[[int], None],
        timing: LeaseTiming | None = None,
        monotonic: Callable[[], float] = read_uptime,
        chance: Callable[[], float] = random.random,
        observe: Callable[[float], None] = lambda seconds: None,
    ) -> None:
        self._port, self._watch, self._me = port, watch, me
        self._die, self._on_acquired = die, on_acquired
        self._timing = timing or LeaseTiming()
        self._monotonic, self._chance, self._observe = monotonic, chance, observe
        self._observed: Observed | None = None
        self._held: Held | None = None
        self._floor = 1
        self._acquired = datetime.fromtimestamp(0, UTC)
        self._last_read: float | None = None
        self._stale = True
        self._problem = "the lease was not read yet"
        self._wake, self._raised = threading.Event(), threading.Condition()
        self._stopping, self._released, self._releasing = threading.Event(), threading.Event(), threading.Lock()
        self._talker = threading.Thread(target=self._run, name="elector", daemon=True)
        self._guard = threading.Thread(target=self._watch_deadline, name="elector-guard", daemon=True)
        self._log = logging.getLogger(__name__)

    @property
    def identity(self) -> str:
        """The name that no other process has."""
        return self._me

    @property
    def is_leader(self) -> bool:
        """Whether this process may act."""
        return self.compute_remaining() > 0

    @property
    def epoch(self) -> int:
        """The epoch we lead in; 0 without leadership."""
        held = self._held
        return held.epoch if held is not None else 0

    @property
    def is_alive(self) -> bool:
        """Whether the threads still do their work."""
        return self._talker.is_alive() and self._guard.is_alive()

    @property
    def problem(self) -> str:
        """Why the Lease could not be read or written last time; empty when it could."""
        return self._problem

    def compute_remaining(self) -> float:
        """Seconds for which this process may still act; every request it makes has to end within them."""
        held = self._held
        return self._compute_left(held) if held is not None else 0.0

    def _compute_left(self, held: Held) -> float:
        return held.renewed + self._timing.renew_deadline - self._monotonic()

    def compute_read_age(self) -> float:
        """Seconds since the Lease was last read or written."""
        last = self._last_read
        return float("inf") if last is None else self._monotonic() - last

    def start(self) -> None:
        """Begin to contend."""
        self._guard.start()
        self._talker.start()

    def raise_epoch(self, floor: int, seconds: float) -> int:
        """Lead in an epoch of at least `floor` from now on; waits until that is written.

        Raises:
            Unavailable: reason `EpochNotRaised`, when it was not written within `seconds`.
        """
        with self._raised:
            self._floor = max(self._floor, floor)
            self._wake.set()
            self._raised.wait_for(lambda: self.epoch >= floor or self._stopping.is_set(), seconds)
            if self.epoch < floor:
                raise Unavailable(
                    "EpochNotRaised", f"The lease could not be moved on to epoch {floor}: {self._problem}."
                )
            return self.epoch

    def release(self) -> None:
        """Stop, and let the next one begin at once. This process may not act from the beginning of this call on."""
        with self._releasing:
            if not self._released.is_set():
                self._release()
                self._released.set()

    def _release(self) -> None:
        limit = self._compute_call_limit()
        with self._raised:
            self._stopping.set()
            self._held = None
            self._raised.notify_all()
        self._wake.set()
        self._watch.stop()
        if self._talker.ident is not None:
            self._talker.join(LONGEST_CALL + 1)
        record = self._observed.record if self._observed is not None else None
        if record is not None and record.holder == self._me and not self._talker.is_alive():
            self._give_back(record, limit)

    def _give_back(self, record: LeaseRecord, seconds: float) -> None:
        free = replace(record, holder="", duration=1.0)
        try:
            self._port.write(free, self._acquired, seconds)
        except AlineoError as error:
            self._log.warning("the lease was not given back and will run out by itself: %s", error)

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._wake.clear()
                self._wake.wait(self._step())
        except Exception as error:  # a contender that stopped without a word would be believed
            self._end(f"the elector failed: {error!r}")
        finally:
            self._watch.close()

    def _end(self, why: str) -> None:
        self._stopping.set()
        self._die(why)

    def _step(self) -> float:
        """Look at the Lease once, do what is decided, and return the seconds until the next look."""
        pause = self._timing.compute_retry(self._chance())
        try:
            if self._stale or self._held is None:
                self._see(self._port.read(self._compute_call_limit()))
            observed = self._observed or Observed(None, self._monotonic())
            now = self._monotonic()
            match decide_lease(observed, self._me, self._held, now, self._timing, self._floor):
                case Acquire(epoch, over):
                    self._acquired = datetime.now(UTC)
                    self._take(epoch, over, now)
                    self._log.info("leading in epoch %d as %s", epoch, self._me)
                    self._watch.close()
                    self._on_acquired(epoch)
                case Renew(epoch, over):
                    self._take(epoch, over, now)
                    self._observe(self._monotonic() - now)
                case Wait(seconds, over):
                    self._problem = ""
                    pause = self._stand_by(over, now + seconds, pause)
                case Lost(why):
                    self._end(why)
                case unknown:
                    assert_never(unknown)
            self._problem = ""
        except AlineoError as error:
            # A conflict, or an answer that never came: what the Lease looks like has to be read again.
            self._stale, self._problem = True, str(error)
            self._log.debug("the lease: %s", error)
        return pause

    def _stand_by(self, over: LeaseRecord, end: float, pause: float) -> float:
        """Wait for a change of the Lease, and return the seconds until it is read: none, unless the watch failed."""
        try:
            self._watch.wait(over, min(pause * SILENT_PAUSES, end - self._monotonic()))
        except AlineoError as error:
            self._log.debug("the lease is not watched: %s", error)
            return min(pause, max(0.0, end - self._monotonic()))
        return 0.0

    def _take(self, epoch: int, over: LeaseRecord | None, began: float) -> None:
        version, uid = (over.version, over.uid) if over is not None else ("", "")
        self._check_contending()
        wanted = LeaseRecord(self._me, self._timing.duration, epoch, version, uid)
        self._see(self._port.write(wanted, self._acquired, self._compute_call_limit()))
        with self._raised:
            self._check_contending()
            self._held = Held(epoch, began)
            self._raised.notify_all()

    def _check_contending(self) -> None:
        if self._stopping.is_set():
            raise Unavailable("Stopping", "this process contends no more")

    def _see(self, record: LeaseRecord | None) -> None:
        self._last_read = self._monotonic()
        self._observed = compute_observed(self._observed, record, self._last_read)
        self._stale = False

    def _compute_call_limit(self) -> float:
        return LONGEST_CALL if self._held is None else min(LONGEST_CALL, max(0.1, self.compute_remaining()))

    def _watch_deadline(self) -> None:
        """Ends the process at the deadline, whatever the other thread is stuck in."""
        pause = min(1.0, self._timing.renew_deadline / 10)
        while not self._released.wait(pause):
            held = self._held
            if held is not None and self._compute_left(held) <= 0:
                self._die(f"the lease could not be renewed for {self._timing.renew_deadline:g} s: {self._problem}")
                return
