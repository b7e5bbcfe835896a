"""Reading the ledger beside its writer: one read-only connection, off the loop, short statements.

Must not show what is not acknowledged: the caller says up to which seq it may look.
"""

from pathlib import Path

import aiosqlite

from alineod.domain.events import Row
from alineod.errors import AlineoError
from alineod.ledger import sql
from alineod.ledger.chain import parse_row
from alineod.ledger.failures import explain_sqlite


class Reader:
    """Opened by its first read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: aiosqlite.Connection | None = None

    async def read(self, run: str | None, agent: str | None, after: int, until: int, limit: int) -> list[Row]:
        """The first `limit` rows in (after, until], of one run or agent if named.

        Raises:
            Unavailable: SQLite could not read.
            Damaged: the file or a row is not what was written.
        """
        statement, parameters = sql.build_select(run, agent, after, until, limit)
        try:
            connection = await self._open()
            async with connection.execute(statement, parameters) as cursor:
                return [parse_row(sql.parse_record(record)) for record in await cursor.fetchall()]
        except aiosqlite.Error as error:
            raise self._explain(error) from error

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _open(self) -> aiosqlite.Connection:
        if self._connection is None:
            path = self._path
            self._connection = await aiosqlite.Connection(lambda: sql.open_reader(path), iter_chunk_size=64)
        return self._connection

    def _explain(self, error: aiosqlite.Error) -> AlineoError:
        return explain_sqlite(error, self._path)
