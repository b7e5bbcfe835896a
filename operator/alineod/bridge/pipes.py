"""Pipes to a child process: lines out of bytes, the tail of what it said, and writing without waiting."""

import asyncio
import os
from collections.abc import Iterator
from typing import Final

_CHUNK: Final = 256 * 1024


class LineSplitter:
    """Cuts bytes at line feeds and nowhere else. A line has no limit, and what waits for its end is not copied."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The lines that `chunk` completes."""
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            self._parts.append(line)
            yield b"".join(self._parts)
            self._parts.clear()
        if rest:
            self._parts.append(rest)


class Tail:
    """The last bytes of a stream."""

    def __init__(self, limit: int = 8192) -> None:
        self._limit = limit
        self._data = b""

    def feed(self, chunk: bytes) -> None:
        self._data = (self._data + chunk)[-self._limit :]

    def lines(self, count: int) -> list[str]:
        """The last `count` lines that are not empty."""
        text = self._data.decode("utf-8", "replace")
        return [line.rstrip() for line in text.split("\n") if line.strip()][-count:]


async def open_reader(fd: int) -> tuple[asyncio.StreamReader, asyncio.BaseTransport]:
    """A reader of the pipe end `fd`, and the transport that owns it."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_CHUNK)
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(fd, "rb", 0))
    return reader, transport


async def open_writer(fd: int) -> asyncio.WriteTransport:
    """A writer to the pipe end `fd`, which it owns. What is written to a process that has gone is dropped."""
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, os.fdopen(fd, "wb", 0))
    return transport


async def drain(reader: asyncio.StreamReader, tail: Tail) -> None:
    """Keep the tail of a stream until it ends."""
    while chunk := await reader.read(_CHUNK):
        tail.feed(chunk)
