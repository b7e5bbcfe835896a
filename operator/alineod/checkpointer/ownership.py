"""Gives what restore makes to the agent's user, where restore is root and may."""

import os
import stat
from contextlib import suppress
from pathlib import Path

from alineod.checkpointer.environment import Owner

_ANYONE = 0o777  # the mode of a volume that was just made


def give(path: Path, owner: Owner | None) -> None:
    """Change the owner; only root can, and nobody else needs to."""
    if owner is not None and os.geteuid() == 0:
        os.chown(path, owner.uid, owner.gid, follow_symlinks=False)


def settle_in(directory: Path, owner: Owner | None) -> None:
    """Make a volume's root the user's own directory: programs mistrust a home that anyone may write to."""
    give(directory, owner)
    with suppress(PermissionError):
        if stat.S_IMODE(directory.stat().st_mode) & _ANYONE == _ANYONE:
            directory.chmod(0o755)
