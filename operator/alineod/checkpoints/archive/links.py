"""Which inode was packed under which path, so that its next name becomes a hard link.

Kept in a file of SQLite rather than a dict: a store of packages has hundreds of thousands of linked files, and memory
must not grow with them.
"""

import os
import sqlite3
from pathlib import Path
from types import TracebackType


class LinkMap:
    """A context manager; its file is made when the first inode is added and goes at the end. Can be entered again.

    An inode counts as the same file only while its size and time are the same: in a tree that changes while it is
    walked, the number may have gone to another file.
    """

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._db: sqlite3.Connection | None = None

    def __enter__(self) -> "LinkMap":
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _: TracebackType | None
    ) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None
            self._scratch.unlink(missing_ok=True)

    def find(self, status: os.stat_result) -> bytes | None:
        """The path this file was packed under, if it was."""
        if self._db is None:
            return None
        query = "SELECT path FROM links WHERE inode = ? AND size = ? AND mtime = ?"
        row = self._db.execute(query, _key(status)).fetchone()
        return None if row is None else bytes(row[0])

    def add(self, status: os.stat_result, path: bytes) -> None:
        if self._db is None:
            self._db = self._open()
        self._db.execute("INSERT OR REPLACE INTO links VALUES (?, ?, ?, ?)", (*_key(status), path))

    def _open(self) -> sqlite3.Connection:
        self._scratch.unlink(missing_ok=True)
        db = sqlite3.connect(self._scratch, isolation_level=None)
        for pragma in ("journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE", "cache_size = -4096"):
            db.execute(f"PRAGMA {pragma}")
        db.execute("CREATE TABLE links (inode INTEGER PRIMARY KEY, size INTEGER, mtime INTEGER, path BLOB NOT NULL)")
        db.execute("BEGIN")
        return db


def _key(status: os.stat_result) -> tuple[int, int, int]:
    """SQLite's integers are signed, an inode's number is not."""
    inode = status.st_ino - (1 << 64) if status.st_ino >> 63 else status.st_ino
    return inode, status.st_size, status.st_mtime_ns
