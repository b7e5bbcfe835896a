"""What a leader sees of the cluster: a store that watches fill and lists are held against.

It only reads, so it may begin before there is a ledger. It must not know what objects mean, nor who looks at them.
"""

import asyncio

from alineod.app.parts import Parts
from alineod.app.takeover import Takeover
from alineod.app.tasks import cancel_all
from alineod.handlers.feed import Feed, build_deliver, build_settings
from alineod.handlers.login import Login
from alineod.kube.exits import FEED_ENDED, exit_at_once
from alineod.kube.gateway import Gateway
from alineod.kube.objects import WATCHED
from alineod.kube.store import Change, Store
from alineod.kube.sweep import Sweep

GOODBYE = 5.0  # s the watches may take to end


class Sight:
    """`store` holds everything that is watched once `complete` is set."""

    def __init__(self, parts: Parts, gateway: Gateway, takeover: Takeover) -> None:
        self.store, self.complete = Store(), asyncio.Event()
        self.jobs: list[asyncio.Task[None]] = []
        namespaces = parts.settings.watch_namespaces
        self._takeover = takeover
        self._sweep = Sweep(gateway, self.store, WATCHED, namespaces, parts.clock, parts.metrics)
        self._feed = Feed(
            Login(parts.access, parts.clock.now),
            WATCHED,
            namespaces,
            deliver=build_deliver(self.store, parts.metrics),
            die=lambda why: exit_at_once(FEED_ENDED, why),
            settings=build_settings(WATCHED),
        )

    def start(self) -> None:
        """Begin to look; the CRDs have to be there."""
        begin = self._takeover.build_chain()
        begin("sight")

        def on_seen() -> None:
            begin("")
            self.complete.set()

        self._feed.start()
        self.jobs.append(asyncio.create_task(self._sweep.run(on_seen), name="sweep"))

    def read_all(self) -> list[Change]:
        """Everything that is in the store, as if it had appeared just now."""
        return [
            Change(ref, None, obj)
            for watched in WATCHED
            for ref, obj in self.store.read_refs(watched.resource).items()
        ]  # fmt: skip

    async def stop(self) -> None:
        """Look no more."""
        if self.jobs:
            await cancel_all(self.jobs)
            await self._feed.stop(GOODBYE)
