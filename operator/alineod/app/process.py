"""`alineod operator`: contends for the lease, leads one term when it has it, ends when the term does.

A process leads at most once. It ends at once when the lease is lost, and hands the lease over when it is told to stop.
"""

import asyncio
import logging
import signal
import sys
import uuid
from collections.abc import Mapping

from alineod.app.garbage import Garbage
from alineod.app.logs import start_logging
from alineod.app.opening import build_bucket
from alineod.app.parts import Parts
from alineod.app.role import Role
from alineod.app.serve import Switch, start_server
from alineod.app.tasks import cancel_all
from alineod.app.term import run_term
from alineod.clock import SystemClock
from alineod.errors import AlineoError
from alineod.http.routes import build_standby_app
from alineod.kube.access import ClusterAccess, read_access
from alineod.kube.api import open_api
from alineod.kube.elector import Elector
from alineod.kube.exits import LEASE_LOST, exit_at_once
from alineod.kube.health import Health, start_health_server, watch_loop
from alineod.kube.lease import build_identity
from alineod.kube.lease_client import LeaseClient
from alineod.kube.lease_watch import LeaseWatch
from alineod.metrics import Metrics, start_metrics_server
from alineod.settings import Settings, parse_settings
from alineod.threads import run_apart

LEASE = "alineod"
HEALTH_PORT = 8081
METRICS_PORT = 8082
ROLE_PATIENCE = 2.0  # s
log = logging.getLogger(__name__)


def main(env: Mapping[str, str]) -> int:
    """Run until told to stop. Exit codes: 0 stopped, 1 a job failed, 2 wrong settings; the others see `kube.exits`."""
    try:
        settings = parse_settings(env)
        access = read_access(env)
    except AlineoError as error:
        print(f"alineod operator: {error.message}", file=sys.stderr)  # noqa: T201
        return 2
    start_logging(settings.log_format)
    Garbage().start()
    return asyncio.run(_run(settings, access, env))


async def _run(settings: Settings, access: ClusterAccess, env: Mapping[str, str]) -> int:
    loop = asyncio.get_running_loop()
    clock, metrics = SystemClock(), Metrics()
    acquired: asyncio.Future[int] = loop.create_future()

    def on_acquired(epoch: int) -> None:
        loop.call_soon_threadsafe(acquired.set_result, epoch)

    elector = Elector(
        LeaseClient(access, clock, settings.namespace, LEASE),
        LeaseWatch(access, clock, settings.namespace, LEASE),
        build_identity(settings.pod_name, settings.pod_uid, lambda: uuid.uuid4().hex[:8]),
        die=lambda why: exit_at_once(LEASE_LOST, why),
        on_acquired=on_acquired,
        observe=metrics.observe_renewal,
    )
    bucket = build_bucket(settings, clock)
    health = Health(elector, clock)
    switch = Switch(build_standby_app(_say_standby, health, settings.instance))
    parts = Parts(settings, access, clock, metrics, elector, health, switch, bucket, env)
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    return await _serve(parts, acquired, stopped)


def _say_standby() -> str:
    return "this process does not lead, or does not yet: ask again, the Service alineod leads to the one that does"


async def _serve(parts: Parts, acquired: asyncio.Future[int], stopped: asyncio.Event) -> int:
    # First of all: only one process of a pod can have these ports, so that no earlier one is left when this contends.
    _, stop_health = start_health_server(parts.health, HEALTH_PORT)
    stop_metrics = start_metrics_server(parts.metrics, METRICS_PORT)
    stop_api = await start_server(parts.switch)
    lag = asyncio.create_task(watch_loop(parts.health, parts.clock, parts.metrics.observe_lag), name="loop lag")
    try:
        await _contend(parts, acquired, stopped)
        return 0
    finally:
        await run_apart(parts.elector.release)
        lag.cancel()
        await stop_api()
        stop_metrics()
        stop_health()


async def _contend(parts: Parts, acquired: asyncio.Future[int], stopped: asyncio.Event) -> None:
    """Wait for the lease, and lead for as long as it is ours and nobody says to stop."""
    settings, remaining = parts.settings, parts.elector.compute_remaining
    async with (
        open_api(parts.access, parts.clock) as always,
        open_api(parts.access, parts.clock, remaining=remaining) as leading,
    ):
        dropping = asyncio.create_task(Role(always, settings.namespace, settings.pod_name).drop(), name="no role")
        parts.elector.start()
        waiting = asyncio.create_task(stopped.wait())
        await asyncio.wait((acquired, waiting), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if acquired.done():
            parts.metrics.set_epoch(acquired.result())
            role = Role(leading, settings.namespace, settings.pod_name)
            await _lead(parts, acquired.result(), stopped, role, dropping)
        await cancel_all([dropping])


def _say_failed(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("the task %s failed", task.get_name(), exc_info=error)


async def _lead(parts: Parts, epoch: int, stopped: asyncio.Event, role: Role, dropping: "asyncio.Task[None]") -> None:
    writing = [asyncio.create_task(role.take_from_others(), name="role of others")]

    async def take() -> None:
        await dropping  # what is written first must not arrive last
        await role.take()

    async def on_open() -> None:
        """Who looks for the leader waits for the label; what else is to be done waits for it only for a while."""
        writing.append(asyncio.create_task(take(), name="role"))
        writing[-1].add_done_callback(_say_failed)
        await asyncio.wait(writing[1:], timeout=ROLE_PATIENCE)

    try:
        await run_term(parts, epoch, stopped, on_open)
    finally:
        await cancel_all(writing)
