"""How this process ends at once, without asking anyone: no handler runs, no lock is waited for, nothing is flushed."""

import contextlib
import os
from typing import NoReturn

# The lease is lost: another process may be leading now.
LEASE_LOST = 75
# The watches have ended: what is known of the cluster grows old.
FEED_ENDED = 70
# The ledger's volume or the sidecar of this pod fails: another pod has others.
POD_FAILED = 74


def exit_at_once(code: int, why: str) -> NoReturn:
    """End the process now; `why` is written only if that takes no waiting: a full pipe must not keep a leader alive."""
    with contextlib.suppress(OSError, ValueError):
        os.set_blocking(2, False)
        os.write(2, f"alineod ends with code {code}: {why.rstrip('.')}.\n".encode())
    os._exit(code)
