"""Moving in: what an attempt that died leaves, and what has to give way."""

# Names are bytes here, which pathlib does not know.
# ruff: noqa: PTH208

import os
from pathlib import Path

from alineod.checkpoints.archive.place import clear_leftovers
from tests.support.archives import (
    build_members,
    file,
    join,
    restore,
)


def test_an_attempt_that_died_while_moving_in_leaves_no_mixture(base: Path) -> None:
    (base / "home" / ".alineo-placing").mkdir()
    (base / "home" / ".alineo-placing" / "rest").write_text("x")
    (base / "home" / "lost+found").mkdir()
    clear_leftovers({b"home": base / "home", b"workspace": base / "workspace"})
    assert os.listdir(base / "home") == ["lost+found"]
    assert os.listdir(base / "workspace") == []


def test_an_attempt_that_died_while_unpacking_left_things_as_they_were(base: Path) -> None:
    (base / "workspace" / ".alineo-staging" / "d").mkdir(parents=True)
    clear_leftovers({b"home": base / "home", b"workspace": base / "workspace"})
    assert os.listdir(base / "home") == os.listdir(base / "workspace") == ["old"]


def test_what_gives_way_may_be_odd(base: Path) -> None:
    """A tree far deeper than there are descriptors, links out, and directories nobody may write to."""
    (base / "home" / "out").symlink_to("../outside", target_is_directory=True)
    (base / "home" / "locked" / "below").mkdir(parents=True)
    (base / "home" / "locked" / "below").chmod(0)
    (base / "home" / "locked").chmod(0)
    for number in range(1500):
        (base / "home" / f"many{number}").touch()
    here = os.open(base / "home", os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    restore(join(build_members([file("home/new")])), base)
    assert os.listdir(base / "home") == ["new"]
    assert (base / "outside" / "secret").read_text() == "secret"
