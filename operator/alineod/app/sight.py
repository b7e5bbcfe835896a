"""What a leader sees of the cluster: a store that is filled once by lists, and kept by watches and sweeps.

Watches begin when the leader serves: to begin them costs more than everything else here, and they bring again what is
there. It only reads, so it may begin before there is a ledger. It must not know what objects mean, nor who looks.
"""

import asyncio
import contextlib

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
LATEST = 10.0  # s after the lists at which watches begin in any case: what was seen grows old


class Sight:
    """`store` holds everything that is watched once `complete` is set."""

    def __init__(self, parts: Parts, gateway: Gateway, takeover: Takeover) -> None:
        self.store, self.complete, self._calm = Store(), asyncio.Event(), asyncio.Event()
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
        self.jobs.append(asyncio.create_task(self._run(), name="sight"))

    def watch(self) -> None:
        """Have the watches begin: there is nothing more urgent to do."""
        self._calm.set()

    async def _run(self) -> None:
        with self._takeover.timing("sight"):
            await self._sweep.look()
        self.complete.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LATEST):
                await self._calm.wait()
        self._feed.start()
        await self._sweep.run()

    def read_all(self) -> list[Change]:
        """Everything that is in the store, as if it had appeared just now."""
        return [
            Change(ref, None, obj)
            for watched in WATCHED
            for ref, obj in self.store.read_refs(watched.resource).items()
        ]  # fmt: skip

    async def stop(self) -> None:
        """Look no more."""
        await cancel_all(self.jobs)
        await self._feed.stop(GOODBYE)
