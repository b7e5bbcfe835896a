"""Clients that append and wait, in a closed loop or at a steady pace, and what each of their appends took.

Knows a ledger only by its `append`.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass

from alineod.domain import events as ev
from alineod.domain.events import Entry
from alineod.errors import Unavailable

Append = Callable[[Sequence[Entry]], Awaitable[object]]

RUN = "bench/load"
MOST_CLIENTS = 256
PAUSE = 0.02
"""Seconds until a client that was turned away asks again."""
_TEXT = 205
"""Characters of text that make a payload of about 300 bytes."""
_POOL = random.Random(1).randbytes(1 << 19).hex()


@dataclass(frozen=True)
class Cell:
    """So many clients that each append so many events at a time."""

    clients: int
    batch: int


@dataclass(frozen=True)
class Sample:
    """One append: when it was acknowledged, and what it took since it was due. Monotonic seconds."""

    at: float
    took: float


@dataclass
class Client:
    """An agent with its journal: its events count on from append to append."""

    index: int
    number: int = 0

    @property
    def agent(self) -> str:
        return f"bench/load-{self.index}"

    def build(self, count: int) -> list[Entry]:
        self.number += count
        return [self._build(number) for number in range(self.number - count + 1, self.number + 1)]

    def _build(self, number: int) -> Entry:
        data = {"text": build_text(self.index * 104_729 + number * 7_919, _TEXT)}
        body = ev.HarnessEvent(type="message", turn=1, incarnation=1, seq=number, data=data)
        return Entry(id=f"{self.agent}/1/{number}", run=RUN, agent=self.agent, body=body)


def build_text(place: int, length: int) -> str:
    """Text that differs from place to place. It is hexadecimal: it can be packed into half, as what agents say."""
    start = place % (len(_POOL) - length)
    return _POOL[start : start + length]


def build_clients() -> list[Client]:
    return [Client(index) for index in range(MOST_CLIENTS)]


def build_beginning(clients: Sequence[Client]) -> Iterator[Entry]:
    """The run and its agents, so that each event changes an agent's state as it does in earnest."""
    started = ev.RunStarted(uid="load", cluster_uid="bench", instance="bench")
    yield Entry(id="load", run=RUN, agent=None, body=started)
    for client in clients:
        name = client.agent
        yield Entry(id=name, run=RUN, agent=name, body=ev.AgentSpawned(uid=name, alias=name, spec={}))
        made = ev.AgentProvisioned(pod=name, uid=name, incarnation=1)
        yield Entry(id=f"{name}/1", run=RUN, agent=name, body=made)


async def run_closed(append: Append, clients: Sequence[Client], batch: int, seconds: float) -> list[Sample]:
    """Each client appends again as soon as it was answered; at least once."""
    samples: list[Sample] = []
    end = time.monotonic() + seconds

    async def work(client: Client) -> None:
        while True:
            begun = time.monotonic()
            await _insist(append, client.build(batch))
            samples.append(_take_sample(begun))
            if samples[-1].at >= end:
                return

    await asyncio.gather(*map(work, clients))
    return samples


async def run_paced(
    append: Append, clients: Sequence[Client], batch: int, every: float, seconds: float
) -> list[Sample]:
    """Each client appends every `every` seconds, all at other moments; waiting for the append before it counts."""
    samples: list[Sample] = []
    begun = time.monotonic()

    async def work(number: int, client: Client) -> None:
        for turn in range(round(seconds / every)):
            due = begun + every * (turn + number / len(clients))
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            await _insist(append, client.build(batch))
            samples.append(_take_sample(due))

    await asyncio.gather(*(work(number, client) for number, client in enumerate(clients)))
    return samples


async def _insist(append: Append, entries: Sequence[Entry]) -> None:
    """As a client does that is turned away because too many events wait: ask again. The time counts."""
    while True:
        try:
            await append(entries)
        except Unavailable:
            await asyncio.sleep(PAUSE)
        else:
            return


def _take_sample(begun: float) -> Sample:
    now = time.monotonic()
    return Sample(now, now - begun)
