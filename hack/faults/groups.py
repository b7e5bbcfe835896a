"""Where the control groups of a process are, on a machine with version 1 of them. Pure."""

from pathlib import Path

GROUPS = Path("/sys/fs/cgroup")


def find_group(cgroup: str, controller: str) -> Path:
    """The directory of a controller that the text of a /proc/<pid>/cgroup names."""
    lines = [line.split(":", 2) for line in cgroup.splitlines()]
    path = next(path for _, controllers, path in lines if controller in controllers.split(","))
    return GROUPS / controller / path.lstrip("/")
