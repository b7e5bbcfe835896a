"""The sandboxes that a row strikes: who they are, what runs in them, and whether they have been struck.

Processes are looked up by their container's cgroup, just before they are signalled.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress

from hack.chaos.operators import Operator
from hack.chaos.processes import PROC, find_processes
from hack.faults.stage import Stage
from hack.faults.table import Column
from tests.support.e2e_objects import Json

STRUCK_LIMIT = 120.0  # s until the cluster shows what was done
Sandboxes = Mapping[Column, Operator]


def find_struck(stage: Stage) -> Sandboxes:
    """The sandboxes of the row's cells."""
    return {column: pod for column, pod in stage.find_sandboxes().items() if column in stage.struck}


def wait_struck(stage: Stage, sandboxes: Sandboxes, what: str, is_struck: Callable[[Json | None, str], bool]) -> None:
    """Wait until each pod has been struck; `is_struck` has the pod, and the id of its agent's container before."""

    def look() -> bool:
        pods = stage.read_pods()
        return all(is_struck(pods.get(one.name), one.containers.get("agent", "")) for one in sandboxes.values())

    stage.world.until(f"every struck pod should {what}", look, stage.namespace, STRUCK_LIMIT)


def is_replaced(pod: Json | None, container: str) -> bool:
    """The pod is another, is going, or runs another container than this."""
    if is_over(pod) or pod is None:
        return True
    found = [s for s in pod["status"].get("containerStatuses") or () if s["name"] == "agent"]
    return bool(found) and not str(found[0].get("containerID") or container).endswith(container)


def is_over(pod: Json | None) -> bool:
    return pod is None or "deletionTimestamp" in pod["metadata"] or pod["status"].get("phase") == "Failed"


def find_first(container: str) -> int:
    """PID 1 of a container, by its number on this machine."""
    return next(pid for pid in find_processes([container]) if read_inner(pid) == 1)


def read_inner(pid: int) -> int:
    """A process's number in its own namespace."""
    lines = (PROC / str(pid) / "status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("NSpid:")).split()[-1])


def find_harness(container: str) -> list[int]:
    """Pi's processes in a container; none while no turn runs."""
    found: list[int] = []
    for pid in find_processes([container]):
        with suppress(OSError):  # it has ended meanwhile
            if is_harness((PROC / str(pid) / "cmdline").read_bytes()):
                found.append(pid)
    return found


def is_harness(cmdline: bytes) -> bool:
    """Whether this is Pi: by the command it is started with, or by the title it gives itself later."""
    return b"--mode\0rpc\0" in cmdline or cmdline.rstrip(b"\0 ") == b"pi"
