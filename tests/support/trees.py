"""Trees of files as values, to compare what was packed with what came back."""

# Names are bytes here, which pathlib does not know.
# ruff: noqa: PTH115, PTH118, PTH123, PTH208

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Node:
    """One file, link or directory. `links` are the names of the same inode within the tree."""

    kind: int
    mode: int
    mtime_ns: int
    owner: tuple[int, int]
    content: str = ""
    target: bytes = b""
    links: tuple[bytes, ...] = ()


def read_tree(root: Path) -> dict[bytes, Node]:
    """Every node below and with the root (as b"")."""
    names: dict[tuple[int, int], list[bytes]] = {}
    paths = sorted(_walk(os.fsencode(root)))
    for path in paths:
        status = os.lstat(path)
        if stat.S_ISREG(status.st_mode):
            names.setdefault((status.st_dev, status.st_ino), []).append(_below(path, root))
    return {_below(path, root): _read_node(path, names) for path in paths}


def _walk(path: bytes) -> list[bytes]:
    found = [path]
    if stat.S_ISDIR(os.lstat(path).st_mode):
        for name in os.listdir(path):
            found += _walk(os.path.join(path, name))
    return found


def _below(path: bytes, root: Path) -> bytes:
    return path[len(os.fsencode(root)) + 1 :]


def _read_node(path: bytes, names: dict[tuple[int, int], list[bytes]]) -> Node:
    status = os.lstat(path)
    node = (
        stat.S_IFMT(status.st_mode),
        stat.S_IMODE(status.st_mode),
        status.st_mtime_ns,
        (status.st_uid, status.st_gid),
    )
    if stat.S_ISLNK(status.st_mode):
        return Node(*node, target=os.readlink(path))
    if stat.S_ISREG(status.st_mode):
        with open(path, "rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        return Node(*node, content=content, links=tuple(names[status.st_dev, status.st_ino]))
    return Node(*node)
