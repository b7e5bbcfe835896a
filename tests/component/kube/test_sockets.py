"""What a leader has written and nobody took is not delivered later: not after its time, not after its end."""

import multiprocessing
import os
import socket
import sys

import pytest

from alineod.kube.lease import LeaseTiming
from alineod.kube.sockets import UNDELIVERED, open_socket


def _send_and_end(port: int) -> None:
    """Fill what can be filled, and end as a process does whose lease is lost."""
    made = open_socket((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", port)))
    made.connect(("127.0.0.1", port))
    made.setblocking(False)
    try:
        while made.send(b"x" * 65536):
            pass
    except BlockingIOError:
        os._exit(75)


def _drain(taken: socket.socket) -> None:
    while taken.recv(1 << 20):
        pass


def test_what_was_not_taken_goes_with_the_process() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        process = multiprocessing.get_context("fork").Process(target=_send_and_end, args=(server.getsockname()[1],))
        process.start()
        taken, _ = server.accept()
        process.join()
        assert process.exitcode == 75
        with taken, pytest.raises(ConnectionResetError):
            _drain(taken)


@pytest.mark.skipif(sys.platform != "linux", reason="another kernel keeps its own time")
def test_the_kernel_is_told_how_long() -> None:
    with open_socket((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 1))) as made:
        assert made.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == UNDELIVERED * 1000


def test_that_time_lies_within_what_separates_two_leaders() -> None:
    timing = LeaseTiming()
    assert timing.renew_deadline + UNDELIVERED < timing.duration
