"""Writes what the agent is given besides its files: its inputs. The directory is a volume of its own.

<inputs>/files/<name>   is /inputs/<name> in the agent's container
<inputs>/inputs.json    is /inputs.json there; always written, because a mount needs something to show
"""

import shutil
from collections.abc import Iterable
from pathlib import Path

from alineod.checkpointer.environment import Owner
from alineod.checkpointer.ownership import give
from alineod.errors import Refused
from alineod.wire.archives import InputFile

_INDEX = "/inputs.json"
_BELOW = "/inputs/"


def write_inputs(directory: Path, files: Iterable[InputFile], owner: Owner | None) -> None:
    """Replace the inputs by these.

    Raises:
        Refused: reason `InvalidInput`; a path is none of the two above.
        OSError: the volume does not take them.
    """
    texts = {_INDEX: "{}\n"} | {file.path: file.text for file in files}
    names = {_parse_name(path): text for path, text in texts.items()}
    shutil.rmtree(directory / "files", ignore_errors=True)
    (directory / "files").mkdir(mode=0o755)
    give(directory / "files", owner)
    for name, text in names.items():
        path = directory / name
        path.unlink(missing_ok=True)
        path.write_text(text, encoding="utf-8", errors="replace")
        path.chmod(0o644)
        give(path, owner)


def _parse_name(path: str) -> str:
    name = path.removeprefix(_BELOW)
    if path == _INDEX:
        return "inputs.json"
    if not path.startswith(_BELOW) or name in ("", ".", "..") or "/" in name or "\0" in name:
        raise Refused("InvalidInput", f"an input cannot be written to {path!r}: only /inputs/<name> and /inputs.json")
    return f"files/{name}"
