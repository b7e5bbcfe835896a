"""Kopf as the transport of watches, and nothing else: each event's object goes to our own event loop.

Kopf runs in a thread with a loop of its own. No handler returns a value or raises, nothing is written to any object.
When kopf ends, what is known of the cluster grows old, so the process ends too.
"""

import asyncio
import logging
import random
import threading
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import kopf

from alineod.handlers.login import Login
from alineod.handlers.storages import NoDiffBase, NoProgress
from alineod.kube.objects import Json, Resource, Watched
from alineod.kube.store import Store
from alineod.metrics import Metrics

# Called in our own loop: whether the object is gone, its resource, and the object.
Deliver = Callable[[bool, Resource, Json], None]


# Seconds for the loop to close what is still open when the watches have ended.
GOODBYE = 0.25
# What kopf calls the task of a watch; seconds between looks at those tasks; seconds kopf gets to end after one of them.
WATCH = "watcher for "
LOOK = 1.0
GRACE = 10.0


def build_deliver(store: Store, metrics: Metrics) -> Deliver:
    """What puts each event's object into the store, whose listeners know what to look at."""

    def deliver(gone: bool, resource: Resource, obj: Json) -> None:
        metrics.count_event(resource.plural)
        if gone:
            store.discard(resource, obj)
        else:
            store.put(resource, obj)

    return deliver


def build_settings(watched: Iterable[Watched], chance: Callable[[], float] = random.random) -> kopf.OperatorSettings:
    """Kopf's settings for a watch that survives what a cluster does to it and writes nothing; times in seconds."""
    settings = kopf.OperatorSettings()
    settings.persistence.diffbase_storage = NoDiffBase()
    settings.persistence.progress_storage = NoProgress()
    settings.persistence.consistency_timeout = 0
    settings.posting.enabled = False
    settings.posting.loggers = False
    settings.peering.standalone = True
    settings.scanning.disabled = True
    # Reconnects are spread, so that the replicas of an API server that restarts are not all asked at once.
    settings.watching.server_timeout = 300 + int(60 * chance())  # the API server takes whole seconds only
    settings.watching.client_timeout = 380
    settings.watching.inactivity_timeout = 70
    settings.watching.connect_timeout = 10
    settings.watching.chunk_size = 500
    # A stream of initial objects that breaks in the middle is resumed behind those it never sent.
    settings.watching.initial_streaming = False
    settings.networking.connect_timeout = 5
    settings.networking.request_timeout = 15
    # After these the process ends and another one tries.
    settings.networking.error_backoffs = (0.5, 1, 2, 4)
    settings.networking.enforce_retry_after = True
    settings.process.ultimate_exiting_timeout = 30
    for each in watched:
        if each.labels:
            resource = each.resource
            settings.watching.label_selectors[resource.group, resource.version, resource.plural] = each.labels
    return settings


def build_registry(login: Login, watched: Iterable[Watched], hand_over: Deliver) -> kopf.OperatorRegistry:
    """One login and one handler for each watched resource."""
    registry = kopf.OperatorRegistry()
    kopf.on.login(id="login", registry=registry)(login.log_in)
    for each in watched:
        resource = each.resource
        handler = _build_handler(resource, hand_over)
        kopf.on.event(resource.group, resource.version, resource.plural, id="feed", registry=registry)(handler)
    return registry


def _build_handler(resource: Resource, hand_over: Deliver) -> Any:
    async def feed(event: Any, **_: Any) -> None:
        hand_over(event["type"] == "DELETED", resource, event["object"])

    return feed


def _count_watches() -> int:
    """Kopf's tasks in this loop that watch, by the names it gives them."""
    return sum(task.get_name().startswith(WATCH) for task in asyncio.all_tasks())


async def wait_for_loss(count: Callable[[], int], sleep: Callable[[float], Awaitable[None]]) -> None:
    """Return some seconds after there were fewer than there have been."""
    most = 0
    while (now := count()) >= most:
        most = now
        await sleep(LOOK)
    await sleep(GRACE)


class Feed:
    """The watches over `watched` in `namespaces`, or everywhere when there are none.

    Args:
        login: who kopf is to the server.
        watched: what to watch.
        namespaces: where.
        deliver: called in the loop that called `start`.
        die: ends the process, told why, when the watches end before they were stopped.
        settings: kopf's; `build_settings` makes them.
    """

    def __init__(
        self,
        login: Login,
        watched: Iterable[Watched],
        namespaces: Iterable[str],
        *,
        deliver: Deliver,
        die: Callable[[str], object],
        settings: kopf.OperatorSettings,
    ) -> None:
        self._namespaces, self._deliver, self._die, self._settings = tuple(namespaces), deliver, die, settings
        self._registry = build_registry(login, watched, self._hand_over)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._kopf_loop: asyncio.AbstractEventLoop | None = None
        self._stop_flag: asyncio.Event | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)

    def start(self) -> None:
        """Begin to watch. Objects are delivered to the running loop."""
        self._loop = asyncio.get_running_loop()
        # It tells of every event, at a level that people read.
        logging.getLogger("kopf.objects").setLevel(logging.WARNING)
        self._thread.start()

    async def stop(self, seconds: float) -> bool:
        """Watch no more; returns whether the thread ended within `seconds`."""
        self._stopping.set()
        if self._kopf_loop is not None and self._stop_flag is not None and self._thread.is_alive():
            self._kopf_loop.call_soon_threadsafe(self._stop_flag.set)
        if self._thread.ident is not None:
            await asyncio.to_thread(self._thread.join, seconds)
        return not self._thread.is_alive()

    def _hand_over(self, gone: bool, resource: Resource, obj: Json) -> None:
        if self._loop is not None and not self._stopping.is_set():
            self._loop.call_soon_threadsafe(self._deliver, gone, resource, obj)

    def _run(self) -> None:
        try:
            asyncio.run(self._watch())
        except BaseException as error:  # whatever ended it, nothing is watched any more
            self._end(f"the watches failed: {error!r}")

    def _end(self, why: str) -> None:
        if not self._stopping.is_set():
            self._stopping.set()
            self._die(why)

    async def _guard(self) -> None:
        """Kopf ends when one of its watches does, and was seen not to come to that end: what is stale must not lead."""
        await wait_for_loss(_count_watches, asyncio.sleep)
        self._end("a watch ended and kopf did not")

    async def _watch(self) -> None:
        # An event of this loop: kopf would wait for one of another kind in a thread that never ends by itself.
        self._kopf_loop, self._stop_flag = asyncio.get_running_loop(), asyncio.Event()
        if self._stopping.is_set():
            return
        guard = asyncio.create_task(self._guard(), name="feed guard")
        try:
            await kopf.operator(
                registry=self._registry,
                settings=self._settings,
                standalone=True,
                clusterwide=not self._namespaces,
                namespaces=self._namespaces,
                stop_flag=self._stop_flag,
            )
            self._end("the watches ended")
        except Exception as error:
            self._end(f"the watches failed: {error!r}")
        finally:
            guard.cancel()
        # Streams that kopf has let go are closed by the loop in its next turns.
        await asyncio.sleep(GOODBYE)
