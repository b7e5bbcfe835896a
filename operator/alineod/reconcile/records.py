"""What of a sandbox's journal is believed: records as an honest bridge writes them, and nothing beyond. Pure.

The agent may be root beside its bridge. What it could write into the journal must not fill our memory, nor hold up who
reads it: a line that is no record is left out, and its number is missed at the next one.
"""

from typing import Any

from alineod.errors import Refused
from alineod.wire.base import decode
from alineod.wire.turns import JournalRecord

LONGEST = 512 << 10  # bytes of a record; a bridge keeps to half of it
HIGHEST = 10**12  # number of a record, or of a turn
DEEPEST = 64  # lists and objects within each other
LONGEST_NAME = 128  # characters of an event's name


def parse_record(line: bytes) -> JournalRecord | None:
    """A record of the journal; None for what is none."""
    if len(line) > LONGEST:
        return None
    try:
        record = decode(JournalRecord, line)
    except Refused:
        return None
    numbered = 0 <= record.turn <= HIGHEST and (record.seq is None or 0 < record.seq <= HIGHEST)
    return record if numbered and len(record.event) <= LONGEST_NAME and _is_flat(record.data, DEEPEST) else None


def _is_flat(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_is_flat(item, levels - 1) for item in inner)
