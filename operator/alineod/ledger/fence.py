"""Which term of an instance counts: one small object in the bucket, changed only over what was read of it.

A take-over changes it twice: it claims a number before it reads anything, and publishes its own replica when all of it
is in the bucket. Every acknowledgement asks whether the object still is what this process published. An upload came
before the question; a successor reads only after its claim; so what was acknowledged is in what the successor reads,
whatever clocks, leases and delays did. Blocking; must not know what is in a replica.
"""

from dataclasses import dataclass

from alineod.bucket.port import Bucket
from alineod.errors import Conflict, Damaged, Fenced, Refused, Unavailable
from alineod.ledger.replica import read_terms
from alineod.wire.base import Message, decode, encode

NAME = "CURRENT"
WAY_OUT = "Put its newest version back, or delete it to go on from the newest term in the bucket."


class Current(Message, frozen=True):
    """`epoch` is the last number that was claimed and `owner` who did; `data` the published term, 0 for none."""

    epoch: int
    data: int
    owner: str


@dataclass(frozen=True)
class Seen:
    """What the object said, and the etag it said it under."""

    current: Current
    etag: str


@dataclass(frozen=True)
class Known:
    """What the bucket says of all terms: which is `published` and the highest number that was `begun`, 0 for none.

    `seen` is the object that says so, None where there is none.
    """

    published: int
    begun: int
    seen: Seen | None


class Fence:
    """The object under `prefix`, the place of all terms of one instance."""

    def __init__(self, bucket: Bucket, prefix: str) -> None:
        self._bucket, self._prefix = bucket, prefix
        self._key = prefix + NAME

    def look(self) -> Known:
        """Which term counts. Without the object nothing was ever there, or it was deleted: then the newest one does.

        Raises:
            Damaged: `FenceDamaged`, or `FenceOutdated`: a term is claimed before anything of it is written, so that one
                with a higher number says that the object was put back to what it had been before.
        """
        newest = max(read_terms(self._bucket, self._prefix), default=0)
        seen = self.read()  # after the terms: whoever claims one between the two is in it
        if seen is None:
            return Known(newest, newest, None)
        if newest > seen.current.epoch:
            raise Damaged(
                "FenceOutdated",
                f"The object {self._key} speaks of term {seen.current.epoch}, and there is a term {newest} beside it in"
                f" the bucket: the object is older than that. {WAY_OUT}",
            )
        return Known(seen.current.data, seen.current.epoch, seen)

    def read(self) -> Seen | None:
        """What it says; None when there is none.

        Raises:
            Damaged: `FenceDamaged`.
        """
        found = self._bucket.get(self._key)
        if found is None:
            return None
        try:
            return Seen(decode(Current, found.body), found.etag)
        except Refused as error:
            raise Damaged(
                "FenceDamaged",
                f"The object {self._key} is not what was written there, so it is not known which term of the ledger"
                f" counts ({error.message}). {WAY_OUT}",
            ) from error

    def swap(self, over: Seen | None, current: Current) -> Seen:
        """Write `current` over exactly what was read.

        Raises:
            Unavailable: `TermTaken`, another process was faster; or no answer came, and it may stand or not.
        """
        body = encode(current)
        try:
            if over is None:
                return Seen(current, self._bucket.put(self._key, body, if_absent=True))
            return Seen(current, self._bucket.put(self._key, body, if_match=over.etag))
        except Conflict as error:
            return self._recognise(current, error)

    def check(self, published: Seen) -> None:
        """Return if it still is what this process published.

        Raises:
            Fenced: it is not.
        """
        found = self._bucket.head(self._key)
        if found is not None and found.etag == published.etag:
            return
        raise Fenced("LaterTerm", f"{self._describe()}; this process has term {published.current.epoch}.")

    def _recognise(self, current: Current, conflict: Conflict) -> Seen:
        """A write of our own whose answer was lost is refused when it is sent again."""
        found = self.read()
        if found is not None and found.current == current:
            return found
        raise Unavailable("TermTaken", f"{self._describe(found)} before this process could.") from conflict

    def _describe(self, found: Seen | None = None) -> str:
        seen = found or self.read()
        if seen is None:
            return f"The object {self._key} was deleted"
        return f"{seen.current.owner} began term {seen.current.epoch} of the ledger in {self._key}"
