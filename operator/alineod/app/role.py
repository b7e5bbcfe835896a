"""The label by which the Service finds the leader's pod.

Best effort for those who do not lead: an answer of theirs says so and asks to come again. The leader's own label is
written until it stands, since nobody finds it without. It must not know what leading is.
"""

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Iterable

from alineod.errors import AlineoError
from alineod.kube.gateway import Gateway, list_all
from alineod.kube.objects import PODS

ROLE, LEADER = "alineo.dev/role", "leader"
PAUSES = (1.0, 2.0, 5.0, 10.0)  # s between tries to write it
log = logging.getLogger(__name__)


class Role:
    """Writes the label on the pod `name` in the operator's own `namespace`, and takes it from others there."""

    def __init__(self, gateway: Gateway, namespace: str, name: str) -> None:
        self._gateway, self._namespace, self._name = gateway, namespace, name

    async def drop(self) -> None:
        """This pod does not lead; it may have led before its container was started again."""
        await self._try(lambda: self._write(self._name, None), PAUSES)

    async def take(self) -> None:
        """This pod leads and serves. Goes on until that is written."""
        await self._try(self._mark, itertools.chain(PAUSES, itertools.repeat(PAUSES[-1])))

    async def take_from_others(self) -> None:
        """No other pod leads. One whose node is gone cannot say so itself, and would get half of all requests."""
        await self._try(self._clear_others, PAUSES)

    async def _mark(self) -> None:
        """Only on the pod as it is now: written late, over a container that was started again, it would stay."""
        pod = await self._gateway.get(PODS, self._namespace, self._name)
        await self._write(self._name, LEADER, pod["metadata"]["resourceVersion"])

    async def _clear_others(self) -> None:
        pods = list_all(self._gateway, PODS, self._namespace, labels=f"{ROLE}={LEADER}", metadata_only=True)
        for metadata in [pod["metadata"] async for pod in pods]:
            if metadata["name"] != self._name:
                # Who has changed since the list was made may have come to lead since.
                await self._write(metadata["name"], None, metadata["resourceVersion"])

    async def _write(self, name: str, role: str | None, version: str = "") -> None:
        await self._gateway.patch_labels(PODS, self._namespace, name, {ROLE: role}, version=version)

    async def _try(self, act: Callable[[], Awaitable[None]], pauses: Iterable[float]) -> None:
        for pause in itertools.chain([0.0], pauses):
            await asyncio.sleep(pause)
            try:
                return await act()
            except AlineoError as error:
                log.warning("the label %s could not be written: %s", ROLE, error)
        return None
