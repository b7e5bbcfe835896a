"""Sockets that take back what they have not delivered: a request of a leader must not arrive after its term.

Left to itself the kernel goes on sending what a process has written: for minutes while nothing answers, and after the
process has ended. It must not know what is sent.
"""

import socket
import struct

from aiohttp import AddrInfoType

# Seconds that sent bytes may wait for the other side's kernel. Less than what lies between the moment at which a leader
# stops to act and the moment at which another may begin (`kube.lease.LeaseTiming`).
UNDELIVERED = 4.0
_AT_ONCE = struct.pack("ii", 1, 0)  # struct linger: closing drops what was not delivered


def open_socket(address: AddrInfoType) -> socket.socket:
    """A socket for aiohttp's connector. What is not delivered goes with it, whoever closes it: we or our end."""
    family, kind, protocol = address[:3]
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(UNDELIVERED * 1000))
    return made
