"""The processes of a container, found from the host by their cgroup, and signals to them.

Works where the cluster's nodes are namespaces of this machine. Signals go to numbers that were looked up just before.
"""

import os
import signal
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from hack.demo.run import run

PROC = Path("/proc")


def parse_container(cgroup: str, containers: Iterable[str]) -> str:
    """Which of these container ids the text of a /proc/<pid>/cgroup names; empty for none."""
    return next((container for container in containers if container in cgroup), "")


def find_processes(containers: Sequence[str]) -> list[int]:
    """The numbers of every process in these containers."""
    found: list[int] = []
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            with suppress(OSError):  # it has ended meanwhile
                if parse_container((entry / "cgroup").read_text(), containers):
                    found.append(int(entry.name))
    return sorted(found)


def send_signal(containers: Sequence[str], number: signal.Signals) -> int:
    """Signal every process in these containers, as close together as can be; returns how many there were."""
    pids = find_processes(containers)
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
    return len(pids)


def open_directory(container: str, path: str) -> int:
    """A descriptor of a directory as the container sees it; it stays good when the container has gone."""
    pid = find_processes([container])[0]
    return os.open(PROC / str(pid) / "root" / path.lstrip("/"), os.O_RDONLY | os.O_DIRECTORY)


def open_network(container: str) -> int:
    """A descriptor of the network of the container's pod."""
    pid = find_processes([container])[0]
    return os.open(PROC / str(pid) / "ns" / "net", os.O_RDONLY)


def run_in_network(network: int, *command: str) -> None:
    """Run a program of the host in a network."""
    run(["nsenter", f"--net=/proc/{os.getpid()}/fd/{network}", *command])
