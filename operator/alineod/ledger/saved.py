"""A fold that is kept in the ledger, so that whoever takes over need not fold from the first event. Pure.

It is worth nothing beside the events: made of them, bound to one of them by its hash, and passed over by any other
version of the fold.
"""

import hashlib
import inspect
from dataclasses import dataclass
from functools import cache
from types import ModuleType

import msgspec

from alineod.domain import events, fold, kept, state
from alineod.domain.state import State
from alineod.ledger import chain, records
from alineod.ledger.chain import Head
from alineod.wire import archives, base, turns, usage


@dataclass(frozen=True)
class Saved:
    """The fold of everything up to `head`, encoded by the program whose `version` this is."""

    head: Head
    version: str
    body: bytes


def build_saved(folded: State, hash_: str) -> Saved | None:
    """What to keep of a fold; `hash_` is that of its last row. None for one that cannot be encoded.

    A sandbox may have reported a number of any size; the ledger goes on without a kept fold then.
    """
    try:
        body = msgspec.msgpack.encode(folded)
    except (OverflowError, TypeError, ValueError):
        return None
    return Saved(Head(folded.seq, hash_), compute_version(), body)


def parse_saved(saved: Saved) -> State | None:
    """The fold; None when another version made it, or when it is not readable."""
    if saved.version != compute_version():
        return None
    try:
        return msgspec.msgpack.decode(saved.body, type=State)
    except msgspec.DecodeError:
        return None


@cache
def compute_version() -> str:
    """A digest of the source of everything that a fold is made by and of."""
    modules: tuple[ModuleType, ...] = (events, fold, kept, state, turns, usage, archives, base, chain, records)
    return hashlib.sha256("".join(map(inspect.getsource, modules)).encode()).hexdigest()
