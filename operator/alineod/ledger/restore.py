"""Getting a term's database out of the bucket: its files side by side, then one database of them, with Litestream.

Litestream itself would read the files one after another, and would not notice one that went between its looks.
"""

import asyncio
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from alineod.bucket.port import Bucket
from alineod.errors import AlineoError, Damaged, NotFound, Unavailable
from alineod.ledger.files import Choice, ReplicaFile, choose_files
from alineod.ledger.litestream import build_environment, explain_restore, find_program, render_config

RESTORE_TIMEOUT = 600.0
"""Seconds."""
TRIES = 3
"""A former leader that does not know it yet may still tidy up where we read."""
PAUSE = 0.5
"""Seconds between them."""
AT_ONCE = 8
"""Files."""


async def restore_replica(bucket: Bucket, prefix: str, target: Path, env: Mapping[str, str]) -> None:
    """Write the newest state of the replica below `prefix` to the new file `target`.

    Args:
        bucket: holds the replica.
        prefix: of the term, with a slash at its end.
        target: must not exist.
        env: says where the program is.

    Raises:
        Unavailable, Denied, NotFound: the bucket does not answer or refuses.
        Damaged: `ReplicaDamaged`.
    """
    program = find_program(env)
    for left in reversed(range(TRIES)):
        try:
            return await _restore(program, bucket, prefix, target, env)
        except (Damaged, NotFound) as error:
            if not left:
                raise _explain(error, prefix) from error
        await asyncio.sleep(PAUSE)
    return None


def _explain(error: AlineoError, prefix: str) -> AlineoError:
    if isinstance(error, NotFound) and error.reason != "ObjectNotFound":
        return error
    return Damaged("ReplicaDamaged", f"The replica {prefix} in the bucket cannot be restored. {error.message}")


async def _restore(program: Path, bucket: Bucket, prefix: str, target: Path, env: Mapping[str, str]) -> None:
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="replica-") as name:
        directory = Path(name)
        choice = await asyncio.to_thread(_download, bucket, prefix, directory)
        config = directory / "restore.json"
        source = {"path": str(target), "replica": {"type": "file", "path": str(directory)}}
        config.write_text(render_config({"dbs": [source]}))
        command = ("restore", "-no-expand-env", "-txid", f"{choice.last:016x}", "-config", config, target)
        code, output = await _run(program, *command, env=env)
    if code != 0:
        raise explain_restore(output)


def _download(bucket: Bucket, prefix: str, directory: Path) -> Choice:
    choice = choose_files((found.key[len(prefix) :], found.size) for found in bucket.list(prefix))

    def get(file: ReplicaFile) -> None:
        place = directory / "ltx" / str(file.level) / file.file_name
        place.parent.mkdir(parents=True, exist_ok=True)
        bucket.download(prefix + file.name, place)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(get, choice.files))
    return choice


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
            "RestoreSlow", f"The ledger could not be built from its replica within {RESTORE_TIMEOUT:g} s."
        ) from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode or 0, output.decode(errors="replace")
