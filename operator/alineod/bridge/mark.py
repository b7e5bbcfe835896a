"""What must be known of the journal even when it is gone: a small file beside it, replaced as a whole.

An agent may be root in its container and remove or spoil the journal. A turn that had begun must not run again in
silence for that, and a number that a reader was given must never come to stand for something else.
"""

from pathlib import Path

import msgspec

from alineod.files import write_file
from alineod.wire.turns import Session


class Mark(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Numbers up to `reserved` may have been given out; up to `safe` a reader has all records.

    `turn` is the newest that was begun, 0 for none. `session` is where the conversation stood after the last clean
    turn; `halfway`: half a turn may stand behind it.
    """

    turn: int = 0
    turn_id: str = ""
    session: Session | None = None
    halfway: bool = False
    reserved: int = 0
    safe: int = 0


def read_mark(path: Path) -> Mark | None:
    """The mark; None when there is none that can be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Mark)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def write_mark(path: Path, mark: Mark) -> None:
    """Replace the mark.

    Raises:
        OSError: it cannot be kept.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, msgspec.json.encode(mark))
