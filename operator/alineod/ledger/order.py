"""How the operator tells its sidecar what to replicate: a file in the directory both containers share.

Litestream can also be told over its socket (`/register` with a replica URL), but a URL carries no sync interval (the
background upload of one second would come back, and with it the slow first sync after an outage), and a Litestream
that was killed forgets it. A file outlives both containers, so the sidecar needs nobody to tell it again; that it has
begun shows in the first sync that is confirmed. That the sidecar is at work at all shows in a second file, its sign of
life: Litestream may be silent for reasons of the bucket, its keeper never is.
"""

import time
from pathlib import Path

from alineod.ledger.replica import Replica
from alineod.settings import BucketSettings
from alineod.wire.base import Message, decode, encode

SOCKET = "litestream.sock"
_FILE, _SIGN = "replicate.json", "alive"


class Order(Message, frozen=True):
    """One term's database and its place in the bucket. Holds no key of the bucket.

    `attempt` counts the Litestreams that had to be replaced: another order starts another one.
    """

    database: str
    instance: str
    epoch: int
    bucket: BucketSettings
    attempt: int = 0

    @property
    def replica(self) -> Replica:
        return Replica(self.bucket, self.instance, self.epoch)


def write_order(directory: Path, order: Order) -> None:
    """Have the sidecar replicate `order` and nothing else; a reader sees the old file or the new one."""
    _write(directory / _FILE, encode(order))


def read_order(directory: Path) -> Order | None:
    """What is to be replicated; None when nothing is.

    Raises:
        Refused: `InvalidBody`; the file is not one `write_order` wrote.
    """
    try:
        return decode(Order, (directory / _FILE).read_bytes())
    except FileNotFoundError:
        return None


def write_sign(directory: Path) -> None:
    """The sidecar is at work. Both containers have the machine's monotonic clock, which nobody sets."""
    _write(directory / _SIGN, repr(time.monotonic()).encode())


def read_sign_age(directory: Path) -> float:
    """Seconds since the sidecar's last sign of life; infinite when there was none since the machine started."""
    try:
        age = time.monotonic() - float((directory / _SIGN).read_text())
    except FileNotFoundError:
        return float("inf")
    return age if age >= 0 else float("inf")


def _write(place: Path, content: bytes) -> None:
    written = place.with_name(f"{place.name}.new")
    written.write_bytes(content)
    written.replace(place)
