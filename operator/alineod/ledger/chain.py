"""The order and the hash chain of the ledger, as pure functions.

Decides which rows an append becomes and whether stored rows are what was written. Must not know where rows are kept.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from alineod.domain.events import AnyBody, Row, event_name
from alineod.errors import Conflict, Damaged, Refused
from alineod.ledger.records import Prepared, parse_payload

GENESIS = "0" * 64
"""What the first row names as the hash of the row before it."""


@dataclass(frozen=True)
class Head:
    """The last row: its seq (0 for none) and hash (hex)."""

    seq: int = 0
    hash: str = GENESIS


class Stored(msgspec.Struct, frozen=True):
    """A row as it is kept. `time` is in microseconds since 1970, `prev` and `hash` are hex."""

    seq: int
    time: int
    id: str
    run: str
    agent: str | None
    event: str
    payload: str
    prev: str
    hash: str


@dataclass(frozen=True)
class Plan:
    """What to do for one append: write `new` (the same as `added`), then answer with `rows`, one for each entry."""

    new: Sequence[Stored]
    added: Sequence[Row]
    rows: Sequence[Row]
    head: Head


def compute_hash(row: Stored) -> str:
    """SHA-256 (hex) over everything in the row but its own hash, each field with its length before it."""
    agent = row.agent or ""  # never empty when there is one
    fields = (row.prev, str(row.seq), str(row.time), row.id, row.run, agent, row.event, row.payload)
    encoded = [field.encode("utf-8", "surrogatepass") for field in fields]
    return hashlib.sha256(b"".join([b"%d:%b" % (len(data), data) for data in encoded])).hexdigest()


def parse_row(stored: Stored) -> Row:
    """The row as the program sees it.

    Raises:
        Refused: `UnknownEvent`, with its seq.
    """
    try:
        return _build_row(stored, parse_payload(stored.payload))
    except Refused as error:
        raise Refused(error.reason, f"Row {stored.seq} ({stored.event}): {error.message}") from error


def decide_append(entries: Sequence[Prepared], standing: Mapping[str, Row], head: Head, time: int) -> Plan:
    """The rows for `entries`, in order; entries whose id stands, or comes twice, are not doubled.

    Args:
        standing: rows by id, at least all those whose id is in `entries`.
        time: microseconds since 1970, for all new rows.

    Raises:
        Conflict: `IdTaken`, an id stands for another event, run or agent.
    """
    new, added, rows = list[Stored](), dict[str, Row](), list[Row]()
    for entry in entries:
        row = standing.get(entry.id) or added.get(entry.id)
        if row is None:
            stored = _build_stored(entry, head, time)
            row, head = _build_row(stored, entry.body), Head(stored.seq, stored.hash)
            new.append(stored)
            added[entry.id] = row
        _check_same(entry, row)
        rows.append(row)
    return Plan(new, list(added.values()), rows, head)


def verify_rows(rows: Iterable[Stored], head: Head = Head()) -> Iterator[Stored]:
    """Pass on `rows`, which follow `head`, as long as seq and chain hold.

    Raises:
        Damaged: `SequenceBroken` or `ChainBroken`, naming the first bad row.
    """
    for row in rows:
        if row.seq != head.seq + 1:
            raise Damaged("SequenceBroken", f"Row {head.seq + 1} is missing: after row {head.seq} comes row {row.seq}.")
        if row.prev != head.hash:
            raise Damaged("ChainBroken", f"Row {row.seq} does not follow the row before it: one of them was changed.")
        if row.hash != compute_hash(row):
            raise Damaged("ChainBroken", f"Row {row.seq} ({row.event}, id {row.id}) was changed after it was written.")
        head = Head(row.seq, row.hash)
        yield row


def _build_stored(entry: Prepared, head: Head, time: int) -> Stored:
    unsigned = Stored(
        head.seq + 1, time, entry.id, entry.run, entry.agent, entry.event, entry.payload, prev=head.hash, hash=""
    )
    return msgspec.structs.replace(unsigned, hash=compute_hash(unsigned))


def _build_row(stored: Stored, body: AnyBody) -> Row:
    return Row(
        seq=stored.seq, time=stored.time / 1_000_000, id=stored.id, run=stored.run, agent=stored.agent,
        body=body, prev=stored.prev, hash=stored.hash,
    )  # fmt: skip


def _check_same(entry: Prepared, row: Row) -> None:
    asked, stands = (entry.event, entry.run, entry.agent), (event_name(row.body), row.run, row.agent)
    if asked != stands:
        raise Conflict(
            "IdTaken",
            f"The id {entry.id} stands in row {row.seq} for {stands[0]} of {row.agent or row.run};"
            f" {entry.event} of {entry.agent or entry.run} needs an id of its own.",
        )
