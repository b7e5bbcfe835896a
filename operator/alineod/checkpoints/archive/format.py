"""What an archive says about itself, and the rules its paths keep. Pure; knows nothing of tar's bytes."""

from alineod.errors import Damaged
from alineod.wire.base import Message
from alineod.wire.turns import Session

VERSION = 1
HEAD = b"alineo/head.json"
JOURNAL = b"alineo/journal.jsonl"
MANIFEST = b"alineo/manifest.json"
HOME = b"home"
WORKSPACE = b"workspace"
ROOTS = (HOME, WORKSPACE)

MAX_DEPTH = 500  # directories below a root; deeper ones are skipped and named
MAX_DOCUMENT = 4 * 1024 * 1024  # bytes of head and manifest
MAX_NAMED = 500  # paths a manifest names of each sort; the rest are counted

# What unpacking puts beside a root's own entries for a while, and what a file system keeps there.
STAGING = b".alineo-staging"
PLACING = b".alineo-placing"
RESERVED = frozenset({STAGING, PLACING, b"lost+found"})


class Head(Message, frozen=True):
    """The first member. `turn` is None for a fork; `created` is Unix seconds."""

    version: int
    agent: str
    run: str
    incarnation: int
    home: str
    created: float
    turn: int | None = None
    turn_id: str = ""
    session: Session | None = None


class Noted(Message, frozen=True):
    """One path and a sentence about it. Bytes that are not UTF-8 are shown as `\\xNN`."""

    path: str
    reason: str


class Manifest(Message, frozen=True):
    """The last member: what the archive holds. `bytes` are those of the files' contents as stored, holes left out.

    `skipped` is not in the archive, `inexact` is there but not as any single moment had it, `excluded` was left out
    by rule. Of each at most 500 are named; the counts are whole.
    """

    directories: int = 0
    files: int = 0
    hard_links: int = 0
    symlinks: int = 0
    bytes: int = 0
    journal_records: int = 0
    skipped: list[Noted] = []
    skipped_count: int = 0
    inexact: list[Noted] = []
    inexact_count: int = 0
    excluded: list[str] = []
    excluded_count: int = 0


def split_path(path: bytes) -> list[bytes]:
    """The components of a member's path below `home` or `workspace`, the root first.

    Raises:
        Damaged: the path is absolute, leads upwards, is not canonical, or lies outside both roots.
    """
    parts = path.split(b"/")
    if b"\0" in path or any(part in (b"", b".", b"..") for part in parts):
        raise Damaged("ArchiveDamaged", f"the archive has the path {show_path(path)!r}, which leads outside")
    if parts[0] not in ROOTS or len(parts) > MAX_DEPTH + 2 or any(len(part) > 255 for part in parts):
        raise Damaged("ArchiveDamaged", f"the archive has the path {show_path(path[:4096])!r}, which is never packed")
    if len(parts) > 1 and parts[1] in RESERVED:
        raise Damaged("ArchiveDamaged", f"the archive has the reserved path {show_path(path)!r}")
    return parts


def show_path(path: bytes) -> str:
    """A path as text for people and JSON."""
    return path.decode("utf-8", "backslashreplace")
