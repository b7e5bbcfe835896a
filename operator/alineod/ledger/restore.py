"""Getting a term's database out of the bucket, with Litestream."""

import asyncio
import tempfile
from collections.abc import Mapping
from pathlib import Path

from alineod.errors import Unavailable
from alineod.ledger.litestream import build_database, build_environment, explain_restore, find_program, render_config
from alineod.ledger.replica import Replica

RESTORE_TIMEOUT = 600.0
"""Seconds."""


async def restore_replica(replica: Replica, target: Path, env: Mapping[str, str]) -> None:
    """Write the newest state of `replica` to the new file `target`.

    Args:
        env: holds the bucket's keys, and where the program is.

    Raises:
        Unavailable: the bucket does not answer or refuses.
        Damaged: `ReplicaDamaged`.
    """
    program = find_program(env)
    with tempfile.TemporaryDirectory() as directory:
        config = Path(directory) / "restore.json"
        config.write_text(render_config({"dbs": [build_database(target, replica)]}))
        code, output = await _run(program, "restore", "-no-expand-env", "-config", config, target, env=env)
    if code != 0:
        raise explain_restore(output, replica.bucket)


async def _run(*command: Path | str, env: Mapping[str, str]) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        *command,
        env=build_environment(env),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), RESTORE_TIMEOUT)
    except TimeoutError:
        raise Unavailable(
            "BucketSlow", f"The ledger could not be read from the bucket within {RESTORE_TIMEOUT:g} s."
        ) from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode or 0, output.decode(errors="replace")
