"""What goes wrong, in which order, and after how much undisturbed work. Pure: the same seed gives the same plan."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What is done to the leader. The words complete the sentence "the leader: ..."."""

    KILL = "both containers are killed, their volume stays"
    DELETE = "the pod is deleted with a grace of 0"
    VANISH = "both containers are killed and the pod is deleted, so that its volume goes too"
    WIPE = "both containers are killed and the ledger's files are deleted"
    WIPE_LIVE = "the ledger's files are deleted under it, then both containers are killed"
    TWICE = "both containers are killed and the volume deleted, and so is whoever takes the lease next"
    CUT = "the node's network is cut, and comes back once another leads"
    REBOOT = "the node loses its power and starts again"
    FREEZE = "every process is stopped until another leads, then continued"
    BLIND = "the API server is out of its reach until another leads"


KILLS = (Kind.VANISH, Kind.WIPE_LIVE, Kind.KILL, Kind.DELETE, Kind.CUT, Kind.WIPE, Kind.REBOOT, Kind.TWICE)
ZOMBIES = (Kind.FREEZE, Kind.FREEZE, Kind.BLIND)
SHORT = (Kind.KILL, Kind.VANISH, Kind.FREEZE, Kind.WIPE_LIVE)
CALM = (0.5, 4.0)  # s of work before a fault


@dataclass(frozen=True)
class Fault:
    """`calm`: seconds of undisturbed work before it."""

    kind: Kind
    calm: float

    @property
    def makes_zombie(self) -> bool:
        """Whether the leader lives on beside its successor."""
        return self.kind in ZOMBIES


def plan_faults(kills: int, zombies: int, seed: int) -> list[Fault]:
    """Every kind in turn, so that none is left out by chance; the order and the pauses are chance."""
    chance = random.Random(seed)
    kinds = [*_take(KILLS, kills), *_take(ZOMBIES, zombies)]
    chance.shuffle(kinds)
    return add_calm(kinds, chance)


def plan_short(seed: int) -> list[Fault]:
    """The least that shows something: a volume that goes, a zombie, and a leader that comes back by itself."""
    return add_calm(SHORT, random.Random(seed))


def plan_control(times: int, seed: int) -> list[Fault]:
    """Disk and process go together under load: what was not in the bucket by then is lost."""
    return add_calm([Kind.VANISH] * times, random.Random(seed))


def add_calm(kinds: Sequence[Kind], chance: random.Random) -> list[Fault]:
    return [Fault(kind, round(chance.uniform(*CALM), 2)) for kind in kinds]


def _take(kinds: Sequence[Kind], count: int) -> Iterator[Kind]:
    return (kinds[number % len(kinds)] for number in range(count))
