"""Reading the ledger beside its writer: one read-only connection, off the loop, short statements.

Must not show what is not acknowledged: the caller says up to which seq it may look.
"""

import asyncio
from pathlib import Path

import aiosqlite

from alineod.domain.events import Row
from alineod.errors import AlineoError
from alineod.ledger import sql
from alineod.ledger.chain import parse_row
from alineod.ledger.failures import build_closed, explain_sqlite


class Reader:
    """Opened by its first read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: aiosqlite.Connection | None = None
        self._closed = False

    async def read(self, run: str | None, agent: str | None, after: int, until: int, limit: int) -> list[Row]:
        """The first `limit` rows in (after, until], of one run or agent if named.

        Raises:
            Unavailable: SQLite could not read, or the reader was closed meanwhile.
            Damaged: the file or a row is not what was written.
        """
        statement, parameters = sql.build_select(run, agent, after, until, limit)
        try:
            connection = await self._open()
            async with connection.execute(statement, parameters) as cursor:
                return [parse_row(sql.parse_record(record)) for record in await cursor.fetchall()]
        except (aiosqlite.Error, ValueError) as error:  # the second: it was closed under this read
            raise await self._explain(error) from error

    async def close(self) -> None:
        self._closed = True
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _open(self) -> aiosqlite.Connection:
        if self._closed:
            raise build_closed()
        if self._connection is None:
            path = self._path
            self._connection = await aiosqlite.Connection(lambda: sql.open_reader(path), iter_chunk_size=64)
        return self._connection

    async def _explain(self, error: aiosqlite.Error | ValueError) -> AlineoError:
        if self._closed:
            return build_closed()
        if isinstance(error, ValueError):
            raise error
        return await asyncio.to_thread(explain_sqlite, error, self._path)
