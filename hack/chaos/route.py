"""Which operator a client asks next. Pure.

Clients go to the pods themselves and not through the Service: so a stopped leader still gets requests, and holds them
when it wakes, as it would hold those of a client whose connection outlived the leadership.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Route:
    """The address in use, empty before the first."""

    address: str = ""

    def follow(self, addresses: Sequence[str]) -> "Route":
        """Stay where the last answer came from, even if nobody lists it any more; take any at the beginning."""
        return self if self.address or not addresses else replace(self, address=addresses[0])

    def leave(self, addresses: Sequence[str]) -> "Route":
        """No answer came: the next of the listed ones, round and round."""
        if not addresses:
            return Route()
        if self.address not in addresses:
            return Route(addresses[0])
        return Route(addresses[(addresses.index(self.address) + 1) % len(addresses)])


def decide_status(status: int) -> str:
    """What an answer means: `acknowledged`, `refused` for good, or `again` elsewhere."""
    if 200 <= status < 300:
        return "acknowledged"
    # Not found: a leader that has just begun may not have looked at the agents yet.
    return "again" if status in (404, 425, 429) or status >= 500 else "refused"
