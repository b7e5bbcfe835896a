"""The header of one tar member, as bytes: POSIX ustar with pax records, and GNU's sparse form 1.0.

Pure. Reading is strict: a header that `build_header` cannot have written is Damaged. Names are bytes throughout, so
that one which is not UTF-8 is a name like any other.
"""

import functools
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from alineod.errors import Damaged

BLOCK = 512
END = bytes(2 * BLOCK)
MAX_RECORDS = 1024 * 1024  # bytes of pax records one member may have

_LAYOUT = struct.Struct("100s8s8s8s12s12s8s1s100s8s32s32s8s8s155s12x")
_WRITTEN = struct.Struct("100s48s8s1s100s255s")
_MAGIC = b"ustar\x0000"
_REST = _MAGIC + bytes(64) + b"0000000\x00" * 2
_PAX = b"x"
_MAX_ID = 0o7777777
_MAX_SIZE = 0o77777777777
_MAX_OWNER = 2**32 - 2
_MAX_LENGTH = 2**63 - 1
_NANO = 10**9
_MTIME = re.compile(rb"(-?)(\d{1,12})(?:\.(\d{9}))?")
_MAX_MTIME = 10**12 * _NANO - 1
_RECORD = re.compile(rb"(\d{1,7}) ([^=]+)=")
_SPARSE = {b"GNU.sparse.major", b"GNU.sparse.minor", b"GNU.sparse.name", b"GNU.sparse.realsize"}
_KNOWN = {b"hdrcharset", b"path", b"linkpath", b"size", b"uid", b"gid", b"mtime"} | _SPARSE


class Kind(Enum):
    """The types of member an archive may hold; devices, FIFOs and sockets are not among them."""

    FILE = b"0"
    HARD_LINK = b"1"
    SYMLINK = b"2"
    DIRECTORY = b"5"


@dataclass(frozen=True, slots=True)
class Entry:
    """One member.

    Attributes:
        stored: bytes of data that follow in the stream, without padding; for a sparse file its map and its extents.
        size: the length of a sparse file on disk; None for every other member.
    """

    path: bytes
    kind: Kind
    mode: int
    uid: int
    gid: int
    mtime_ns: int
    stored: int = 0
    target: bytes = b""
    size: int | None = None


def compute_padding(size: int) -> int:
    """The zero bytes that follow `size` bytes of data."""
    return -size % BLOCK


def build_header(entry: Entry) -> bytes:
    """The member's header blocks: a pax header first where the fields of ustar do not hold everything."""
    name = entry.path + b"/" if entry.kind is Kind.DIRECTORY else entry.path
    records = _build_records(entry, name)
    if entry.size is not None:
        name = b"GNUSparseFile.0/" + entry.path.rpartition(b"/")[2]
    seconds = entry.mtime_ns // _NANO
    block = _build_block(
        name,
        (entry.mode, _fit(entry.uid, _MAX_ID), _fit(entry.gid, _MAX_ID)),
        _fit(entry.stored, _MAX_SIZE),
        _fit(seconds, _MAX_SIZE),
        entry.kind.value,
        entry.target,
    )
    if not records:
        return block
    body = b"".join(map(_build_record, records, records.values()))
    return _build_pax_block(len(body)) + body + bytes(compute_padding(len(body))) + block


@functools.lru_cache(maxsize=256)
def _build_pax_block(size: int) -> bytes:
    """Nearly every member has one, for its time, and most are of the same few sizes."""
    return _build_block(b"PaxHeader", (0o644, 0, 0), size, 0, _PAX, b"")


def _build_records(entry: Entry, name: bytes) -> dict[bytes, bytes]:
    records: dict[bytes, bytes] = {}
    if entry.size is not None:
        records |= {b"GNU.sparse.major": b"1", b"GNU.sparse.minor": b"0"}
        records |= {b"GNU.sparse.name": name, b"GNU.sparse.realsize": b"%d" % entry.size}
    elif len(name) > 100:
        records[b"path"] = name
    if len(entry.target) > 100:
        records[b"linkpath"] = entry.target
    if not all(map(_is_utf8, records.values())):
        records = {b"hdrcharset": b"BINARY"} | records
    for key, value, limit in ((b"size", entry.stored, _MAX_SIZE), (b"uid", entry.uid, _MAX_ID)):
        if value > limit:
            records[key] = b"%d" % value
    if entry.gid > _MAX_ID:
        records[b"gid"] = b"%d" % entry.gid
    if entry.mtime_ns % _NANO or not 0 <= entry.mtime_ns // _NANO <= _MAX_SIZE:
        sign = b"-" if entry.mtime_ns < 0 else b""
        records[b"mtime"] = sign + b"%d.%09d" % divmod(min(abs(entry.mtime_ns), _MAX_MTIME), _NANO)
    return records


def _fit(value: int, limit: int) -> int:
    return value if 0 <= value <= limit else 0


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _build_record(key: bytes, value: bytes) -> bytes:
    """`length key=value`, where the length counts its own digits."""
    rest = len(key) + len(value) + 3
    length = rest + len(str(rest))
    length = rest + len(str(length))
    return b"%d %b=%b\n" % (length, key, value)


def _build_block(
    name: bytes, owner: tuple[int, int, int], size: int, seconds: int, kind: bytes, target: bytes
) -> bytes:
    numbers = b"%07o\0%07o\0%07o\0%011o\0%011o\0" % (*owner, size, seconds)
    block = _WRITTEN.pack(name[:100], numbers, b" " * 8, kind, target[:100], _REST)
    return block[:148] + b"%06o\0 " % sum(block) + block[156:]


def is_pax(block: bytes) -> bool:
    """Whether this header announces pax records for the member after it."""
    return block[156:157] == _PAX


def parse_size(block: bytes) -> int:
    """The data that follow a header block, for the pax header, which has no records of its own."""
    return _parse_block(block)[4]


def parse_header(block: bytes, records: Mapping[bytes, bytes]) -> Entry:
    """The member that a header block and the pax records before it describe.

    Raises:
        Damaged: reason `ArchiveDamaged`.
    """
    name, mode, uid, gid, stored, seconds, kind, target = _parse_block(block)
    try:
        of_kind = Kind(kind)
    except ValueError:
        raise _damaged(f"a member of type {kind!r}, which is never packed") from None
    sparse = records.keys() & _SPARSE
    if sparse and (sparse != _SPARSE or of_kind is not Kind.FILE or b"path" in records):
        raise _damaged("sparse records that do not belong together")
    path = records.get(b"GNU.sparse.name" if sparse else b"path", name)
    if of_kind is Kind.DIRECTORY:
        if not path.endswith(b"/"):
            raise _damaged(f"the directory {path!r} without its slash")
        path = path[:-1]
    return Entry(
        path=path,
        kind=of_kind,
        mode=mode,
        uid=_parse_number(records, b"uid", uid, _MAX_OWNER),
        gid=_parse_number(records, b"gid", gid, _MAX_OWNER),
        mtime_ns=_parse_mtime(records[b"mtime"]) if b"mtime" in records else seconds * _NANO,
        stored=_parse_number(records, b"size", stored, _MAX_LENGTH),
        target=records.get(b"linkpath", target),
        size=_parse_number(records, b"GNU.sparse.realsize", 0, _MAX_LENGTH) if sparse else None,
    )


def _parse_block(block: bytes) -> tuple[bytes, int, int, int, int, int, bytes, bytes]:
    name, mode, uid, gid, size, seconds, checksum, kind, target, magic, *_ = _LAYOUT.unpack(block)
    if magic != _MAGIC:
        raise _damaged("a header that is not of tar")
    expected = sum(block) - sum(checksum) + 8 * 32
    if _parse_octal(checksum) != expected:
        raise _damaged("a header whose checksum is wrong")
    numbers = tuple(map(_parse_octal, (mode, uid, gid, size, seconds)))
    if numbers[0] > 0o7777:
        raise _damaged("a mode with unknown bits")
    return name.rstrip(b"\0"), *numbers, kind, target.rstrip(b"\0")


def _parse_octal(field: bytes) -> int:
    digits = field.rstrip(b"\0 ")
    if not digits or digits.strip(b"01234567"):
        raise _damaged(f"a header with the number {field!r}")
    return int(digits, 8)


def parse_records(body: bytes) -> dict[bytes, bytes]:
    """The pax records of one member.

    Raises:
        Damaged: reason `ArchiveDamaged`.
    """
    records: dict[bytes, bytes] = {}
    start = 0
    while start < len(body):
        match = _RECORD.match(body, start)
        end = start + int(match[1]) if match else 0
        if match is None or not match.end() < end <= len(body) or body[end - 1 : end] != b"\n":
            raise _damaged("pax records that cannot be read")
        if match[2] in records or match[2] not in _KNOWN:
            raise _damaged(f"the pax record {match[2]!r}, which is never packed so")
        records[match[2]] = body[match.end() : end - 1]
        start = end
    return records


def _parse_number(records: Mapping[bytes, bytes], key: bytes, otherwise: int, limit: int) -> int:
    text = records.get(key)
    if text is None:
        return otherwise
    if not text.isdigit() or len(text) > 19 or int(text) > limit:
        raise _damaged(f"the pax record {key!r} with the number {text[:40]!r}")
    return int(text)


def _parse_mtime(text: bytes) -> int:
    match = _MTIME.fullmatch(text)
    if match is None:
        raise _damaged(f"a time of {text[:40]!r}")
    nanoseconds = int(match[2]) * _NANO + int(match[3] or 0)
    return -nanoseconds if match[1] else nanoseconds


def _damaged(what: str) -> Damaged:
    return Damaged("ArchiveDamaged", f"the archive has {what}")
