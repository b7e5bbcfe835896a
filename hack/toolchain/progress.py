"""Saying what happens: one line a time, each with the step that speaks, and waiting aloud for programs."""

import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from hack.toolchain.errors import ToolchainError

PATIENCE = 15.0  # seconds of silence before a step says that it is still at work
_SPEAKING = threading.Lock()

Word = str | Path  # one word of a command line


def say(step: str, text: str) -> None:
    """Print one line for a step."""
    with _SPEAKING:
        print(f"{step:>11}  {text}", file=sys.stderr, flush=True)


def spell(seconds: float) -> str:
    """A duration as a person says it: 42s, 3m 05s."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m {rest:02d}s" if minutes else f"{rest}s"


def run(
    step: str,
    argv: Sequence[Word],
    *,
    log: Path,
    env: Mapping[str, str],
    cwd: Path | None = None,
    describe: Callable[[str], str] = lambda text: "",
) -> None:
    """Run a program with its output in a log, and say every so often that it still runs.

    `describe` turns what the program has written so far into a word on how far it is.
    Raises ToolchainError with the end of the log when the program fails.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    words = [str(word) for word in argv]
    tied = _tie(words)
    begin = time.monotonic()
    with log.open("ab") as out:
        out.write(f"$ {' '.join(words)}\n".encode())
        out.flush()
        start = out.tell()
        try:
            process = subprocess.Popen(tied, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env, cwd=cwd)
        except OSError as error:
            raise ToolchainError(f"{words[0]} cannot be run: {error}") from error
        code = _wait_aloud(step, process, begin, lambda: describe(_read_from(log, start)))
    if code != 0:
        tail = "\n".join(_read_from(log, start).splitlines()[-25:])
        raise ToolchainError(f"{Path(words[0]).name} failed with exit code {code}; the end of {log}:\n{tail}")


def _tie(words: Sequence[str]) -> list[str]:
    """Let the program end with this process: else a killed run would go on building behind the next one's back."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "TERM", "--", *words] if setpriv else list(words)


def _wait_aloud(step: str, process: subprocess.Popen[bytes], begin: float, describe: Callable[[], str]) -> int:
    try:
        while True:
            try:
                return process.wait(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                how_far = describe()
                say(step, f"still at work, {spell(time.monotonic() - begin)}{how_far and ': '}{how_far}")
    except BaseException:
        process.terminate()
        process.wait()
        raise


def _read_from(log: Path, start: int) -> str:
    with log.open("rb") as source:
        source.seek(start)
        return source.read().decode(errors="replace")
