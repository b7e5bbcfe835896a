"""Opening the ledger for a new term: claim a number, take the newest copy, check it, replicate it, publish it.

The steps may be cut off anywhere: what a start leaves behind is never taken for a copy that has acknowledged events
(see `places` and `fence`), and the next one begins with a number of its own.
"""

import secrets
from collections.abc import Callable
from functools import partial

from alineod.clock import Clock
from alineod.errors import AlineoError, Unavailable
from alineod.ledger.audit import audit_ledger
from alineod.ledger.places import Volume
from alineod.ledger.port import Observe
from alineod.ledger.replicate import Remote
from alineod.ledger.sqlite import Chore, Fatal, SqliteLedger
from alineod.ledger.start import Opening, Start
from alineod.ledger.tidy import tidy_former_terms


async def open_ledger(
    opening: Opening,
    clock: Clock,
    remote: Remote | None = None,
    *,
    may_lead: Callable[[], bool] = lambda: True,
    fatal: Fatal = lambda error: None,
    make_secret: Callable[[], bytes] = lambda: secrets.token_bytes(32),
    step: Callable[[str], None] = lambda name: None,
    report: Callable[[AlineoError], None] = lambda failure: None,
    observe: Observe | None = None,
) -> SqliteLedger:
    """Begin a term.

    Args:
        remote: where the replica is; None without a bucket.
        may_lead: asked after the bucket was looked at and before the term is claimed, whether the lease is held.
        fatal, observe: see `SqliteLedger`.
        step: told the name of each step before it is taken.
        report: told, on another thread, why the bucket does not confirm the new term's replica yet; that is waited for.

    Raises:
        Unavailable: the bucket, the volume or the sidecar does not answer, or another process took over at the same
            moment. Try again.
        Denied, NotFound, Refused: the bucket refuses, or the copy belongs to another instance or to a later version.
        Damaged: no undamaged copy holds everything that was acknowledged.
    """
    start = Start(opening, clock, remote, make_secret)
    try:
        step("look")
        await start.look()
        step("claim")
        await start.claim(may_lead)
        step("build")
        built = await start.build()
        step("place")
        path = await start.place()
        step("replicate")
        await start.replicate(path, report)
        step("publish")
        acknowledger = await start.publish(path)
        step("open")
        await start.open()
        step("clean")
        await start.clean()
    except OSError as error:
        raise Unavailable("LedgerVolumeFailed", f"The ledger's volume {opening.volume} failed: {error}.") from error
    step("serve")
    chores: list[Chore] = []
    if not built.whole:
        chores.append(partial(audit_ledger, Volume(opening.volume), path, fatal))
    if remote is not None:
        chores.append(partial(tidy_former_terms, remote, built.identity.epoch, clock))
    return SqliteLedger(path, built.identity, built.state, acknowledger, clock, fatal, observe=observe, chores=chores)
