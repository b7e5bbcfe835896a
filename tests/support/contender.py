"""A process that does nothing but lead: `python contender.py SERVER LEASE NAME DURATION DEADLINE RETRY`.

Its main thread never rests, as a busy operator's may not. It prints the epoch once it leads, and ends as an operator
ends.
"""

import functools
import sys

from alineod.clock import SystemClock
from alineod.kube.access import ClusterAccess
from alineod.kube.elector import Elector
from alineod.kube.exits import LEASE_LOST, exit_at_once
from alineod.kube.lease import LeaseTiming
from alineod.kube.lease_client import LeaseClient
from alineod.kube.lease_watch import LeaseWatch


def main(server: str, lease: str, name: str, *figures: str) -> None:
    where = ClusterAccess(server, token="t"), SystemClock(), "ns", lease
    elector = Elector(
        LeaseClient(*where),
        LeaseWatch(*where),
        name,
        die=functools.partial(exit_at_once, LEASE_LOST),
        on_acquired=lambda epoch: print(epoch, flush=True),
        timing=LeaseTiming(*map(float, figures)),
    )
    elector.start()
    while True:
        sum(range(10_000))


if __name__ == "__main__":
    main(*sys.argv[1:])
