"""Wires the bridge together and runs it to its shutdown. Everything it needs comes in by the environment."""

import asyncio
import logging
import sys
import time
import uuid
from collections.abc import Mapping
from typing import Any

from alineod.bridge.api import Api
from alineod.bridge.cut import Packer
from alineod.bridge.epochs import Epochs
from alineod.bridge.harness import Harness
from alineod.bridge.journal import Journal
from alineod.bridge.pi import Pi
from alineod.bridge.prepare import DRAINING, Preparation, Standing, read_report, read_session
from alineod.bridge.processes import Children
from alineod.bridge.settings import Settings, parse_settings
from alineod.bridge.setup import SetupScript
from alineod.bridge.signals import block_shutdown, watch_shutdown
from alineod.bridge.turns import Turns
from alineod.errors import AlineoError
from alineod.files import Token
from alineod.httpd import Server
from alineod.wire.archives import ADMISSION
from alineod.wire.turns import BridgeState

_CLOSE_GRACE = 2.0  # s for followers to read the last records
_log = logging.getLogger("alineod.bridge")


def main(env: Mapping[str, str]) -> int:
    """Run the bridge. Returns 0 after a shutdown, 2 when the environment is unusable, 1 when it cannot go on."""
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s")
    try:
        settings = parse_settings(env)
    except AlineoError as error:
        _log.error("%s", error)
        return 2
    block_shutdown()
    return asyncio.run(_Bridge(settings).run())


class _Bridge:
    """The parts of one bridge process."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._boot = uuid.uuid4().hex

    async def run(self) -> int:
        settings = self._settings
        shutdown = asyncio.Event()
        watch_shutdown(shutdown.set)
        children = Children(settings.workspace)
        children.install()
        harness = build_harness(settings, children)
        journal = Journal(settings.control / "journal", time.time)
        setup = SetupScript(settings.setup, settings.control, settings.incarnation, children)
        token = Token(settings.control / ADMISSION)
        preparation = Preparation(settings, harness, setup, token)
        packer = Packer(settings.checkpointer, token, settings.cut_limit, settings.cut_retry)
        turns = Turns(journal, harness, preparation, packer, lambda: read_session(settings.control), time.monotonic)
        turns.mend()

        def state(standing: Standing) -> BridgeState:
            return build_state(settings, self._boot, standing, turns, journal)

        server = Server(
            Api(turns, journal, preparation, Epochs(settings.control / "epoch"), state).routes(),
            token,
            _log_error,
        )
        port = await server.start(settings.host, settings.port)
        _log.info("the bridge of %s, incarnation %d, listens on port %d", settings.agent, settings.incarnation, port)
        preparing = asyncio.create_task(preparation.run())
        code = await _until_over(shutdown, turns)
        preparing.cancel()
        await turns.drain(settings.drain_grace, settings.cut_grace)
        journal.close()
        await server.close(_CLOSE_GRACE)
        return code


async def _until_over(shutdown: asyncio.Event, turns: Turns) -> int:
    waiting = asyncio.ensure_future(shutdown.wait())
    either: list[asyncio.Future[Any]] = [waiting, turns.broken]
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if turns.broken.done():
        _log.error("the bridge cannot go on, so it ends: %r", turns.broken.result())
        return 1
    _log.info("asked to shut down")
    return 0


def build_harness(settings: Settings, children: Children) -> Harness | None:
    """The adapter for the harness the agent's spec names; None where there is none yet."""
    match settings.harness.type:
        case "Pi":
            return Pi(settings, children)
        case _:
            return None


def build_state(settings: Settings, boot: str, standing: Standing, turns: Turns, journal: Journal) -> BridgeState:
    """The answer to GET /v1/state."""
    latest = turns.memory.latest
    standing = DRAINING if turns.draining else standing
    report = read_report(settings.control)
    return BridgeState(
        agent=settings.agent,
        incarnation=settings.incarnation,
        boot=boot,
        ready=standing.ready,
        reason=standing.reason,
        message=standing.message,
        turn=latest.accepted if latest else None,
        journal_seq=journal.seq,
        gate_shut=turns.gate_shut,
        draining=turns.draining,
        restored_turn=report.turn if report else None,
        harness=settings.harness.type,
    )


def _log_error(where: str, error: Exception) -> None:
    _log.error("%s: %r", where, error, exc_info=error)
