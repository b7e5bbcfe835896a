"""Files that change, vanish and turn into something else while they are packed."""

# Names are bytes here, which pathlib does not know.

import os
import threading
from pathlib import Path

import pytest

from tests.support.archives import pack, restore


@pytest.mark.behaviour("4.20")
def test_files_that_change_meanwhile(tmp_path: Path, home: Path) -> None:
    """A writer appends, truncates, removes, renames and swaps for links while the tree is packed again and again."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"do not pack" * 1000)
    stop = threading.Event()
    writer = threading.Thread(target=disturb, args=(home, outside, stop))
    writer.start()
    try:
        for number in range(40):
            packed, _ = pack(tmp_path)
            reader = restore(packed, tmp_path / "back")
            assert reader.manifest.directories >= 2
            assert b"do not pack" not in b"".join(path.read_bytes() for path in regular(tmp_path / "back")), number
    finally:
        stop.set()
        writer.join()


def regular(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file() and not path.is_symlink()]


def disturb(home: Path, outside: Path, stop: threading.Event) -> None:
    number = 0
    while not stop.is_set():
        number += 1
        file = home / f"f{number % 7}"
        try:
            match number % 5:
                case 0:
                    file.write_bytes(os.urandom(number * 37 % 500_000))
                case 1:
                    os.truncate(file, number % 1000)
                case 2:
                    file.unlink()
                    file.symlink_to(outside / "secret")
                case 3:
                    file.rename(home / "other")
                case _:
                    swap(home / "dir", outside)
        except OSError:
            pass


def swap(directory: Path, outside: Path) -> None:
    """A directory becomes a link to the outside and a directory again."""
    directory.mkdir(exist_ok=True)
    (directory / "secret").write_text("mine")
    directory.rename(directory.with_name("aside"))
    directory.symlink_to(outside, target_is_directory=True)
    directory.unlink()
    directory.with_name("aside").rename(directory)
