"""Wires the sidecar together and runs it to its shutdown."""

import asyncio
import logging
import resource
import signal
import sys
import time
from collections.abc import Mapping

from alineod.checkpointer.api import Api, run_detached
from alineod.checkpointer.environment import Environment, parse_environment
from alineod.checkpointer.packer import Packer
from alineod.checkpointer.remote import Operator
from alineod.checkpointer.uploads import Uploader
from alineod.checkpoints.store import Store
from alineod.errors import AlineoError
from alineod.files import Token
from alineod.httpd import Server
from alineod.wire.archives import ADMISSION

_CLOSE_GRACE = 2.0  # s for answers that are on their way
_FILES = 8192  # descriptors, for trees as deep as they may be
_log = logging.getLogger("alineod.checkpointer")


def main(env: Mapping[str, str]) -> int:
    """Run the checkpointer. Returns 0 after a shutdown, 2 when the environment is unusable."""
    configure_process()
    try:
        environment = parse_environment(env)
    except AlineoError as error:
        _log.error("%s", error.message)
        return 2
    asyncio.run(_serve(environment))
    return 0


def configure_process() -> None:
    """Log to stderr, and allow as many open files as the system lets us."""
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def _serve(environment: Environment) -> None:
    shutdown = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, shutdown.set)
    store = Store(environment.checkpoints, environment.keep)
    store.sweep()
    uploader = Uploader(store, Operator(environment.operator_url, environment.token_file), time.time)
    packer = Packer(environment, store, time.time, time.sleep)
    server = Server(Api(packer, store, uploader).routes(), Token(environment.control / ADMISSION), _log_error)
    port = await server.start(environment.host, environment.port)
    uploader.start()
    _log.info("the checkpointer of %s, incarnation %d, listens on %d", environment.agent, environment.incarnation, port)
    await shutdown.wait()
    _log.info("asked to shut down; uploads have %g s", environment.drain_grace)
    await run_detached(lambda: uploader.drain(environment.drain_grace))
    await server.close(_CLOSE_GRACE)


def _log_error(where: str, error: Exception) -> None:
    _log.error("%s: %r", where, error, exc_info=error)
