"""Checks every row of a ledger in service, in a process of its own, so that neither the start nor the loop waits.

A start that goes on from a kept fold has not looked at the rows before it. What this finds is for a person to decide:
the process ends, and whoever takes over on this volume checks the whole file before it begins.
"""

import asyncio
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path

from alineod.errors import AlineoError, Damaged
from alineod.ledger.build import verify_file
from alineod.ledger.places import Volume

DELAY = 60.0
"""Seconds after the start: a take-over has other work at first."""
DAMAGED = 3
"""The child's exit code when it found damage; its standard output says which."""
_CHILD = "import sys; from alineod.ledger.audit import main; sys.exit(main(sys.argv[1]))"

log = logging.getLogger(__name__)


async def audit_ledger(volume: Volume, file: Path, fatal: Callable[[AlineoError], None], delay: float = DELAY) -> None:
    """Check `file` on `volume` once; `fatal` is told when it is damaged."""
    await asyncio.sleep(delay)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _CHILD, file),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    said = output.decode(errors="replace").strip()
    if process.returncode == DAMAGED:
        try:
            volume.write_doubt()
        finally:
            fatal(Damaged("LedgerDamaged", said))
    elif process.returncode:
        log.warning("the ledger could not be checked (exit code %d): %s", process.returncode, said)


def main(file: str) -> int:
    """The child."""
    os.nice(19)
    try:
        verify_file(Path(file))
    except Damaged as damage:
        sys.stdout.write(damage.message)
        return DAMAGED
    return 0
